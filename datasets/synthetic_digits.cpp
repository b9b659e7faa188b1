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
#include "datasets/digit_glyphs.h"

namespace miniqat::datasets {

namespace {

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
  return {draw_split("train", options.seed, options.train_size), draw_split("test", options.seed, options.test_size)};
}

}  // namespace miniqat::datasets
