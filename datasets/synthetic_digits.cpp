#include "datasets/synthetic_digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensors/random.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"

namespace miniqat::datasets {
namespace {

/// A point that a pen passes through, in a unit box, x to the right and y downwards. The line is smooth there unless
/// it is a corner.
struct PenPoint {
  float x = 0;
  float y = 0;
  bool corner = false;
};

/// From pen down to pen up.
using PenStroke = std::vector<PenPoint>;

/// One way of writing a digit.
using Glyph = std::vector<PenStroke>;

constexpr bool kCorner = true;

// clang-format off
std::vector<Glyph> zero() {
  return {
    {{{.55f, .03f}, {.25f, .16f}, {.12f, .50f}, {.26f, .86f}, {.52f, .97f}, {.78f, .82f}, {.88f, .48f}, {.76f, .15f},
      {.50f, .04f}}},
    {{{.72f, .12f}, {.40f, .06f}, {.14f, .34f}, {.14f, .72f}, {.42f, .96f}, {.76f, .80f}, {.86f, .42f}, {.70f, .10f},
      {.52f, .08f}}},
    {{{.40f, .06f}, {.22f, .30f}, {.18f, .70f}, {.40f, .96f}, {.66f, .84f}, {.76f, .46f}, {.66f, .14f}, {.36f, .06f},
      {.26f, .20f}}},
  };
}

std::vector<Glyph> one() {
  return {
    {{{.50f, .02f}, {.50f, .50f}, {.50f, .98f}}},
    {{{.58f, .02f}, {.50f, .50f}, {.44f, .98f}}},
    {{{.30f, .24f}, {.54f, .03f, kCorner}, {.53f, .50f}, {.52f, .98f}}},
    {{{.32f, .22f}, {.54f, .03f, kCorner}, {.52f, .50f}, {.52f, .96f}},
     {{.28f, .96f}, {.52f, .97f}, {.76f, .95f}}},
  };
}

std::vector<Glyph> two() {
  return {
    {{{.18f, .24f}, {.36f, .05f}, {.68f, .08f}, {.78f, .30f}, {.58f, .60f}, {.16f, .95f, kCorner}, {.50f, .94f},
      {.86f, .94f}}},
    {{{.16f, .20f}, {.42f, .03f}, {.74f, .16f}, {.72f, .44f}, {.44f, .78f}, {.20f, .94f}, {.12f, .82f}, {.30f, .76f},
      {.58f, .92f}, {.88f, .90f}}},
    {{{.20f, .14f}, {.50f, .04f}, {.76f, .20f}, {.66f, .52f}, {.34f, .84f}, {.16f, .94f, kCorner}, {.46f, .88f},
      {.70f, .96f}, {.90f, .86f}}},
  };
}

std::vector<Glyph> three() {
  return {
    {{{.20f, .14f}, {.48f, .03f}, {.76f, .18f}, {.66f, .40f}, {.42f, .48f, kCorner}, {.72f, .56f}, {.80f, .78f},
      {.54f, .97f}, {.18f, .88f}}},
    {{{.18f, .06f}, {.48f, .05f}, {.78f, .06f, kCorner}, {.60f, .26f}, {.44f, .42f, kCorner}, {.74f, .52f},
      {.80f, .76f}, {.52f, .97f}, {.16f, .86f}}},
    {{{.24f, .10f}, {.54f, .04f}, {.74f, .20f}, {.56f, .42f}, {.44f, .46f}, {.56f, .50f}, {.76f, .66f}, {.64f, .92f},
      {.34f, .97f}, {.16f, .84f}}},
  };
}

std::vector<Glyph> four() {
  return {
    {{{.28f, .06f}, {.20f, .32f}, {.16f, .56f, kCorner}, {.50f, .56f}, {.86f, .54f}},
     {{.70f, .10f}, {.66f, .54f}, {.64f, .98f}}},
    {{{.66f, .98f}, {.67f, .50f}, {.68f, .03f, kCorner}, {.40f, .34f}, {.12f, .66f, kCorner}, {.50f, .66f},
      {.90f, .65f}}},
    {{{.24f, .06f}, {.18f, .34f}, {.34f, .50f}, {.60f, .48f}, {.74f, .36f}},
     {{.78f, .06f}, {.72f, .44f}, {.66f, .98f}}},
    {{{.34f, .04f}, {.24f, .28f}, {.14f, .52f, kCorner}, {.44f, .52f}, {.84f, .50f}},
     {{.58f, .26f}, {.56f, .60f}, {.54f, .98f}}},
  };
}

std::vector<Glyph> five() {
  return {
    {{{.80f, .05f}, {.52f, .06f}, {.26f, .06f, kCorner}, {.24f, .24f}, {.22f, .44f, kCorner}, {.52f, .36f},
      {.80f, .56f}, {.74f, .84f}, {.44f, .97f}, {.14f, .86f}}},
    {{{.32f, .06f}, {.28f, .26f}, {.26f, .46f, kCorner}, {.56f, .40f}, {.78f, .60f}, {.68f, .88f}, {.40f, .97f},
      {.16f, .88f}},
     {{.32f, .07f}, {.56f, .08f}, {.86f, .04f}}},
    {{{.86f, .06f}, {.56f, .08f}, {.38f, .12f}, {.28f, .34f}, {.42f, .46f}, {.64f, .58f}, {.66f, .82f}, {.42f, .96f},
      {.14f, .90f}}},
  };
}

std::vector<Glyph> six() {
  return {
    {{{.66f, .03f}, {.36f, .24f}, {.18f, .58f}, {.26f, .88f}, {.54f, .97f}, {.78f, .82f}, {.74f, .60f}, {.50f, .52f},
      {.26f, .66f}}},
    {{{.50f, .02f}, {.28f, .32f}, {.18f, .66f}, {.32f, .94f}, {.62f, .94f}, {.76f, .72f}, {.58f, .54f}, {.34f, .62f},
      {.24f, .82f}}},
    {{{.78f, .10f}, {.52f, .06f}, {.26f, .32f}, {.16f, .66f}, {.36f, .95f}, {.68f, .90f}, {.78f, .68f}, {.54f, .54f},
      {.22f, .68f}}},
  };
}

std::vector<Glyph> seven() {
  return {
    {{{.14f, .07f}, {.48f, .06f}, {.84f, .06f, kCorner}, {.62f, .46f}, {.44f, .98f}}},
    {{{.14f, .09f}, {.48f, .06f}, {.82f, .07f, kCorner}, {.60f, .48f}, {.42f, .98f}},
     {{.34f, .50f}, {.56f, .49f}, {.78f, .47f}}},
    {{{.18f, .22f}, {.18f, .08f, kCorner}, {.50f, .09f}, {.80f, .05f, kCorner}, {.70f, .40f}, {.60f, .98f}}},
    {{{.12f, .16f}, {.36f, .06f}, {.70f, .08f}, {.80f, .18f}, {.62f, .52f}, {.46f, .98f}}},
  };
}

std::vector<Glyph> eight() {
  return {
    {{{.74f, .16f}, {.48f, .03f}, {.24f, .18f}, {.40f, .42f}, {.68f, .60f}, {.74f, .84f}, {.46f, .97f}, {.20f, .82f},
      {.34f, .58f}, {.64f, .40f}, {.76f, .18f}, {.62f, .06f}}},
    {{{.50f, .46f}, {.26f, .32f}, {.32f, .08f}, {.62f, .05f}, {.74f, .26f}, {.52f, .46f}, {.24f, .66f}, {.26f, .92f},
      {.58f, .97f}, {.78f, .78f}, {.66f, .56f}, {.48f, .46f}}},
    {{{.52f, .46f}, {.28f, .38f}, {.26f, .12f}, {.52f, .03f}, {.74f, .16f}, {.70f, .38f}, {.50f, .47f}},
     {{.50f, .47f}, {.22f, .62f}, {.22f, .88f}, {.52f, .97f}, {.80f, .84f}, {.76f, .60f}, {.52f, .48f}}},
  };
}

std::vector<Glyph> nine() {
  return {
    {{{.74f, .24f}, {.54f, .04f}, {.26f, .16f}, {.24f, .42f}, {.50f, .50f}, {.74f, .28f, kCorner}, {.72f, .62f},
      {.68f, .98f}}},
    {{{.76f, .18f}, {.48f, .04f}, {.22f, .22f}, {.30f, .46f}, {.58f, .46f}, {.76f, .20f}, {.74f, .60f}, {.58f, .90f},
      {.24f, .94f}}},
    {{{.68f, .30f}, {.62f, .06f}, {.34f, .08f}, {.24f, .34f}, {.44f, .50f}, {.66f, .36f}, {.72f, .10f, kCorner},
      {.66f, .50f}, {.50f, .98f}}},
  };
}
// clang-format on

/// The ways in which people write a digit, 0 to 9.
std::span<const Glyph> glyphs_of(int digit) {
  static const std::array<std::vector<Glyph>, 10> glyphs = {zero(), one(), two(),   three(), four(),
                                                            five(), six(), seven(), eight(), nine()};
  return glyphs.at(static_cast<std::size_t>(digit));
}

constexpr int kDigitSide = 28;
constexpr int kDigits = 10;
constexpr std::int64_t kMaxSize = 1000000;
/// Straight pieces that the curve between two points of a stroke is drawn with.
constexpr int kPieces = 6;

using Canvas = std::array<float, kDigitSide * kDigitSide>;

struct Point {
  float x = 0;
  float y = 0;
};

Point operator+(Point a, Point b) { return {a.x + b.x, a.y + b.y}; }
Point operator-(Point a, Point b) { return {a.x - b.x, a.y - b.y}; }
Point operator*(float s, Point a) { return {s * a.x, s * a.y}; }
float dot(Point a, Point b) { return a.x * b.x + a.y * b.y; }

/// How one image is written: one draw from all hands, pens and moods.
struct Hand {
  /// Unit box to pixels: centre + (column_x, column_y) * (point - 0.5).
  Point column_x, column_y, centre;
  /// Standard deviation of every pen point, in the unit box.
  float wobble = 0;
  /// Half the width of the line at the ends of a stroke, and of its soft edge, in pixels.
  float radius_begin = 0, radius_end = 0, softness = 0;
  /// Brightness of the ink and standard deviation of the noise in it, in [0, 1].
  float ink = 1, grain = 0;

