// Digits drawn by a program, so that a first training run needs no files.
//
// A *glyph* is one way to write a digit: strokes through control points in a unit box, y pointing down. An image takes
// a glyph, bends it by a smooth random field, shakes each control point a little, slants, turns, scales and shifts it
// into the 28×28 *canvas*, and inks every pixel by its distance to the nearest stroke. All of it follows from a hash of
// (seed, split, index) and uses only operations that IEEE 754 rounds exactly, so every machine draws the same bytes.

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <vector>

#include "data/pixels.h"
#include "data/random.h"
#include "data/sources.h"

namespace tutti {
namespace {

constexpr int64_t kDefaultTrain = 20000;
constexpr int64_t kDefaultTest = 4000;
constexpr int64_t kMaxCachedImages = 400000;  // 300 MiB
constexpr int kClasses = 10;
constexpr int kSide = static_cast<int>(kDigitSide);

struct Point {
  float x;
  float y;
};

enum class Shape { kLines, kCurve };

struct Stroke {
  Shape shape;
  std::vector<Point> points;
};

using Glyph = std::vector<Stroke>;

const std::array<std::vector<Glyph>, kClasses>& glyphs() {
  // Points side by side are easier to compare than one to a line.
  // clang-format off
  static const auto* const table = new std::array<std::vector<Glyph>, kClasses>{{
      // 0: a loop, closed at the top or with the ends crossing
      {{{Shape::kCurve,
         {{.52F, 0}, {.18F, .14F}, {.05F, .52F}, {.22F, .9F}, {.52F, 1}, {.86F, .82F}, {.95F, .45F}, {.78F, .1F},
          {.5F, 0}}}},
       {{Shape::kCurve,
         {{.7F, .08F}, {.35F, .02F}, {.08F, .3F}, {.08F, .72F}, {.4F, 1}, {.8F, .88F}, {.95F, .5F}, {.82F, .16F},
          {.5F, .06F}, {.3F, .12F}}}}},
      // 1: a bar, with a flag, with flag and foot
      {{{Shape::kLines, {{.5F, 0}, {.5F, .5F}, {.5F, 1}}}},
       {{Shape::kLines, {{.24F, .24F}, {.54F, 0}, {.54F, 1}}}},
       {{Shape::kLines, {{.26F, .2F}, {.52F, 0}, {.52F, 1}}}, {Shape::kLines, {{.2F, 1}, {.84F, 1}}}}},
      // 2: with a sharp corner or a loop at the bottom
      {{{Shape::kCurve,
         {{.1F, .25F}, {.3F, .03F}, {.66F, .02F}, {.87F, .24F}, {.74F, .5F}, {.38F, .78F}, {.06F, .99F}}},
        {Shape::kLines, {{.06F, .99F}, {.94F, .97F}}}},
       {{Shape::kCurve,
         {{.12F, .2F}, {.4F, 0}, {.8F, .1F}, {.8F, .4F}, {.5F, .75F}, {.2F, .98F}, {.05F, .9F}, {.2F, .76F},
          {.5F, .88F}, {.75F, 1}, {.98F, .9F}}}}},
      // 3: round, or with a flat top
      {{{Shape::kCurve, {{.12F, .12F}, {.45F, 0}, {.8F, .1F}, {.8F, .34F}, {.38F, .47F}}},
        {Shape::kCurve, {{.38F, .47F}, {.82F, .56F}, {.92F, .8F}, {.55F, 1}, {.06F, .9F}}}},
       {{Shape::kLines, {{.1F, .02F}, {.86F, .02F}, {.42F, .4F}}},
        {Shape::kCurve, {{.42F, .4F}, {.84F, .5F}, {.9F, .8F}, {.5F, 1}, {.08F, .9F}}}}},
      // 4: closed, or open at the top
      {{{Shape::kLines, {{.7F, 0}, {.05F, .65F}, {.97F, .65F}}}, {Shape::kLines, {{.7F, 0}, {.7F, 1}}}},
       {{Shape::kLines, {{.18F, .03F}, {.1F, .5F}, {.9F, .5F}}}, {Shape::kLines, {{.82F, 0}, {.76F, 1}}}},
       {{Shape::kCurve, {{.2F, .02F}, {.1F, .35F}, {.25F, .54F}, {.6F, .52F}, {.85F, .42F}}},
        {Shape::kCurve, {{.86F, .0F}, {.84F, .5F}, {.72F, 1}}}}},
      // 5: in one go, or with the hat as a stroke of its own
      {{{Shape::kLines, {{.86F, .02F}, {.24F, .02F}, {.16F, .46F}}},
        {Shape::kCurve, {{.16F, .46F}, {.5F, .36F}, {.85F, .5F}, {.9F, .78F}, {.55F, 1}, {.08F, .92F}}}},
       {{Shape::kCurve,
         {{.28F, .04F}, {.22F, .42F}, {.55F, .4F}, {.88F, .58F}, {.82F, .88F}, {.45F, 1}, {.08F, .9F}}},
        {Shape::kLines, {{.26F, .04F}, {.92F, .06F}}}}},
      // 6: with a bent or a nearly straight neck
      {{{Shape::kCurve,
         {{.76F, .02F}, {.36F, .22F}, {.1F, .6F}, {.17F, .9F}, {.5F, 1}, {.86F, .86F}, {.8F, .58F}, {.46F, .5F},
          {.14F, .7F}}}},
       {{Shape::kCurve,
         {{.5F, 0}, {.24F, .35F}, {.12F, .72F}, {.3F, .97F}, {.65F, .98F}, {.84F, .76F}, {.62F, .57F}, {.3F, .62F},
          {.16F, .8F}}}}},
      // 7: plain, with a bar, or bent
      {{{Shape::kLines, {{.08F, .04F}, {.92F, .03F}, {.4F, 1}}}},
       {{Shape::kLines, {{.08F, .04F}, {.9F, .03F}, {.42F, 1}}}, {Shape::kLines, {{.28F, .52F}, {.84F, .5F}}}},
       {{Shape::kCurve, {{.06F, .2F}, {.1F, .05F}, {.5F, .06F}, {.9F, .02F}}},
        {Shape::kCurve, {{.9F, .02F}, {.62F, .36F}, {.48F, .7F}, {.44F, 1}}}}},
      // 8: in one go, or as two loops
      {{{Shape::kCurve,
         {{.8F, .14F}, {.48F, 0}, {.16F, .14F}, {.28F, .38F}, {.7F, .58F}, {.88F, .82F}, {.5F, 1}, {.12F, .82F},
          {.3F, .57F}, {.68F, .4F}, {.85F, .2F}, {.76F, .08F}}}},
       {{Shape::kCurve, {{.5F, .46F}, {.2F, .34F}, {.22F, .08F}, {.5F, 0}, {.78F, .08F}, {.8F, .34F}, {.5F, .46F}}},
        {Shape::kCurve,
         {{.5F, .46F}, {.14F, .6F}, {.12F, .88F}, {.5F, 1}, {.88F, .88F}, {.86F, .6F}, {.5F, .46F}}}}},
      // 9: with a straight or a curled tail
      {{{Shape::kCurve, {{.86F, .18F}, {.52F, 0}, {.14F, .16F}, {.16F, .44F}, {.5F, .52F}, {.82F, .36F}, {.87F, .14F}}},
        {Shape::kCurve, {{.87F, .14F}, {.85F, .6F}, {.7F, 1}}}},
       {{Shape::kCurve,
         {{.84F, .14F}, {.46F, 0}, {.12F, .22F}, {.28F, .5F}, {.68F, .44F}, {.86F, .16F}, {.88F, .5F}, {.76F, .88F},
          {.42F, 1}, {.12F, .9F}}}}},
  }};
  // clang-format on
  return *table;
}

/// A smooth bend of the unit box: each coordinate moves by a random quadratic of the position.
struct Bend {
  std::array<float, 5> x;
  std::array<float, 5> y;

