#include "training/verify/integer_bits.h"

#include "core/text/error.h"
#include "core/text/json.h"

namespace miniqat::training {
namespace {

std::string span_of(const std::set<int>& bits) {
  if (bits.empty()) return "-";
  return bits.size() == 1 ? concat(*bits.begin()) : concat(*bits.begin(), "-", *bits.rbegin());
}

nlohmann::ordered_json list_of(const std::set<int>& bits) {
  if (bits.empty()) return nullptr;
  if (bits.size() == 1) return *bits.begin();
  return bits;
}

}  // namespace

std::string IntegerBits::label() const {
  return concat("W", span_of(weights), "A", span_of(activations), per_channel ? " per channel" : "");
}

nlohmann::ordered_json IntegerBits::json() const {
  return {{"weights", list_of(weights)}, {"activations", list_of(activations)}};
}

IntegerBits bits_of(const integer::Model& model) {
  IntegerBits bits;
  for (const integer::Operation& operation : model.operations) {
    bits.activations.insert(model.output_of(operation).grid.bits);
    if (const auto* layer = std::get_if<integer::Layer>(&operation.action)) {
      bits.weights.insert(layer->weight_bits);
      bits.per_channel = bits.per_channel || layer->per_channel();
    }
  }
  return bits;
}

}  // namespace miniqat::training
