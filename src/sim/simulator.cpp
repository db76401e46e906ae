// A discrete-event simulation. Events are the ends of pieces of computation and of stages of transfers, and moments at
// which a transfer may go on. Computation runs slower while a transfer runs on the device, so the end of a piece moves
// when transfers start and stop: it is scheduled anew, and the old event is recognized by its version.
#include "sim/simulator.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <queue>
#include <utility>

#include "sim/message_cost.h"
#include "sim/simulation_state.h"
#include "sim/timeline.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using simulation::Event;
using simulation::Queue;
using simulation::Worker;

constexpr int kMostSteps = 8;
constexpr double kSteady = 1e-6;  // relative difference between steps

/// Fewer transfers than tensors.
bool merges(const Plan& plan) { return plan.transfers.size() < plan.slots.size(); }

/// Of a whole update, or of one rank's share where the optimizer's state is sharded. A single rank launches it while
/// backward still runs.
double whole_update_s(const Plan& plan, const Profile& profile, const Software& software, const Device& device,
                      const std::string& optimizer, int ranks, int shares) {
  if (profile.update_s > 0) return profile.update_s / shares;
  double launch_s = ranks == 1 ? 0 : optimizer == "sgd" ? software.sgd_launch_s : software.adam_launch_s;
  if (ranks > 1 && merges(plan)) launch_s += software.unmerge_s;
  const double bytes = static_cast<double>(plan.elements) * software.update_bytes / shares;
  return launch_s * static_cast<double>(plan.slots.size()) +
         (device.memory_bytes_per_s > 0 ? bytes / (device.memory_bytes_per_s * device.memory_efficiency) : 0);
}

const Device& device_of(const Layout& layout, std::size_t kind) {
  return layout.devices.at(std::min(kind, layout.devices.size() - 1));
}

class Simulation {
 public:
  Simulation(const Plan& plan, const std::vector<Profile>& profiles, const Cluster& cluster, const Layout& layout,
             const SimulationOptions& options)
      : plan_(plan),
        cluster_(cluster),
        under_way_limit_(cluster.software.max_in_flight > 0 ? cluster.software.max_in_flight : plan.max_in_flight),
        crosses_(plan.barrier == Barrier::next_forward && layout.ranks > 1),
        cycle_s_(crosses_ && plan.servers == 0 ? cluster.software.scheduled_cycle_s : 0),
        scheduled_s_(options.optimizer == "sgd" ? cluster.software.scheduled_sgd_s : cluster.software.scheduled_adam_s),
        timeline_(options.traces) {
    for (const Profile& profile : profiles) {
      if (profile.gradients.size() != plan.slots.size())
        throw Error("a plan of {} gradients cannot run on a profile of {}", plan.slots.size(),
                    profile.gradients.size());
      workers_.emplace_back(plan, marks_of(profile),
                            cluster.software.updates_take_turns ? PendingUpdates::kPiece : plan.elements);
    }
    for (std::size_t i = 0; i < workers_.size(); ++i)
      workers_[i].update_s = whole_update_s(plan, profiles[i], cluster.software, device_of(layout, i),
                                            options.optimizer, layout.ranks, plan.sharded_optimizer ? layout.ranks : 1);
    if (layout.ranks > 1)
      for (const Transfer& transfer : plan.transfers) ways_.push_back(stages_of(transfer, plan, cluster, layout));
    resources_.resize(static_cast<std::size_t>(kFirstServer + kPerServer * std::max(1, plan.servers)));
    issued_by_.assign(plan.transfers.size(), 0);
    stage_.assign(plan.transfers.size(), 0);
    entered_s_.assign(plan.transfers.size(), 0);
  }

  SimulatedStep run() {
    for (Worker& worker : workers_) go_on(worker);
    while (!events_.empty() && !is_over_) {
      const Event event = events_.top();
      events_.pop();
      ++result_.events;
      now_ = event.at_s;
      switch (event.kind) {
        case Event::computed: {
          Worker& worker = workers_[event.index];
          if (event.version != worker.version) break;
          worker.is_computing = false;
          reached_mark(worker);
          break;
        }
        case Event::stage_done:
          if (event.version == resources_[event.index].version) stage_done(event.index);
          break;
        case Event::arrives:
          request(event.index);
          break;
        case Event::updated:
          updated(workers_[event.index]);
          break;
      }
    }
    if (!is_over_) throw Error("the plan of strategy '{}' stops: nothing in it can go on", plan_.strategy);
    return std::move(result_);
  }

 private:
  void schedule(Event::Kind kind, double at_s, std::size_t index, int64_t version = 0) {
    events_.push({kind, at_s, ++number_, index, version});
  }

  std::size_t index_of(const Worker& worker) const { return static_cast<std::size_t>(&worker - workers_.data()); }

  // Computation.