  explicit Bend(PortableRandom& random) {
    for (float& coefficient : x) coefficient = random.bell(.13F);
    for (float& coefficient : y) coefficient = random.bell(.10F);
  }
  static float shift(const std::array<float, 5>& c, float u, float v) {
    return c[0] * u + c[1] * v + c[2] * u * v + c[3] * (u * u - .08F) + c[4] * (v * v - .08F);
  }
  Point operator()(Point p) const {
    const float u = p.x - .5F;
    const float v = p.y - .5F;
    return {p.x + shift(x, u, v), p.y + shift(y, u, v)};
  }
};

/// From the unit box to canvas pixels: slant, turn, scale, shift.
struct Placement {
  float xx, xy, yx, yy, x0, y0;

  explicit Placement(PortableRandom& random) {
    const float half_turn = random.bell(.065F);  // tan of half the angle: a rotation without sine and cosine
    const float norm = 1 / (1 + half_turn * half_turn);
    const float cosine = (1 - half_turn * half_turn) * norm;
    const float sine = 2 * half_turn * norm;
    const float slant = .08F + random.bell(.16F);
    const float height = random.between(15, 21);
    const float width = height * random.between(.48F, .88F);
    xx = width * cosine;
    xy = -height * (slant * cosine + sine);
    yx = width * sine;
    yy = height * (cosine - slant * sine);
    x0 = 14 + random.bell(1.1F);
    y0 = 14 + random.bell(1.0F);
  }
  Point operator()(Point p) const {
    const float u = p.x - .5F;
    const float v = p.y - .5F;
    return {x0 + xx * u + xy * v, y0 + yx * u + yy * v};
  }
};

/// For every pixel, the smallest squared distance of its middle to a line drawn so far, in units of the pen's radius.
class Canvas {
 public:
  Canvas() { nearest_.fill(kFar); }

