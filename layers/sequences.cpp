#include "layers/sequences.h"

#include "core/text/error.h"
#include "layers/conv2d.h"
#include "layers/pool.h"
#include "layers/reshape.h"

namespace miniqat::layers {
namespace {

/// [n, steps, channels] as [n, steps, 1, channels].
Output image_of(Graph& graph, const std::string& name, Output x) {
  const Shape& shape = x.shape();
  if (shape.rank() != 3) fail("\"", name, "\" takes a sequence [n, steps, channels], got ", x.name(), " ", shape);
  const Shape image = {shape[0], shape[1], 1, shape[2]};
  if (x.node->as<Reshape>() && x.node->input(0).shape() == image) return x.node->input(0);
  return reshape(graph, name + "/image", x, {.shape = {-1, image[1], image[2], image[3]}});
}

/// The op that `build` adds over the image of x, between Reshapes; all of it or nothing.
template <class Build>
Output over_image(Graph& graph, const std::string& name, Output x, const Build& build) {
  GraphRollback rollback(graph);
  const Output image = build(image_of(graph, name, x));
  const Shape& shape = image.shape();
  const Output steps = reshape(graph, name + "/steps", image, {.shape = {-1, shape[1], shape[3]}});
  rollback.commit();
  return steps;
}

Conv2dAttributes over_steps(const std::string& name, Output filter, const Conv1dAttributes& attributes) {
  const Shape& shape = filter.shape();
  if (shape.rank() != 4 || shape[1] != 1)
    fail("\"", name, "\" takes a filter [k, 1, in, out], got ", filter.name(), " ", shape);
  return {.strides = {attributes.stride, 1},
          .padding = attributes.padding,
          .dilations = {attributes.dilation, 1},
          .pads = {attributes.pads[0], 0, attributes.pads[1], 0}};
}

PoolAttributes over_steps(const Pool1dAttributes& attributes) {
  const std::int64_t stride = attributes.stride == 0 ? attributes.window : attributes.stride;
  return {.window = {attributes.window, 1},
          .strides = {stride, 1},
          .padding = attributes.padding,
          .pads = {attributes.pads[0], 0, attributes.pads[1], 0}};
}

}  // namespace

Output conv1d(Graph& graph, const std::string& name, Output x, Output filter, const Conv1dAttributes& attributes) {
  return over_image(graph, name, x, [&](Output image) {
    return conv2d(graph, name, image, filter, over_steps(name, filter, attributes));
  });
}

Output depthwise_conv1d(Graph& graph, const std::string& name, Output x, Output filter,
                        const Conv1dAttributes& attributes) {
  return over_image(graph, name, x, [&](Output image) {
    return depthwise_conv2d(graph, name, image, filter, over_steps(name, filter, attributes));
  });
}

Output max_pool1d(Graph& graph, const std::string& name, Output x, const Pool1dAttributes& attributes) {
  return over_image(graph, name, x, [&](Output image) { return max_pool(graph, name, image, over_steps(attributes)); });
}

Output avg_pool1d(Graph& graph, const std::string& name, Output x, const Pool1dAttributes& attributes) {
  return over_image(graph, name, x, [&](Output image) { return avg_pool(graph, name, image, over_steps(attributes)); });
}

}  // namespace miniqat::layers
