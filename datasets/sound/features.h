#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/tensors/tensor.h"

namespace miniqat::datasets {

enum class Features {
  /// The samples themselves.
  kRaw,
  /// Logarithms of the power in bands.
  kLogMel,
  /// Their cosine transform, of which the first coefficients are kept.
  kMfcc,
};
/// "raw", "log-mel", "mfcc".
std::span<const std::string_view> names_of(Features);

/// The front end: how a sound becomes an example. The defaults are those of MLPerf Tiny's keyword spotter: one second
/// at 16 kHz becomes 49 steps of 10 numbers.
struct SoundOptions {
  Features features = Features::kMfcc;
  /// Samples a second; sounds of other rates are resampled.
  std::int64_t rate = 16000;
  /// The length of an example; longer sounds lose both ends, shorter ones get zeros there (fitted()).
  double seconds = 1;
  double window_ms = 40;
  double stride_ms = 20;
  /// Mel bands between the two frequencies.
  std::int64_t bands = 40;
  double low_hz = 20;
  double high_hz = 4000;
  /// MFCCs that are kept.
  std::int64_t coefficients = 10;

  std::int64_t samples() const;
  std::int64_t window() const;
  std::int64_t stride() const;
  /// The shape of an example: [steps, numbers a step].
  Shape example_shape() const;
  /// Throws Error that names the first option that is out of range or does not fit the others.
  void check() const;
};

/// Turns samples into features. With x a window of samples, at every `stride`, as long as a whole window is left:
///
///   power(k) = |sum_t hann(t) x(t) exp(-2 pi i k t / n)|^2, n the power of two that holds a window, hann periodic
///   mel(b)   = ln(max(1e-10, sum_k triangle_b(k rate / n) power(k))), the triangles' corners evenly spaced on HTK's
///   mel
///              scale, 2595 log10(1 + f / 700) (Young et al., The HTK Book)
///   mfcc(c)  = sqrt((c == 0 ? 1 : 2) / bands) sum_b mel(b) cos(pi c (b + 1/2) / bands)  (Davis and Mermelstein 1980)
///
/// librosa's melspectrogram with htk=True, norm=None, center=False has these bands, scipy.fft.dct with norm="ortho"
/// these coefficients.
class FrontEnd {
 public:
  /// Throws what SoundOptions::check() throws.
  explicit FrontEnd(const SoundOptions& options);

  /// `samples`: SoundOptions::samples() of them. Writes an example. Callable by several threads.
  void features(std::span<const float> samples, std::span<float> example) const;

 private:
  void log_mel(std::span<const float> window, std::span<double> bands) const;

  const SoundOptions options_;
  std::int64_t transform_ = 0;
  std::vector<double> hann_;
  /// A triangle: its first bin, and the weights of the bins from there on.
  struct Band {
    std::size_t first = 0;
    std::vector<double> weights;
  };
  std::vector<Band> bands_;
  /// [coefficients, bands]
  std::vector<double> cosines_;
};

}  // namespace miniqat::datasets
