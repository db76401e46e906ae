#include "meeting.h"

#include <tutti/error.h>

#include <cstring>
#include <utility>

namespace tutti::python {
namespace {

uint64_t bits_of(double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

double value_of(uint64_t bits) {
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace

void Meeting::send(std::vector<int64_t> words) {
  words_ = std::move(words);
  work_ = comm_.all_reduce_sum({words_.data(), words_.size(), DataType::i64});
}

void Meeting::take_turn(int64_t session, std::function<void()> drain) {
  if (turn_ == session) return;
  if (drain_) drain_();
  turn_ = session;
  drain_ = std::move(drain);
}

void Meeting::step_begins(int64_t session, const std::vector<double>& rates) {
  complete();
  announced_ = rates;
  std::vector<int64_t> words(kWords, 0);
  words[0] = 1;
  words[1] = session;
  words[2] = session * session;
  words[4] = static_cast<int64_t>(rates.size());
  for (std::size_t i = 0; i < rates.size() && i < kRates; ++i) {
    words[5 + 2 * i] = static_cast<int64_t>(bits_of(rates[i]) >> 32);
    words[6 + 2 * i] = static_cast<int64_t>(bits_of(rates[i]) & 0xFFFFFFFF);
  }
  send(std::move(words));
}

void Meeting::step_ends(const std::vector<double>& rates, bool is_scaled) {
  has_other_rates_ = rates != announced_;
  is_scaled_ = is_scaled;
}

void Meeting::complete() {
  const bool has_other_rates = std::exchange(has_other_rates_, false), is_scaled = std::exchange(is_scaled_, false);
  if (!work_) return;
  std::exchange(work_, nullptr)->wait();
  const int64_t active = words_[0];
  if (active * words_[2] != words_[1] * words_[1])
    throw Error("ranks make steps of different models at a time: every rank has to train them in the same order");
  if (active == comm_.size()) return;
  const char* const reason = has_other_rates ? "the learning rate was changed between backward() and step()"
                             : is_scaled     ? "a GradScaler scales the loss"
                             : words_[4] > active * static_cast<int64_t>(kRates)
                                 ? "there are more than 8 groups of parameters"
                                 : nullptr;
  if (reason != nullptr)
    throw Error(
        "{} of {} ranks have no batch left, and cannot make the same step as the others, since {}: give all ranks "
        "equally many batches",
        comm_.size() - active, comm_.size(), reason);
}

Meeting::Answer Meeting::meet(int64_t missed) {
  complete();
  std::vector<int64_t> words(kWords, 0);
  words[3] = missed;
  send(std::move(words));
  std::exchange(work_, nullptr)->wait();
  Answer answer;
  answer.active = words_[0];
  answer.missed = words_[3];
  if (answer.active == 0) return answer;
  answer.session = words_[1] / answer.active;
  const auto rates = static_cast<std::size_t>(words_[4] / answer.active);
  for (std::size_t i = 0; i < rates && i < kRates; ++i) {
    const int64_t high = words_[5 + 2 * i], low = words_[6 + 2 * i];
    if (high % answer.active != 0 || low % answer.active != 0)
      throw Error("ranks that still have batches have different learning rates");
    answer.rates.push_back(
        value_of(static_cast<uint64_t>(high / answer.active) << 32 | static_cast<uint64_t>(low / answer.active)));
  }
  return answer;
}

}  // namespace tutti::python
