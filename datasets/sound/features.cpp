#include "datasets/sound/features.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <unsupported/Eigen/FFT>

#include "core/text/error.h"

namespace miniqat::datasets {
namespace {

constexpr double kLeastPower = 1e-10;

double mel_of(double hertz, MelScale scale) {
  if (scale == MelScale::kHtk) return 2595 * std::log10(1 + hertz / 700);
  return hertz < 1000 ? 3 * hertz / 200 : 15 + 27 * std::log(hertz / 1000) / std::log(6.4);
}
double hertz_of(double mel, MelScale scale) {
  if (scale == MelScale::kHtk) return 700 * (std::pow(10, mel / 2595) - 1);
  return mel < 15 ? 200 * mel / 3 : 1000 * std::pow(6.4, (mel - 15) / 27);
}

void require(bool right, const char* option, double value, const char* rule) {
  if (!right) fail(option, " must be ", rule, ", is ", value);
}

}  // namespace

std::span<const std::string_view> names_of(Features) {
  static constexpr std::string_view kNames[] = {"auto", "raw", "log-mel", "mfcc"};
  return kNames;
}

std::span<const std::string_view> names_of(MelScale) {
  static constexpr std::string_view kNames[] = {"htk", "slaney"};
  return kNames;
}

std::int64_t SoundOptions::samples() const { return std::llround(seconds * static_cast<double>(rate)); }
std::int64_t SoundOptions::window() const { return std::llround(window_ms * static_cast<double>(rate) / 1000); }
std::int64_t SoundOptions::stride() const { return std::llround(stride_ms * static_cast<double>(rate) / 1000); }

std::int64_t SoundOptions::steps(std::int64_t samples) const {
  return samples < window() ? 0 : (samples - window()) / stride() + 1;
}

Shape SoundOptions::shape_of(std::int64_t samples) const {
  if (features == Features::kRaw) return {samples, 1};
  return {steps(samples), features == Features::kMfcc ? coefficients : bands};
}

std::int64_t SoundOptions::example_samples() const {
  return frames == 0 ? samples() : window() + (frames - 1) * stride();
}

void SoundOptions::check() const {
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  require(rate >= 1000 && rate <= 384000, "sample_rate", number(rate), "in 1000..384000");
  require(frames >= 0 && frames <= 10000, "frames", number(frames), "in 0..10000");
  require(seconds <= 3600 && (frames > 0 ? seconds >= 0 : seconds > 0), "seconds", seconds,
          frames > 0 ? "in [0, 3600]" : "in (0, 3600]");
  require(frames == 0 || features != Features::kRaw, "frames", number(frames),
          "0 for raw samples, which have no steps");
  require(silence == 0 || frames == 0, "silence", number(silence), "0 where examples are windows (`frames`)");
  if (features == Features::kRaw) return;
  const auto most = seconds == 0 ? std::numeric_limits<std::int64_t>::max() : samples();
  require(window_ms > 0 && window() >= 2 && window() <= most, "window_ms", window_ms,
          "at least two samples and at most the length of an example (`seconds`)");
  require(stride_ms > 0 && stride() >= 1 && stride() <= most, "stride_ms", stride_ms,
          "at least one sample and at most the length of an example (`seconds`)");
  require(example_samples() <= most, "frames", number(frames), "as many as fit into `seconds`");
  require(bands >= 1 && bands <= 1024, "bands", number(bands), "in 1..1024");
  require(low_hz >= 0 && low_hz < high_hz, "low_hz", low_hz, "from 0 on and below `high_hz`");
  require(2 * high_hz <= number(rate), "high_hz", high_hz, "at most half of `sample_rate`");
  require(features == Features::kLogMel || (coefficients >= 1 && coefficients <= bands), "coefficients",
          number(coefficients), "in 1..`bands`");
}

SoundOptions anomaly_detector(std::int64_t rate) {
  return {.features = Features::kLogMel,
          .rate = rate,
          .seconds = 0,
          .window_ms = 64,
          .stride_ms = 32,
          .bands = 128,
          .low_hz = 0,
          .high_hz = static_cast<double>(rate) / 2,
          .frames = 5};
}

/// Keeps its tables and its memory from window to window.
class FrontEnd::Transform {
 public:
  explicit Transform(std::int64_t size) : samples_(static_cast<std::size_t>(size)) {
    fft_.SetFlag(Eigen::FFT<double>::HalfSpectrum);
  }
  const std::vector<std::complex<double>>& of(std::span<const float> window, std::span<const double> weights) {
    for (std::size_t t = 0; t < window.size(); ++t) samples_[t] = weights[t] * window[t];
    fft_.fwd(spectrum_, samples_);
    return spectrum_;
  }

