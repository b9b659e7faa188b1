#include "layers/conv2d.h"

#include "layers/convolution_op.h"

namespace miniqat::layers {

void Conv2dAttributes::visit(AttributeVisitor& visitor) {
  visitor.field("strides", strides);
  visitor.choice("padding", padding, kPaddingNames);
  visitor.field("dilations", dilations);
  visitor.field("pads", pads);
}

Window2d window_of(const Shape& images, const Shape& filter, const Conv2dAttributes& attributes) {
  return slide(images, {.window = {filter[0], filter[1]},
                        .strides = attributes.strides,
                        .dilations = attributes.dilations,
                        .padding = attributes.padding,
                        .pads = attributes.pads});
}

std::shared_ptr<Op> Conv2d::make(const Attributes& attributes) {
  return std::make_shared<ConvolutionOp<Conv2d, false>>(attributes);
}

Output conv2d(Graph& graph, const std::string& name, Output x, Output filter, const Conv2dAttributes& attributes) {
  return graph.add(name, Conv2d::make(attributes), {x, filter}).output();
}

}  // namespace miniqat::layers
