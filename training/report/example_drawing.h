#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>

#include "datasets/dataset.h"

namespace miniqat::training {

/// How the page draws example `index` of a data set, and beside it what a network gave back of it: as many numbers as
/// the example has, standardised as it is; or none.
///
/// {"pixels", "shape"} of a picture, the bytes in base64, no side longer than 64; no "pixels" where they are not 1 or 3
/// channels. {"lines": [{"name", "values", "output"}], "unit"} of features, and of steps with at most 8 channels, a
/// line a channel; of more than 400 steps the extremes of stretches. {"maps": [{"name", "width", "height", "bytes"}],
/// "low", "high", "unit"} of other numbers: their first channel or, of steps of channels, these upwards; bytes in
/// base64, 0 for the number `low`, 255 for `high`. "unit" says which numbers: "standardised" ones, or "" for those of
/// the data, as of series in lines.
nlohmann::ordered_json draw_example(const datasets::Dataset& examples, std::int64_t index,
                                    std::span<const float> output = {});

/// Five digits, more than a drawing shows; null for what is no number.
nlohmann::ordered_json rounded_json(double value);

}  // namespace miniqat::training
