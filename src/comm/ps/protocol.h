#pragma once

#include <array>
#include <cstdint>

#include "tutti/communicator.h"

// What worker 0 tells every server, and how messages are told apart.

namespace tutti::ps {

enum class Command : int64_t { announce, step, stop };

/// {command, data type, number of messages of this server}; after an announcement follow the messages' numbers and
/// lengths.
using Order = std::array<int64_t, 3>;

constexpr int kOrderTag = 0;
constexpr int kListTag = 1;
constexpr int tag_of(int64_t message) { return static_cast<int>(message) + 2; }

inline Span span_of(Order& order) { return {order.data(), order.size(), DataType::i64}; }

}  // namespace tutti::ps
