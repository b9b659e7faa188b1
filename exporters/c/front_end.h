#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "integer/model.h"

namespace miniqat::exporters {

/// How a sound becomes the input of a network, in the formulas of datasets::FrontEnd: steps of log-mel bands or MFCC,
/// or the samples themselves.
struct CFrontEnd {
  /// Samples a second.
  std::int64_t rate = 16000;
  /// Samples of a step, and between two of them.
  std::int64_t window = 640;
  std::int64_t stride = 320;
  std::int64_t steps = 49;
  /// 0: the samples themselves. Then a step is one sample; coefficients and frequencies are not used.
  std::int64_t bands = 40;
  /// MFCCs of a step; 0: the bands themselves.
  std::int64_t coefficients = 10;
  double low_hz = 20;
  double high_hz = 4000;
  /// datasets::MelScale::kSlaney instead of kHtk.
  bool slaney = false;

  bool is_raw() const { return bands == 0; }
  std::int64_t numbers() const { return is_raw() ? 1 : coefficients > 0 ? coefficients : bands; }
  /// The samples of an example.
  std::int64_t samples() const { return (steps - 1) * stride + window; }
};

/// The tables of exporters/c/sound/steps.c, which says what they are. Raw samples have a multiplier and an offset,
/// which are in the code.
struct CFrontEndTables {
  std::vector<std::int32_t> hann;
  std::vector<std::int32_t> sines;
  std::vector<std::int32_t> logarithms;
  std::vector<std::uint16_t> first_bins;
  std::vector<std::uint16_t> bin_counts;
  std::vector<std::uint16_t> triangles;
  /// Empty for triangles whose height is 1.
  std::vector<std::int32_t> heights;
  std::vector<std::int16_t> cosines;
  std::vector<std::int32_t> multipliers;
  std::vector<std::int64_t> offsets;
  std::int32_t transform = 0;
  std::int32_t least = 0;
  std::int32_t shift = 0;
  std::int32_t most = 0;

  /// Bytes of the tables on a processor of 32 bits.
  std::int64_t bytes() const;
};

/// The front end in integers, as generated C computes it: from 16-bit samples to the integers of the model's input,
/// standardised on the way. The two are one text, exporters/c/sound/steps.c or raw.c.
class FixedFrontEnd {
 public:
  /// Throws Error for a model whose input is not [steps, numbers], for deviations too small for integers, for windows
  /// outside 3 to 32768 samples (raw: other than one), and for bands in which no frequency of the transform lies.
  FixedFrontEnd(const CFrontEnd& options, const integer::Model& model);

  /// CFrontEnd::samples() of them as [steps, numbers] integers.
  std::vector<std::uint8_t> features(std::span<const std::int16_t> samples) const;
  /// The sound of the generated self test.
  std::vector<std::int16_t> test_sound() const;

  const CFrontEnd& options() const { return options_; }
  const CFrontEndTables& tables() const { return tables_; }
  /// Bytes of working memory.
  std::int64_t scratch() const { return 4 * (tables_.transform + options_.bands); }

 private:
  CFrontEnd options_;
  CFrontEndTables tables_;
};

// Not for users of the library: the text. `macro`: the prefix in capitals.

/// For the header: sizes, PREFIX_step(), PREFIX_features() and PREFIX_run_sound().
std::string c_declarations_of_sound(const FixedFrontEnd& end, const integer::Model& model, const std::string& prefix,
                                    const std::string& macro);

std::string c_source_of_sound(const FixedFrontEnd& end, const integer::Model& model, const std::string& prefix,
                              const std::string& macro);

/// PREFIX_sound_self_test() with the integers that it expects.
std::string c_self_test_of_sound(const FixedFrontEnd& end, const std::string& prefix, const std::string& macro);

}  // namespace miniqat::exporters
