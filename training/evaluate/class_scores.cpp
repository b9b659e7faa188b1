#include "training/evaluate/class_scores.h"

#include <algorithm>
#include <cmath>

namespace miniqat::training {

std::vector<double> class_scores(std::span<const float> logits) {
  // With NaN as the highest, every score becomes NaN; max_element alone might miss it.
  double highest = logits.front(), sum = 0;
  for (const float logit : logits) highest = std::isnan(logit) ? logit : std::max<double>(highest, logit);
  std::vector<double> scores;
  for (const float logit : logits) {
    scores.push_back(std::exp(logit - highest));
    sum += scores.back();
  }
  for (double& score : scores) score /= sum;
  return scores;
}

std::string class_name(const datasets::Dataset& dataset, std::int64_t number) {
  const bool known = number >= 0 && number < std::ssize(dataset.class_names);
  return known ? dataset.class_names[static_cast<std::size_t>(number)] : std::to_string(number);
}

}  // namespace miniqat::training