  void draw_line(Point from, Point to, float radius, float reach) {
    const int top = std::max(0, static_cast<int>(std::min(from.y, to.y) - reach));
    const int bottom = std::min(kSide - 1, static_cast<int>(std::max(from.y, to.y) + reach));
    const int left = std::max(0, static_cast<int>(std::min(from.x, to.x) - reach));
    const int right = std::min(kSide - 1, static_cast<int>(std::max(from.x, to.x) + reach));
    const float dx = to.x - from.x;
    const float dy = to.y - from.y;
    const float per_length = 1 / std::max(dx * dx + dy * dy, 1e-6F);
    const float per_radius = 1 / (radius * radius);
    for (int row = top; row <= bottom; ++row) {
      float* const line = nearest_.data() + row * kSide;
      const float py = static_cast<float>(row) + .5F - from.y;
      for (int column = left; column <= right; ++column) {
        const float px = static_cast<float>(column) + .5F - from.x;
        const float along = std::min(std::max((px * dx + py * dy) * per_length, 0.F), 1.F);
        const float ex = px - along * dx;
        const float ey = py - along * dy;
        line[column] = std::min(line[column], (ex * ex + ey * ey) * per_radius);
      }
    }
  }

  const std::array<float, kDigitPixels>& nearest() const { return nearest_; }

