#include "data/loader.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "tutti/error.h"

namespace tutti {

/// Batch i lives in slot i % slots.size() from when a worker takes it up until next() hands it over. A worker may take
/// up a batch only when its slot is free, which bounds what is loaded ahead and makes slots need no further ordering.
struct Loader::State {
  struct Slot {
    bool is_ready = false;
    Batch batch;
    std::exception_ptr error;
  };

  State(std::shared_ptr<const Dataset> dataset, std::vector<std::vector<int64_t>> batch_indices,
        const LoaderOptions& options)
      : data(std::move(dataset)), batches(std::move(batch_indices)), pinned(options.pinned), epoch(options.epoch) {}

  ~State() {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      stopping = true;
    }
    slot_freed.notify_all();
    for (std::thread& worker : workers) worker.join();
  }

  void load(size_t index, Slot& slot) {
    try {
      const std::vector<int64_t>& indices = batches[index];
      slot.batch = data->make_batch(static_cast<int64_t>(indices.size()), pinned);
      int64_t row = 0;
      for (const int64_t sample : indices) {
        if (stopping) return;  // nobody will ask for the rest
        data->load({sample, epoch}, row++, slot.batch);
      }
    } catch (...) {
      slot.error = std::current_exception();
    }
  }

  void run_worker() {
    std::unique_lock<std::mutex> lock(mutex);
    while (true) {
      slot_freed.wait(lock,
                      [this] { return stopping || taken_up == batches.size() || taken_up < delivered + slots.size(); });
      if (stopping || taken_up == batches.size()) return;
      const size_t index = taken_up++;
      Slot& slot = slots[index % slots.size()];
      lock.unlock();
      load(index, slot);
      lock.lock();
      slot.is_ready = true;
      if (index == delivered) slot_ready.notify_one();
    }
  }

  const std::shared_ptr<const Dataset> data;
  const std::vector<std::vector<int64_t>> batches;
  const bool pinned;
  const int64_t epoch;
  double waited_s = 0;

  std::mutex mutex;
  std::condition_variable slot_freed;
  std::condition_variable slot_ready;
  std::vector<Slot> slots;            // one slot: its worker's from taken_up until is_ready, else guarded by mutex
  size_t taken_up = 0;                // guarded by mutex
  size_t delivered = 0;               // written by next() under mutex
  std::atomic<bool> stopping{false};  // written under mutex
  std::vector<std::thread> workers;   // last: they use all of the above
};

Loader::Loader(std::shared_ptr<const Dataset> data, std::vector<std::vector<int64_t>> batches,
               const LoaderOptions& options) {
  if (options.workers < 0 || options.prefetch < 1) {
    throw UsageError("a loader with {} workers and {} batches ahead cannot work; give at least 0 and 1",
                     options.workers, options.prefetch);
  }
  state_ = std::make_unique<State>(std::move(data), std::move(batches), options);
  // A worker without a slot to fill, or a batch to load, would only ever sleep.
  state_->slots.resize(static_cast<size_t>(std::max(options.prefetch, options.workers)));
  const size_t useful = std::min(static_cast<size_t>(options.workers), state_->batches.size());
  for (size_t i = 0; i < useful; ++i) state_->workers.emplace_back([state = state_.get()] { state->run_worker(); });
}

Loader::~Loader() = default;

bool Loader::has_next() const { return state_->delivered < state_->batches.size(); }

Batch Loader::next() {
  State& state = *state_;
  if (!has_next()) throw Error("the loader has delivered all of its {} batches", state.batches.size());
  const Clock::time_point start = Clock::now();
  State::Slot slot;
  if (state.workers.empty()) {
    state.load(state.delivered++, slot);
  } else {
    std::unique_lock<std::mutex> lock(state.mutex);
    State::Slot& ring_slot = state.slots[state.delivered % state.slots.size()];
    state.slot_ready.wait(lock, [&ring_slot] { return ring_slot.is_ready; });
    slot = std::exchange(ring_slot, {});
    ++state.delivered;
    lock.unlock();
    state.slot_freed.notify_one();
  }
  state.waited_s += seconds_since(start);
  if (slot.error) std::rethrow_exception(slot.error);
  return std::move(slot.batch);
}

double Loader::waited_s() const { return state_->waited_s; }

}  // namespace tutti
