#include "datasets/synthetic_hums.h"

#include <array>
#include <cmath>
#include <numbers>

#include "datasets/sound/drawn_sounds.h"

namespace miniqat::datasets {
namespace {

enum HumClass : std::int32_t { kHealthy, kBearing, kShaft, kWhine };
constexpr int kHarmonics = 24;

double wave(double cycles) { return std::sin(2 * std::numbers::pi * cycles); }

/// The hum at a speed of so many turns a second: one turn's sound, again and again. Load moves the harmonics'
/// strengths.
void draw_hum(double speed, Random& random, std::span<float> samples) {
  std::array<double, 1024> turn{};
  const double load = random.uniform(0.9f, 1.2f);
  for (int k = 1; k <= kHarmonics; ++k) {
    const double strength = 0.1 * std::pow(k, -load) * (k % 3 == 0 ? 1.5 : 1) * random.uniform(0.8f, 1.2f);
    const double phase = random.uniform();
    for (std::size_t i = 0; i < turn.size(); ++i)
      turn[i] += strength * wave(k * static_cast<double>(i) / static_cast<double>(turn.size()) + phase);
  }
  Resonator fan(random.uniform(550, 650), 400);
  const double flow = random.uniform(0.001f, 0.0015f), sway = random.uniform(0, 0.1f);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double t = static_cast<double>(i) / kDrawnRate, turns = speed * t;
    const double hum = turn[static_cast<std::size_t>((turns - std::floor(turns)) * static_cast<double>(turn.size()))];
    samples[i] += static_cast<float>((1 + sway * wave(1.3 * t)) * hum + flow * fan.next(random.uniform(-1, 1)));
  }
}

/// Each fault has a strength from hardly there to plain.
void draw_fault(std::int32_t fault, double speed, Random& random, std::span<float> samples) {
  const double strength = 0.1 * std::pow(10, random.uniform(-1, 0));
  Resonator ring(random.uniform(2500, 4000), 150);
  const double pitch = random.uniform(900, 3000);
  double blow = random.uniform();
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double t = static_cast<double>(i) / kDrawnRate;
    double sound = 0;
    if (fault == kBearing) {
      blow += 3.58 * speed / kDrawnRate;
      sound = 0.7 * ring.next(blow >= 1 ? 1 : 0);
      blow -= std::floor(blow);
    } else if (fault == kShaft) {
      sound = (1 + wave(speed * t / 8)) * (wave(0.5 * speed * t) + wave(2.5 * speed * t));
    } else {
      sound = wave(pitch * t);
    }
    samples[i] += static_cast<float>(strength * sound);
  }
}

void draw_machine(std::int32_t label, Random& random, std::span<float> samples) {
  const double speed = random.uniform(46, 54);
  draw_hum(speed, random, samples);
  if (label != kHealthy) draw_fault(label, speed, random, samples);
}

/// Every second recording to test is normal, the others have the faults in turns.
std::int32_t label_of(Part part, std::int64_t number) {
  if (part == Part::kTrain || number % 2 == 0) return kHealthy;
  return kBearing + static_cast<std::int32_t>(number % 6 / 2);
}

}  // namespace

Splits synthetic_hums(const LoadOptions& options) {
  return draw_sounds({.name = "synthetic-hums",
                      .classes = {"normal", "bearing", "shaft", "whine"},
                      .seconds = 2,
                      .train_size = 300,
                      .test_size = 300,
                      .snr_db = kHumsSnrDb,
                      .front_end = anomaly_detector(),
                      .label = label_of,
                      .draw = draw_machine},
                     options);
}

}  // namespace miniqat::datasets