 private:
  static constexpr float kFar = 1e6F;
  std::array<float, kDigitPixels> nearest_;
};

/// The point at `t` in [0, 1] between b and c of the Catmull-Rom curve through a, b, c, d.
Point on_curve(Point a, Point b, Point c, Point d, float t) {
  const auto blend = [t](float p, float q, float r, float s) {
    return q + .5F * t * (r - p + t * (2 * p - 5 * q + 4 * r - s + t * (3 * (q - r) + s - p)));
  };
  return {blend(a.x, b.x, c.x, d.x), blend(a.y, b.y, c.y, d.y)};
}

void draw_digit(int digit, PortableRandom random, uint8_t* pixels) {
  const std::vector<Glyph>& ways = glyphs()[static_cast<size_t>(digit)];
  const Glyph& glyph = ways[random.below(ways.size())];
  const Bend bend(random);
  const Placement place(random);
  const float radius = random.between(.75F, 1.75F);
  const float softness = random.between(.5F, 1.1F);
  const float reach = radius * 1.25F + softness + 1;

  Canvas canvas;
  std::array<Point, 16> points;
  for (const Stroke& stroke : glyph) {
    const size_t count = stroke.points.size();
    for (size_t i = 0; i < count; ++i) {
      const Point bent = bend(stroke.points[i]);
      const float shake_x = random.bell(.022F);
      points[i] = place({bent.x + shake_x, bent.y + random.bell(.018F)});
    }
    // The pen presses harder at one end than at the other.
    const float pressure = random.between(.8F, 1.2F);
    const float change = (2 - 2 * pressure) / static_cast<float>(count);
    for (size_t i = 0; i + 1 < count; ++i) {
      const float here = radius * (pressure + change * static_cast<float>(i));
      if (stroke.shape == Shape::kLines) {
        canvas.draw_line(points[i], points[i + 1], here, reach);
        continue;
      }
      const Point before = points[i > 0 ? i - 1 : i];
      const Point after = points[i + 2 < count ? i + 2 : i + 1];
      constexpr int kPieces = 4;
      Point from = points[i];
      for (int piece = 1; piece <= kPieces; ++piece) {
        const Point to = on_curve(before, points[i], points[i + 1], after, static_cast<float>(piece) / kPieces);
        canvas.draw_line(from, to, here, reach);
        from = to;
      }
    }
  }

  const float ink = random.between(190, 290);
  const float noise = random.unit() * random.unit() * .22F;  // grey levels per step of a random byte
  const float edge = .5F + radius / (2 * softness);
  const float per_softness = radius / (2 * softness);
  std::array<uint8_t, kDigitPixels> grain;
  static_assert(kDigitPixels % 8 == 0);
  for (size_t i = 0; i < grain.size(); i += 8) {
    const uint64_t bits = random.bits();
    for (size_t byte = 0; byte < 8; ++byte) grain[i + byte] = static_cast<uint8_t>(bits >> (8 * byte));
  }
  for (size_t i = 0; i < grain.size(); ++i) {
    const float cover = std::min(std::max(edge - std::sqrt(canvas.nearest()[i]) * per_softness, 0.F), 1.F);
    const float level = cover * ink + (static_cast<float>(grain[i]) - 128) * noise;
    pixels[i] = static_cast<uint8_t>(std::min(std::max(level, 0.F), 255.F));
  }
}

/// Images are drawn when first asked for and then kept as bytes: drawing one costs about as much as the rest of its
/// loading costs thirty times.
class Digits : public Dataset {
 public:
  Digits(int64_t size, uint64_t seed, uint64_t split) : size_(size), seed_(seed), split_(split) {
    if (size > kMaxCachedImages) return;
    cache_.resize(static_cast<size_t>(size * kDigitPixels));
    states_ = std::make_unique<std::atomic<uint8_t>[]>(static_cast<size_t>(size));
    for (int64_t i = 0; i < size; ++i) states_[i].store(kEmpty, std::memory_order_relaxed);
  }

  const std::string& name() const override { return name_; }
  int64_t size() const override { return size_; }
  SampleTraits traits() const override { return digit_traits(); }
  void encode(std::string_view content, const std::string& input, int64_t row, Batch& batch) const override {
    encode_digit(content, input, row, batch);
  }
  bool varies() const override { return false; }

  void load(Pick pick, int64_t row, Batch& batch) const override {
    const int64_t index = pick.index;
    const int label = static_cast<int>(index % kClasses);
    uint8_t* const kept = cache_.empty() ? nullptr : cache_.data() + index * kDigitPixels;
    if (kept != nullptr && states_[index].load(std::memory_order_acquire) == kDrawn) {
      store_digit(kept, label, row, batch);
      return;
    }
    std::array<uint8_t, kDigitPixels> pixels;
    draw_digit(label, PortableRandom(seed_, split_, static_cast<uint64_t>(index)), pixels.data());
    store_digit(pixels.data(), label, row, batch);
    // Whoever comes first keeps it; others may meet here only with the same image.
    uint8_t empty = kEmpty;
    if (kept != nullptr && states_[index].compare_exchange_strong(empty, kBeingKept)) {
      std::copy(pixels.begin(), pixels.end(), kept);
      states_[index].store(kDrawn, std::memory_order_release);
    }
  }

 private:
  static constexpr uint8_t kEmpty = 0;
  static constexpr uint8_t kBeingKept = 1;
  static constexpr uint8_t kDrawn = 2;

  const std::string name_ = "digits";
  const int64_t size_;
  const uint64_t seed_;
  const uint64_t split_;
  mutable std::vector<uint8_t> cache_;  // an image's bytes are written once, by whoever sets its state
  mutable std::unique_ptr<std::atomic<uint8_t>[]> states_;
};

}  // namespace

TrainTest open_digits(const DataOptions& options) {
  const auto size_or = [](int64_t size, int64_t fallback) { return size > 0 ? size : fallback; };
  return {std::make_shared<Digits>(size_or(options.train_size, kDefaultTrain), options.seed, 0),
          std::make_shared<Digits>(size_or(options.test_size, kDefaultTest), options.seed, 1)};
}

}  // namespace tutti
