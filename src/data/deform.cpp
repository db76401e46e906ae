// Random affine and elastic deformation of digits (Simard et al., "Best practices for convolutional neural networks
// applied to visual document analysis", 2003).
//
// Each pixel of the result is looked up, with bilinear interpolation, at a *source* point: an affine map of its place
// plus a *displacement*. Simard smooths a random field over all pixels with a Gaussian; here the field is random at the
// nodes of a coarse grid, smoothed there by a small binomial kernel, and interpolated between them: as smooth at this
// size, with far less work. Only operations that IEEE 754 rounds exactly are used.

#include "data/deform.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace tutti {
namespace {

constexpr int kSide = 28;
constexpr int kMargin = 2;  // empty pixels around the picture, so that source points just outside need no test
constexpr int kPaddedSide = kSide + 2 * kMargin;
constexpr int kCell = 4;                   // pixels between nodes
constexpr int kNodes = kSide / kCell + 1;  // per side; the last ones lie just beyond the last pixel

// Chosen by eye and by what a small network learns from them: strong, but no digit becomes another.
constexpr float kHalfTurn = .045F;     // deviation of the tangent of half the angle; 15 degrees at most
constexpr float kStretch = .055F;      // of the scale, for each axis
constexpr float kSlant = .07F;         // of the horizontal shift per row
constexpr float kShift = .7F;          // pixels
constexpr float kDisplacement = 3.2F;  // pixels at most, before smoothing

using Grid = std::array<std::array<float, kNodes>, kNodes>;

struct Displacements {
  Grid x;
  Grid y;
};

/// Sums of two uniform numbers in (-1, 1), one pair of them from each 64 random bits.
void fill(Displacements& field, PortableRandom& random) {
  const auto part = [](uint64_t bits, int shift) { return static_cast<float>((bits >> shift) & 0xffff) * 0x1p-16F; };
  for (int row = 0; row < kNodes; ++row) {
    for (int column = 0; column < kNodes; ++column) {
      const uint64_t bits = random.bits();
      field.x[row][column] = (part(bits, 0) + part(bits, 16) - 1) * kDisplacement;
      field.y[row][column] = (part(bits, 32) + part(bits, 48) - 1) * kDisplacement;
    }
  }
}

/// The kernel 1 2 1 along both axes, what lies outside being 0.
void smooth(Grid& grid) {
  Grid once;
  for (int row = 0; row < kNodes; ++row) {
    for (int column = 0; column < kNodes; ++column) {
      const float left = column > 0 ? grid[row][column - 1] : 0;
      const float right = column + 1 < kNodes ? grid[row][column + 1] : 0;
      once[row][column] = .25F * (left + right) + .5F * grid[row][column];
    }
  }
  for (int row = 0; row < kNodes; ++row) {
    for (int column = 0; column < kNodes; ++column) {
      const float above = row > 0 ? once[row - 1][column] : 0;
      const float below = row + 1 < kNodes ? once[row + 1][column] : 0;
      grid[row][column] = .25F * (above + below) + .5F * once[row][column];
    }
  }
}

/// The displacements of one row of pixels.
void interpolate(const Grid& grid, int row, std::array<float, kSide>& to) {
  const int above = row / kCell;
  const float down = static_cast<float>(row % kCell) / kCell;
  std::array<float, kNodes> nodes;
  for (int i = 0; i < kNodes; ++i) nodes[i] = grid[above][i] + down * (grid[above + 1][i] - grid[above][i]);
  for (int column = 0; column < kSide; ++column) {
    const int left = column / kCell;
    to[column] = nodes[left] + static_cast<float>(column % kCell) / kCell * (nodes[left + 1] - nodes[left]);
  }
}

}  // namespace

void deform_digit(const uint8_t* from, PortableRandom random, uint8_t* to) {
  const float half_turn = random.bell(kHalfTurn);
  const float norm = 1 / (1 + half_turn * half_turn);  // a rotation without sine and cosine
  const float cosine = (1 - half_turn * half_turn) * norm;
  const float sine = 2 * half_turn * norm;
  const float width = 1 + random.bell(kStretch);
  const float height = 1 + random.bell(kStretch);
  const float slant = random.bell(kSlant);
  const float xx = width * cosine;
  const float xy = width * (slant * cosine - sine);
  const float yx = height * sine;
  const float yy = height * (slant * sine + cosine);
  constexpr float kMiddle = (kSide - 1) / 2.F;
  const float x0 = kMiddle + kMargin + random.bell(kShift);
  const float y0 = kMiddle + kMargin + random.bell(kShift);
  Displacements field;
  fill(field, random);
  smooth(field.x);
  smooth(field.y);

  std::array<uint8_t, kPaddedSide * kPaddedSide> padded{};
  for (int row = 0; row < kSide; ++row)
    std::memcpy(padded.data() + (row + kMargin) * kPaddedSide + kMargin, from + row * kSide, kSide);

  constexpr float kLast = kPaddedSide - 1.5F;  // between the last two pixels, both empty
  std::array<float, kSide> dx;
  std::array<float, kSide> dy;
  std::array<int, kSide> xs;  // in 256ths of a pixel: integers interpolate faster here, and as well as bytes need it
  std::array<int, kSide> ys;
  for (int row = 0; row < kSide; ++row) {
    interpolate(field.x, row, dx);
    interpolate(field.y, row, dy);
    const float v = static_cast<float>(row) - kMiddle;
    for (int column = 0; column < kSide; ++column) {
      const float u = static_cast<float>(column) - kMiddle;
      xs[column] = static_cast<int>(256 * std::min(std::max(x0 + xx * u + xy * v + dx[column], 0.F), kLast));
      ys[column] = static_cast<int>(256 * std::min(std::max(y0 + yx * u + yy * v + dy[column], 0.F), kLast));
    }
    for (int column = 0; column < kSide; ++column) {
      const uint8_t* const upper = padded.data() + (ys[column] >> 8) * kPaddedSide + (xs[column] >> 8);
      const uint8_t* const lower = upper + kPaddedSide;
      const int right = xs[column] & 255;
      const int down = ys[column] & 255;
      const int above = upper[0] * (256 - right) + upper[1] * right;
      const int below = lower[0] * (256 - right) + lower[1] * right;
      to[row * kSide + column] = static_cast<uint8_t>((above * (256 - down) + below * down + (1 << 15)) >> 16);
    }
  }
}

}  // namespace tutti
