#include "datasets/standardise.h"

#include <algorithm>
#include <cmath>

namespace miniqat::datasets {
namespace {

using Shared = std::shared_ptr<const Standard>;

std::vector<Dataset*> parts_of(Splits& splits) {
  std::vector<Dataset*> parts;
  for (Dataset* part : {&splits.train, &splits.test, splits.validation ? &*splits.validation : nullptr})
    if (part != nullptr && part->images.defined()) parts.push_back(part);
  return parts;
}

/// The steps of numbers that a series has, [steps, channels]. All or none of a step's numbers are NaN.
Tensor steps_of(const Tensor& numbers) {
  const std::int64_t channels = numbers.shape()[-1];
  const std::span<const float> values = numbers.values<float>();
  std::vector<float> kept;
  if (std::ranges::none_of(values, [](float value) { return std::isnan(value); })) return numbers;
  for (const float value : values)
    if (!std::isnan(value)) kept.push_back(value);
  return Tensor::from({std::ssize(kept) / channels, channels}, kept);
}

bool are_zeros_and_ones(const std::vector<Dataset*>& parts) {
  return std::ranges::all_of(parts, [](const Dataset* part) {
    return !part->targets.defined() || std::ranges::all_of(part->targets.values<float>(), [](float value) {
      return value == 0 || value == 1 || std::isnan(value);
    });
  });
}

/// The tensors of all parts that have one, with the standard that is given or that of the training part.
void standardise_tensors(const std::vector<Dataset*>& parts, const Dataset& train, Tensor Dataset::*numbers,
                         Shared Dataset::*place, Shared standard) {
  if (!standard && (train.*numbers).defined())
    standard = std::make_shared<Standard>(standard_of(steps_of(train.*numbers)));
  if (!standard) return;
  for (Dataset* part : parts)
    if ((part->*numbers).defined()) {
      part->*numbers = standardised(part->*numbers, *standard);
      part->*place = standard;
    }
}

}  // namespace

void standardise(Splits& splits, const NumberOptions& options) {
  const std::vector<Dataset*> parts = parts_of(splits);
  const bool numbers = !parts.front()->has_pictures();
  if (options.standardise && numbers)
    standardise_tensors(parts, splits.train, &Dataset::images, &Dataset::standard, options.standard);
  if (options.standardise && (options.target_standard || !are_zeros_and_ones(parts)))
    standardise_tensors(parts, splits.train, &Dataset::targets, &Dataset::target_standard, options.target_standard);
  if (!numbers) return;
  for (Dataset* part : parts)
    for (float& value : part->images.values<float>())
      if (std::isnan(value)) value = 0;
}

}  // namespace miniqat::datasets