  void record(const Worker& worker, TraceKind kind, double begin_s, double end_s) {
    if (index_of(worker) == 0) timeline_.computed(kind, worker.step, begin_s, end_s);
  }

  double rate() const { return running_on_device_ > 0 ? 1 / (1 + cluster_.software.slowdown) : 1; }

  bool device_computes() const { return workers_[0].is_busy; }
  double stage_rate(const Queue& queue) const {
    const Stage& stage = ways_[queue.served][stage_[queue.served]];
    const bool is_slowed = device_computes() && !queue.is_launching && stage.beside_s > stage.seconds;
    return is_slowed ? stage.seconds / stage.beside_s : 1;
  }
  void set_busy(Worker& worker, bool is_busy) {
    if (worker.is_busy == is_busy) return;
    settle();
    worker.is_busy = is_busy;
    reschedule();
  }

  void compute(Worker& worker, double work_s) {
    set_busy(worker, true);
    worker.is_computing = true;
    worker.left_s = work_s;
    worker.since_s = now_;
    schedule(Event::computed, now_ + work_s / rate(), index_of(worker), ++worker.version);
  }

  /// Before the rate changes: what has been computed so far; after: when the rest will be.
  void settle() {
    for (Queue& queue : resources_) {
      if (!queue.is_busy) continue;
      queue.left_s = std::max(0.0, queue.left_s - (now_ - queue.since_s) * stage_rate(queue));
      queue.since_s = now_;
    }
    for (Worker& worker : workers_) {
      if (!worker.is_computing) continue;
      worker.left_s = std::max(0.0, worker.left_s - (now_ - worker.since_s) * rate());
      worker.since_s = now_;
    }
  }
  void reschedule() {
    for (std::size_t i = 0; i < resources_.size(); ++i)
      if (resources_[i].is_busy)
        schedule(Event::stage_done, now_ + resources_[i].left_s / stage_rate(resources_[i]), i,
                 ++resources_[i].version);
    for (Worker& worker : workers_)
      if (worker.is_computing)
        schedule(Event::computed, now_ + worker.left_s / rate(), index_of(worker), ++worker.version);
  }

  void go_on(Worker& worker) { compute(worker, worker.marks[worker.mark].work_s); }

  void reached_mark(Worker& worker) {
    if (worker.helping) {
      told(worker, *std::exchange(worker.helping, std::nullopt));
      pump(worker);
      pass_mark(worker);
      return;
    }
    if (worker.is_updating) {
      worker.is_updating = false;
      end_step(worker);
      return;
    }
    pass_mark(worker);
  }

  /// False where computation has to wait: it comes here again when a transfer is done.
  bool may_pass(const Worker& worker, const Mark& mark) const {
    if (worker.step_complete) return true;
    if (mark.kind == Mark::needs) return !crosses_ || worker.cursor.is_slot_synchronized(mark.slot);
    return mark.kind != Mark::forward_ends;  // the step before keeps the gradients' places until it is through
  }

  void pass_mark(Worker& worker) {
    const Mark& mark = worker.marks[worker.mark];
    if (!worker.step_open && !may_pass(worker, mark)) {
      if (cluster_.software.updates_take_turns && may_update(worker)) {
        unblock(worker);
        worker.helping = worker.pending.take_most_urgent();
        record(worker, TraceKind::update, now_, now_ + update_s(worker, *worker.helping));
        compute(worker, update_s(worker, *worker.helping));
        return;
      }
      if (worker.blocked_since_s < 0) worker.blocked_since_s = now_;
      set_busy(worker, false);
      return;
    }
    unblock(worker);
    switch (mark.kind) {
      case Mark::needs:
        break;
      case Mark::forward_ends:
        record(worker, TraceKind::forward, worker.step_began_s, now_);
        worker.backward_began_s = now_;
        worker.step_open = true;
        if (ways_.empty()) break;
        worker.step_complete = false;
        worker.cursor.begin_step();
        if (index_of(worker) == 0) result_.issued = std::exchange(issuing_, {});
        break;
      case Mark::gradient:
        if (ways_.empty()) break;
        worker.cursor.gradient_ready(mark.slot);
        pump(worker);
        break;
      case Mark::backward_ends:
        record(worker, TraceKind::backward, worker.backward_began_s, now_);
        worker.step_open = false;
        if (!ways_.empty()) {
          worker.cursor.backward_done();
          pump(worker);
        }
        if (crosses_ || worker.step_complete)
          update(worker);
        else {
          worker.blocked_since_s = now_;
          set_busy(worker, false);
        }
        return;
    }
    ++worker.mark;
    go_on(worker);
  }

  void unblock(Worker& worker) {
    if (worker.blocked_since_s < 0) return;
    worker.waited_s += now_ - worker.blocked_since_s;
    record(worker, TraceKind::comm_wait, worker.blocked_since_s, now_);
    worker.blocked_since_s = -1;
  }

