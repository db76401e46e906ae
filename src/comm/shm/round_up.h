#pragma once

#include <cstddef>

namespace tutti::shm {

constexpr std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace tutti::shm
