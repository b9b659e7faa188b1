#include "datasets/class_counts.h"

namespace miniqat::datasets {

std::vector<std::int64_t> class_counts(const Dataset& dataset) {
  std::vector<std::int64_t> counts(dataset.classes);
  for (const std::int32_t label : dataset.labels.values<std::int32_t>()) ++counts.at(label);
  return counts;
}

}  // namespace miniqat::datasets