  Point place(Point p) const { return centre + (p.x - 0.5f) * column_x + (p.y - 0.5f) * column_y; }
};

Hand draw_hand(Random& random) {
  // Cubed, so that most images are neat and few are hard to read.
  const float carelessness = std::pow(random.uniform(), 3.0f);
  const float angle = (0.08f + 0.10f * carelessness) * random.normal();
  const float slant = 0.08f + (0.16f + 0.10f * carelessness) * random.normal();
  const float height = random.uniform(16.5f, 21.0f);
  const float width = height * random.uniform(0.55f, 0.98f);

  Hand hand;
  hand.column_x = {width * std::cos(angle), width * std::sin(angle)};
  hand.column_y = {-height * (std::sin(angle) + slant), height * std::cos(angle)};
  hand.centre = {13.5f + (0.7f + carelessness) * random.normal(), 13.5f + (0.7f + carelessness) * random.normal()};
  hand.wobble = 0.016f + 0.044f * carelessness;
  hand.radius_begin = random.uniform(0.55f, 1.55f);
  hand.radius_end = std::max(0.45f, hand.radius_begin * random.uniform(0.7f, 1.2f));
  hand.softness = random.uniform(0.5f, 1.0f);
  hand.ink = random.uniform(0.65f, 1.0f);
  hand.grain = random.uniform(0.0f, 0.12f);
  return hand;
}

/// A line from a to b whose half width changes from radius_a to radius_b. Where lines cross the brighter one shows.
void draw_line(Canvas& canvas, Point a, Point b, float radius_a, float radius_b, float softness) {
  const float reach = std::max(radius_a, radius_b) + softness;
  const auto first = [&](float low) { return std::clamp(static_cast<int>(std::floor(low - reach)), 0, kDigitSide); };
  const auto past = [&](float high) {
    return std::clamp(static_cast<int>(std::ceil(high + reach)) + 1, 0, kDigitSide);
  };
  const Point along = b - a;
  const float length_squared = std::max(dot(along, along), 1e-12f);
  for (int y = first(std::min(a.y, b.y)); y < past(std::max(a.y, b.y)); ++y) {
    for (int x = first(std::min(a.x, b.x)); x < past(std::max(a.x, b.x)); ++x) {
      const Point from_a = Point{static_cast<float>(x), static_cast<float>(y)} - a;
      const float t = std::clamp(dot(from_a, along) / length_squared, 0.0f, 1.0f);
      const Point away = from_a - t * along;
      const float radius = radius_a + t * (radius_b - radius_a);
      const float inside = (radius + softness - std::sqrt(dot(away, away))) / (2 * softness);
      float& pixel = canvas[y * kDigitSide + x];
      pixel = std::max(pixel, std::clamp(inside, 0.0f, 1.0f));
    }
  }
}

/// The cubic Hermite curve from p to q with the tangents d_p and d_q.
Point on_curve(Point p, Point q, Point d_p, Point d_q, float t) {
  const float s = 1 - t;
  return (s * s * (1 + 2 * t)) * p + (s * s * t) * d_p + (t * t * (3 - 2 * t)) * q - (t * t * s) * d_q;
}

/// A Catmull-Rom spline through the points of the stroke, resting at corners, each point moved by the hand's wobble.
void draw_stroke(Canvas& canvas, const PenStroke& stroke, const Hand& hand, Random& random) {
  const int last = static_cast<int>(stroke.size()) - 1;
  std::vector<Point> points;
  for (const PenPoint& point : stroke) {
    const float dx = hand.wobble * random.normal(), dy = hand.wobble * random.normal();
    points.push_back(hand.place({point.x + dx, point.y + dy}));
  }
  const auto tangent = [&](int i) {
    if (stroke[i].corner) return Point{};
    return 0.5f * (points[std::min(i + 1, last)] - points[std::max(i - 1, 0)]);
  };
  const auto radius = [&](float position) {
    return hand.radius_begin + position / static_cast<float>(last) * (hand.radius_end - hand.radius_begin);
  };
  for (int i = 0; i < last; ++i) {
    Point from = points[i];
    for (int piece = 1; piece <= kPieces; ++piece) {
      const float t = static_cast<float>(piece) / kPieces;
      const Point to = on_curve(points[i], points[i + 1], tangent(i), tangent(i + 1), t);
      const float begin = static_cast<float>(i) + t - 1.0f / kPieces;
      draw_line(canvas, from, to, radius(begin), radius(begin + 1.0f / kPieces), hand.softness);
      from = to;
    }
  }
}

/// Now and then something that does not belong to the digit: a slip of the pen at the border of the image.
void draw_clutter(Canvas& canvas, const Hand& hand, Random& random) {
  if (random.uniform() > 0.12f) return;
  const float around = random.uniform(0.0f, 6.2831853f);
  const Point start = Point{13.5f, 13.5f} + random.uniform(10.0f, 14.0f) * Point{std::cos(around), std::sin(around)};
  const Point end = start + Point{random.uniform(-3.0f, 3.0f), random.uniform(-3.0f, 3.0f)};
  draw_line(canvas, start, end, hand.radius_begin, hand.radius_end, hand.softness);
}

void draw_digit(int digit, std::uint64_t key, std::uint8_t* pixels) {
  Random random(key);
  const Hand hand = draw_hand(random);
  const std::span<const Glyph> glyphs = glyphs_of(digit);
  Canvas canvas{};
  for (const PenStroke& stroke : glyphs[random.below(glyphs.size())]) draw_stroke(canvas, stroke, hand, random);
  draw_clutter(canvas, hand, random);
  for (std::size_t i = 0; i < canvas.size(); ++i) {
    const float noise = canvas[i] > 0 ? hand.grain * random.uniform(-1.7f, 1.7f) : 0;
    pixels[i] = static_cast<std::uint8_t>(std::clamp(255 * hand.ink * canvas[i] * (1 + noise), 0.0f, 255.0f));
  }
}

Dataset draw_split(std::string_view split, std::uint64_t seed, std::int64_t size) {
  if (size < 1 || size > kMaxSize)
    fail("synthetic digits: the ", split, " split must have 1 to ", kMaxSize, " images, not ", size);
  const std::uint64_t key = mix(hash_text(concat("datasets/synthetic_digits/", split)), seed);
  Dataset dataset{.name = "synthetic", .classes = kDigits};
  dataset.images = Tensor(Shape{size, kDigitSide, kDigitSide, 1}, DType::kUInt8);
  dataset.labels = Tensor(Shape{size}, DType::kInt32);
  const std::span<std::int32_t> labels = dataset.labels.values<std::int32_t>();
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % kDigits);
  Random random(key);
  for (std::size_t left = labels.size(); left > 1; --left) std::swap(labels[left - 1], labels[random.below(left)]);

  std::uint8_t* pixels = dataset.images.data<std::uint8_t>();
  parallel_for(size, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      draw_digit(labels[i], mix(key, static_cast<std::uint64_t>(i) + 1), pixels + i * kDigitSide * kDigitSide);
  });
  return dataset;
}

}  // namespace

Splits synthetic_digits(const LoadOptions& options) {
  return {draw_split("train", options.seed, options.train_size.value_or(12000)),
          draw_split("test", options.seed, options.test_size.value_or(10000))};
}

}  // namespace miniqat::datasets