 private:
  std::vector<double> samples_;
  std::vector<std::complex<double>> spectrum_;
  Eigen::FFT<double> fft_;
};

FrontEnd::FrontEnd(const SoundOptions& options) : options_(options) {
  options.check();
  if (options.features == Features::kRaw) return;
  const auto window = static_cast<std::size_t>(options.window());
  transform_ = static_cast<std::int64_t>(std::bit_ceil(window));
  for (std::size_t t = 0; t < window; ++t)
    hann_.push_back(0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(t) / static_cast<double>(window)));
  const MelScale scale = options.mel_scale;
  const double low = mel_of(options.low_hz, scale), high = mel_of(options.high_hz, scale);
  const auto corner = [&](std::int64_t k) {
    return hertz_of(low + (high - low) * static_cast<double>(k) / static_cast<double>(options.bands + 1), scale);
  };
  const double bin = static_cast<double>(options.rate) / static_cast<double>(transform_);
  for (std::int64_t b = 0; b < options.bands; ++b) {
    const double left = corner(b), middle = corner(b + 1), right = corner(b + 2);
    const double height = scale == MelScale::kHtk ? 1 : 2 / (right - left);
    Band band;
    for (std::int64_t k = 0; k <= transform_ / 2; ++k) {
      const double hertz = static_cast<double>(k) * bin;
      const double weight = std::min((hertz - left) / (middle - left), (right - hertz) / (right - middle));
      if (weight <= 0) continue;
      if (band.weights.empty()) band.first = static_cast<std::size_t>(k);
      band.weights.push_back(height * weight);
    }
    bands_.push_back(std::move(band));
  }
  if (options.features != Features::kMfcc) return;
  const auto count = static_cast<double>(options.bands);
  for (std::int64_t c = 0; c < options.coefficients; ++c)
    for (std::int64_t b = 0; b < options.bands; ++b)
      cosines_.push_back(std::sqrt((c == 0 ? 1 : 2) / count) *
                         std::cos(std::numbers::pi * static_cast<double>(c) * (static_cast<double>(b) + 0.5) / count));
}

void FrontEnd::log_mel(std::span<const float> window, Transform& transform, std::span<double> bands) const {
  const std::vector<std::complex<double>>& spectrum = transform.of(window, hann_);
  for (std::size_t b = 0; b < bands.size(); ++b) {
    const Band& band = bands_[b];
    double power = 0;
    for (std::size_t k = 0; k < band.weights.size(); ++k)
      power += band.weights[k] * std::norm(spectrum[band.first + k]);
    bands[b] = std::log(std::max(kLeastPower, power));
  }
}

void FrontEnd::features(std::span<const float> samples, std::span<float> result) const {
  if (options_.features == Features::kRaw) {
    std::ranges::copy(samples, result.begin());
    return;
  }
  const Shape shape = options_.shape_of(std::ssize(samples));
  const auto window = static_cast<std::size_t>(options_.window()), stride = static_cast<std::size_t>(options_.stride());
  const auto numbers = static_cast<std::size_t>(shape[1]);
  Transform transform(transform_);
  std::vector<double> bands(static_cast<std::size_t>(options_.bands));
  for (std::size_t step = 0; step < static_cast<std::size_t>(shape[0]); ++step) {
    log_mel(samples.subspan(step * stride, window), transform, bands);
    for (std::size_t c = 0; c < numbers; ++c) {
      double number = bands[c];
      if (options_.features == Features::kMfcc) {
        number = 0;
        for (std::size_t b = 0; b < bands.size(); ++b) number += cosines_[c * bands.size() + b] * bands[b];
      }
      result[step * numbers + c] = static_cast<float>(number);
    }
  }
}

}  // namespace miniqat::datasets
