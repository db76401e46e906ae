#include "probe/clocks.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "comm/exchange.h"

namespace tutti {
namespace {

constexpr int kQuestions = 20, kClockTag = 2;

int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}
int64_t wall_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Whole nanoseconds first, then seconds: a double cannot hold today's date to the nanosecond.
double to_seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

ClockOffset ask(Communicator& comm, int rank) {
  int64_t shortest = 0;
  ClockOffset offset;
  for (int i = 0; i < kQuestions; ++i) {
    int64_t question = 0, times[2] = {0, 0};
    const int64_t wall_before = wall_ns(), before = steady_ns();
    comm.send({&question, 1, DataType::i64}, rank, kClockTag)->wait();
    comm.receive({times, 2, DataType::i64}, rank, kClockTag)->wait();
    const int64_t round_trip = steady_ns() - before;
    if (i > 0 && round_trip >= shortest) continue;
    shortest = round_trip;
    offset = {to_seconds(times[0] - wall_before - round_trip / 2), to_seconds(times[1] - before - round_trip / 2),
              to_seconds(round_trip) / 2};
  }
  return offset;
}

void reply(Communicator& comm) {
  for (int i = 0; i < kQuestions; ++i) {
    int64_t question = 0;
    comm.receive({&question, 1, DataType::i64}, 0, kClockTag)->wait();
    int64_t times[2] = {wall_ns(), steady_ns()};
    comm.send({times, 2, DataType::i64}, 0, kClockTag)->wait();
  }
}

}  // namespace

std::vector<ClockOffset> measure_clock_offsets(Communicator& comm) {
  nlohmann::json offsets = nlohmann::json::array();
  for (int rank = 0; rank < comm.size(); ++rank) {
    if (comm.rank() == 0) offsets.push_back(rank == 0 ? ClockOffset{} : ask(comm, rank));
    if (comm.rank() == rank && rank != 0) reply(comm);
  }
  std::vector<ClockOffset> all;
  for (const auto& offset : nlohmann::json::parse(broadcast_text(comm, offsets.dump())))
    all.push_back({offset.at("wall_s"), offset.at("steady_s"), offset.at("uncertainty_s")});
  return all;
}

void to_json(nlohmann::json& json, const ClockOffset& offset) {
  json = {{"wall_s", offset.wall_s}, {"steady_s", offset.steady_s}, {"uncertainty_s", offset.uncertainty_s}};
}

}  // namespace tutti
