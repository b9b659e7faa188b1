#include "quantize/convert/refusals.h"

#include "core/error.h"
#include "layers/layers.h"
#include "quantize/convert/convert.h"

namespace miniqat::quantize {

void fail_without_range(Output tensor, const std::string& reader) {
  throw NotQuantized(concat(reader, " reads ", tensor.name(), ", which has no range"));
}

void fail_unsupported(const Node& node) {
  if (node.as<layers::Softmax>()) fail(describe(node), " can only be left out at the end of an integer model");
  fail(describe(node), " cannot be part of an integer model");
}

}  // namespace miniqat::quantize
