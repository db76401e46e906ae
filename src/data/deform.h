#pragma once

#include <cstdint>

#include "data/random.h"

namespace tutti {

/// Writes another handwriting of a 28×28 digit: turned, scaled, slanted, shifted and bent a little. What `random` draws
/// decides everything, and the bytes are the same on every machine. `from` and `to` must not overlap.
void deform_digit(const uint8_t* from, PortableRandom random, uint8_t* to);

}  // namespace tutti
