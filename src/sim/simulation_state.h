#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "plan/pending_updates.h"
#include "plan/plan_cursor.h"
#include "sim/step_marks.h"

/// What a simulation keeps, apart from how it changes.
namespace tutti::simulation {

/// Something that happens at a moment of the virtual clock.
struct Event {
  enum Kind { computed, stage_done, arrives, updated } kind;
  double at_s;
  int64_t number;  // earlier ones first where times are equal: the order must not depend on the queue
  std::size_t index;
  int64_t version;
  bool operator<(const Event& other) const { return at_s != other.at_s ? at_s > other.at_s : number > other.number; }
};

/// The ranks that are alike, as one.
struct Worker {
  Worker(const Plan& plan, std::vector<Mark> step, int64_t update_piece)
      : cursor(plan), marks(std::move(step)), pending(plan, update_piece) {}
  PlanCursor cursor;
  std::vector<Mark> marks;
  double update_s = 0;
  std::size_t mark = 0;  // computation is on its way to it
  bool is_computing = false, is_updating = false;
  bool is_busy = false;  // computes, or goes on at once
  bool step_open = false, step_complete = true;
  double left_s = 0, since_s = 0;  // of computation to the mark, and when that was true
  int64_t version = 0;
  double blocked_since_s = -1;
  std::deque<std::size_t> under_way;             // started, oldest first
  PendingUpdates pending;                        // carried
  std::optional<UpdatePiece> updating, helping;  // by the communication thread, and by the one that computes
  int step = 0;
  double step_began_s = 0, waited_s = 0, backward_began_s = 0;
  std::vector<double> step_ends_s;
};

/// A resource, which serves transfers in the order of their arrival.
struct Queue {
  std::deque<std::size_t> waiting;  // transfers
  bool is_busy = false;
  bool is_launching = false;  // what is served has not reached the device
  std::size_t served = 0;
  double used_s = 0;
  double left_s = 0, since_s = 0;  // of the stage, as if the device were idle
  int64_t version = 0;
};

}  // namespace tutti::simulation
