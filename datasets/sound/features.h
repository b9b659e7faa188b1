#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/tensors/shape.h"

namespace miniqat::datasets {

enum class Features {
  /// What suits the data: MFCC, and log-mel for windows of a recording (SoundOptions::frames).
  kAuto,
  /// The samples themselves.
  kRaw,
  /// Logarithms of the power in bands.
  kLogMel,
  /// The first coefficients of the bands' cosine transform.
  kMfcc,
};
/// "auto", "raw", "log-mel", "mfcc".
std::span<const std::string_view> names_of(Features);

/// On which the corners of the bands are evenly spaced.
enum class MelScale {
  /// 2595 log10(1 + f / 700) (Young et al., The HTK Book), with triangles whose height is 1.
  kHtk,
  /// 3 f / 200 below 1000 Hz, 15 + 27 ln(f / 1000) / ln(6.4) above (Slaney, Auditory Toolbox, 1998), with triangles
  /// whose area over the frequencies is 1: librosa's own.
  kSlaney,
};
/// "htk", "slaney".
std::span<const std::string_view> names_of(MelScale);

/// The front end: how a sound becomes an example. The defaults are those of MLPerf Tiny's keyword spotter: one second
/// at 16 kHz becomes 49 steps of 10 numbers.
struct SoundOptions {
  Features features = Features::kMfcc;
  /// Samples a second; sounds of other rates are resampled.
  std::int64_t rate = 16000;
  /// The length of an example; longer sounds lose both ends, shorter ones get zeros there (fitted()). Of examples of
  /// some steps: so much of the middle of a recording is used, 0 for all of it, and a shorter one stays as it is.
  double seconds = 1;
  double window_ms = 40;
  double stride_ms = 20;
  /// Mel bands between the two frequencies.
  std::int64_t bands = 40;
  double low_hz = 20;
  double high_hz = 4000;
  MelScale mel_scale = MelScale::kHtk;
  /// MFCCs that are kept.
  std::int64_t coefficients = 10;
  /// So many steps in a row are an example, one from each step of a recording on; 0: the whole recording is one.
  std::int64_t frames = 0;
  /// So many training examples of a class _silence_, pieces of the background noise of Speech Commands
  /// (sound_folders.h), and as large a share of the other parts.
  std::int64_t silence = 0;

  std::int64_t samples() const;
  std::int64_t window() const;
  std::int64_t stride() const;
  /// The whole windows in so many samples.
  std::int64_t steps(std::int64_t samples) const;
  /// [steps, numbers a step] of so many samples.
  Shape shape_of(std::int64_t samples) const;
  /// The samples that an example is made of.
  std::int64_t example_samples() const;
  /// The shape of an example: [steps, numbers a step].
  Shape example_shape() const { return shape_of(example_samples()); }
  /// Throws Error that names the first option that is out of range or does not fit the others.
  void check() const;
};

/// The front end of MLPerf Tiny's anomaly detector, but for its mel scale, MelScale::kSlaney: five steps of 128 bands
/// up to half the rate, 64 ms each 32 ms, of the whole recording.
SoundOptions anomaly_detector(std::int64_t rate = 16000);

/// Turns samples into features. With x a window of samples, at every `stride`, as long as a whole window is left:
///
///   power(k) = |sum_t hann(t) x(t) exp(-2 pi i k t / n)|^2, n the power of two that holds a window, hann periodic
///   mel(b)   = ln(max(1e-10, sum_k triangle_b(k rate / n) power(k))), the triangles' corners evenly spaced on the
///              mel scale, on which their height depends (MelScale)
///   mfcc(c)  = sqrt((c == 0 ? 1 : 2) / bands) sum_b mel(b) cos(pi c (b + 1/2) / bands)  (Davis and Mermelstein 1980)
///
/// librosa's melspectrogram with center=False has these bands, of MelScale::kHtk with htk=True, norm=None;
/// scipy.fft.dct with norm="ortho" has these coefficients.
class FrontEnd {
 public:
  /// Throws what SoundOptions::check() throws.
  explicit FrontEnd(const SoundOptions& options);

  /// Writes the features of the samples, SoundOptions::shape_of() their number. Callable by several threads.
  void features(std::span<const float> samples, std::span<float> result) const;
  const SoundOptions& options() const { return options_; }

 private:
  class Transform;
  void log_mel(std::span<const float> window, Transform& transform, std::span<double> bands) const;

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
