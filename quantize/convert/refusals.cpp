#include "quantize/convert/refusals.h"

#include "core/text/error.h"
#include "layers/layers.h"

namespace miniqat::quantize {

void fail_without_range(Output tensor, const std::string& reader) {
  throw NotQuantized(concat(reader, " reads ", tensor.name(), ", which has no range"));
}

void fail_without_quantized_picture(Output tensor, const std::string& reader) {
  throw PictureNotQuantized(concat(reader, " reads ", tensor.name(), ", which has no range: it is computed from the ",
                                   "picture, which has no quantizer; train or calibrate with `quantize_input`"));
}

void fail_unsupported(const Node& node) {
  if (node.as<layers::Softmax>()) fail(describe(node), " can only be left out at the end of an integer model");
  fail(describe(node), " cannot be part of an integer model");
}

}  // namespace miniqat::quantize