  void update(Worker& worker) {
    unblock(worker);
    if (crosses_) {
      end_step(worker);  // slices are updated on the communication thread
      return;
    }
    worker.is_updating = true;
    compute(worker, worker.update_s);
    record(worker, TraceKind::update, now_, now_ + worker.update_s);
  }

  void end_step(Worker& worker) {
    worker.step_ends_s.push_back(now_);
    if (index_of(worker) == 0) check_steady(worker);
    worker.mark = 0;
    ++worker.step;
    worker.step_began_s = now_;
    if (index_of(worker) == 0 && !is_over_) {
      worker.waited_s = 0;
      busy_s_ = 0;
      for (Queue& queue : resources_) queue.used_s = 0;
      timeline_.clear();
    }
    go_on(worker);
  }

  void check_steady(const Worker& worker) {
    const std::size_t n = worker.step_ends_s.size();
    const double last_s = worker.step_ends_s[n - 1] - worker.step_began_s;
    const double before_s = n > 1 ? worker.step_began_s - (n > 2 ? worker.step_ends_s[n - 3] : 0) : 0;
    const bool is_steady = n > 1 && std::abs(last_s - before_s) <= kSteady * last_s;
    const bool repeats = !crosses_ && workers_.size() == 1 && cycle_s_ <= 0;
    if (!repeats && !is_steady && n < kMostSteps) return;
    is_over_ = true;
    // What swings from step to step (a cycle that does not divide the step) is averaged.
    const bool swings = !repeats && !is_steady;
    result_.step_s = swings ? (now_ - worker.step_ends_s[3]) / static_cast<double>(n - 4) : last_s;
    result_.waited_s = worker.waited_s;
    result_.busy_s = busy_s_;
    result_.trace = timeline_.trace();
    if (!crosses_) result_.issued = issuing_;  // otherwise this step's transfers are not all started
    for (const Queue& queue : resources_) result_.resource_s.push_back(queue.used_s);
  }

  // Communication: the engine's HostExecutor, step by step.

  void pump(Worker& worker) {
    const bool takes_turns = cluster_.software.updates_take_turns;
    if (!takes_turns) update_next(worker);
    while (!worker.step_complete && !(worker.updating && takes_turns)) {
      const bool is_full = static_cast<int>(worker.under_way.size()) >= under_way_limit_;
      if (const auto next = is_full ? std::nullopt : worker.cursor.start_next()) {
        worker.under_way.push_back(*next);
        if (index_of(worker) == 0) issuing_.push_back(*next);
        issue(*next);
        continue;
      }
      if (!worker.under_way.empty() && is_carried(worker.under_way.front())) {
        const std::size_t carried = worker.under_way.front();
        worker.under_way.pop_front();
        if (updates_parameters(plan_, plan_.transfers[carried]))
          worker.pending.add(carried);
        else
          transfer_done(worker, carried);
        if (!takes_turns) update_next(worker);
        if (worker.blocked_since_s >= 0 && crosses_) pass_mark(worker);  // perhaps it helps
        continue;
      }
      const bool must_wait = !worker.under_way.empty() && (is_full || worker.cursor.has_started_all());
      if (!takes_turns || must_wait || !may_update(worker)) return;
      update_next(worker);
    }
  }

  void issue(std::size_t transfer) {
    if (issued_by_[transfer] == workers_.size()) {  // of the step before
      issued_by_[transfer] = 0;
      stage_[transfer] = 0;
    }
    if (++issued_by_[transfer] < workers_.size()) return;
    const double at_s = cycle_s_ > 0 ? std::ceil(now_ / cycle_s_ - 1e-9) * cycle_s_ : now_;
    if (++in_network_ == 1) busy_since_s_ = now_;
    schedule(Event::arrives, std::max(now_, at_s), transfer);
    entered_s_[transfer] = now_;
  }

  void request(std::size_t transfer) {
    Queue& queue = resources_[static_cast<std::size_t>(ways_[transfer][stage_[transfer]].resource)];
    if (queue.is_busy)
      queue.waiting.push_back(transfer);
    else
      serve(queue, transfer);
  }

  void serve(Queue& queue, std::size_t transfer) {
    const Stage& stage = ways_[transfer][stage_[transfer]];
    queue.is_busy = true;
    queue.served = transfer;
    queue.used_s += stage.launch_s + stage.seconds;
    queue.is_launching = stage.launch_s > 0;
    if (!queue.is_launching) return run_stage(queue);
    queue.left_s = stage.launch_s;
    queue.since_s = now_;
    schedule(Event::stage_done, now_ + stage.launch_s, static_cast<std::size_t>(stage.resource), ++queue.version);
  }

