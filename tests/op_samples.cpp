#include "tests/op_samples.h"

#include <algorithm>
#include <map>
#include <set>

namespace miniqat::testing {
namespace {

template <class Sample>
std::vector<Sample> joined(std::initializer_list<std::vector<Sample>> groups) {
  std::vector<Sample> all;
  for (const std::vector<Sample>& group : groups) all.insert(all.end(), group.begin(), group.end());
  return all;
}

bool is_unary(const OpSample& sample) {
  return sample.inputs.size() == 1 && sample.inputs[0].dtype == DType::kFloat32 && sample.attributes == "{}";
}

}  // namespace

std::vector<OpSample> all_samples() {
  return joined<OpSample>(
      {layer_samples(), pointwise_samples(), structure_samples(), fake_quant_samples(), folding_samples()});
}

std::vector<BadOpSample> all_bad_samples() {
  return joined<BadOpSample>({bad_layer_samples(), bad_pointwise_samples(), bad_structure_samples(),
                              bad_fake_quant_samples(), bad_folding_samples()});
}

std::vector<UnaryType> unary_types() {
  std::map<std::string, UnaryType> types;
  std::set<std::string> others;
  for (const OpSample& sample : all_samples()) {
    if (!is_unary(sample)) others.insert(sample.type);
    UnaryType& found = types.try_emplace(sample.type, UnaryType{sample.type, sample.low, sample.high}).first->second;
    found.low = std::min(found.low, sample.low);
    found.high = std::max(found.high, sample.high);
  }
  std::vector<UnaryType> result;
  for (const auto& [type, found] : types)
    if (!others.contains(type)) result.push_back(found);
  return result;
}

}  // namespace miniqat::testing