  void run_stage(Queue& queue) {
    const Stage& stage = ways_[queue.served][stage_[queue.served]];
    queue.left_s = stage.seconds;
    queue.since_s = now_;
    if (stage.on_device && ++running_on_device_ == 1 && cluster_.software.slowdown > 0) {
      --running_on_device_;
      settle();
      ++running_on_device_;
      reschedule();
    } else {
      schedule(Event::stage_done, now_ + stage.seconds / stage_rate(queue), static_cast<std::size_t>(stage.resource),
               ++queue.version);
    }
  }

  void stage_done(std::size_t resource) {
    Queue& queue = resources_[resource];
    if (std::exchange(queue.is_launching, false)) return run_stage(queue);
    const std::size_t transfer = queue.served;
    const Stage& stage = ways_[transfer][stage_[transfer]];
    queue.is_busy = false;
    if (stage.on_device && running_on_device_ == 1 && cluster_.software.slowdown > 0) settle();
    if (stage.on_device && --running_on_device_ == 0 && cluster_.software.slowdown > 0) reschedule();
    if (!queue.waiting.empty()) {
      const std::size_t next = queue.waiting.front();
      queue.waiting.pop_front();
      serve(queue, next);
    }
    if (++stage_[transfer] < ways_[transfer].size()) {
      schedule(Event::arrives, now_ + stage.delay_s, transfer);
      return;
    }
    if (--in_network_ == 0) busy_s_ += now_ - busy_since_s_;
    timeline_.transferred(transfer, workers_[0].step, entered_s_[transfer], now_);
    for (Worker& worker : workers_) pump(worker);
  }

  bool is_carried(std::size_t transfer) const {
    return issued_by_[transfer] == workers_.size() && stage_[transfer] == ways_[transfer].size();
  }

  // As the engine's PendingUpdates: a slice is updated before anybody is told that its transfer is done.

  bool may_update(const Worker& worker) const { return worker.cursor.is_backward_done() && !worker.pending.empty(); }

  double update_s(const Worker& worker, const UpdatePiece& piece) const {
    const double share = static_cast<double>(piece.end - piece.begin) / static_cast<double>(plan_.elements);
    return worker.update_s * share + (piece.begin == plan_.transfers[piece.transfer].begin ? scheduled_s_ : 0);
  }

  /// On the communication thread, until one takes time.
  void update_next(Worker& worker) {
    while (!worker.updating && may_update(worker)) {
      const UpdatePiece piece =
          cluster_.software.updates_take_turns ? worker.pending.take_most_urgent() : worker.pending.take_oldest();
      const double seconds = update_s(worker, piece);
      if (seconds > 0) {
        worker.updating = piece;
        schedule(Event::updated, now_ + seconds, index_of(worker));
      } else {
        told(worker, piece);
      }
    }
  }

  void updated(Worker& worker) {
    told(worker, *std::exchange(worker.updating, std::nullopt));
    pump(worker);
  }

  void told(Worker& worker, const UpdatePiece& piece) {
    if (worker.pending.done(piece)) transfer_done(worker, piece.transfer);
  }

  void transfer_done(Worker& worker, std::size_t transfer) {
    worker.cursor.transfer_done(transfer);
    worker.step_complete = worker.cursor.is_step_synchronized();
    if (worker.blocked_since_s < 0) return;
    if (!crosses_) {
      if (worker.step_complete) update(worker);
    } else {
      pass_mark(worker);
    }
  }

  const Plan& plan_;
  const Cluster& cluster_;
  const int under_way_limit_;
  const bool crosses_;
  const double cycle_s_, scheduled_s_;
  Timeline timeline_;
  std::vector<Worker> workers_;
  std::vector<std::vector<Stage>> ways_;  // by transfer
  std::vector<Queue> resources_;
  std::vector<std::size_t> issued_by_, stage_;  // by transfer
  std::vector<double> entered_s_;
  std::priority_queue<Event> events_;
  double now_ = 0, busy_since_s_ = 0, busy_s_ = 0;
  int64_t number_ = 0;
  int running_on_device_ = 0, in_network_ = 0;
  bool is_over_ = false;
  std::vector<std::size_t> issuing_;  // transfers that the step has started
  SimulatedStep result_;
};

}  // namespace

SimulatedStep simulate(const Plan& plan, const std::vector<Profile>& profiles, const Cluster& cluster,
                       const Layout& layout, const SimulationOptions& options) {
  SimulatedStep step = Simulation(plan, profiles, cluster, layout, options).run();
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const double update =
        whole_update_s(plan, profiles[i], cluster.software, device_of(layout, i), options.optimizer, layout.ranks, 1);
    step.compute_s =
        std::max(step.compute_s, profiles[i].rest_s + profiles[i].forward_s + profiles[i].backward_s + update);
  }
  step.exposed_s = std::max(0.0, step.step_s - step.compute_s);
  return step;
}

}  // namespace tutti
