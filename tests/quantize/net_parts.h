#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/tensors/random.h"
#include "layers/layers.h"

namespace miniqat::testing {

/// With so many a convolution multiplies integers and rounds gradients (layers/conv2d.cpp).
inline constexpr std::int64_t kMoreChannels = 8;

/// The parts that random nets are made of, each with random attributes and variables of its own in the scope `scope`.
/// Images are [n, h, w, c], rows [n, c].
class NetParts {
 public:
  explicit NetParts(std::uint64_t seed) : random_(seed) {}

  Graph graph;
  std::string scope = "net";
  /// That a convolution has beside its usual two to five.
  std::int64_t more_channels = 0;

  int below(std::size_t bound) { return static_cast<int>(random_.below(bound)); }
  bool chance(int one_in) { return below(one_in) == 0; }
  std::string name(const std::string& stem) const { return graph.unique_name(scope + "/" + stem); }

  Output variable(const std::string& stem, const Shape& shape, double mean, bool trainable = true);
  Output vector(const std::string& stem, std::int64_t size) { return variable(stem, {size}, 0); }
  /// A Variable, an Identity of one, a Concat of two, or what a layer has already.
  Output weights(const Shape& shape);

  /// Of images; `channels` 0 for any number.
  Output conv(Output x, std::int64_t channels = 0);
  Output depthwise(Output x);
  Output atrous(Output x);
  /// Of rows, with the weights on the right, at times transposed.
  Output dense(Output x);
  /// One of these, as x allows.
  Output layer(Output x);

  Output batch_norm(Output x, bool learns = true);
  /// In primitive ops. Needs images of three channels. With `other` not x, the mean is that of x and the variance that
  /// of `other`, or the reverse: no batch norm at all.
  Output primitive_batch_norm(Output x, Output other);
  static bool fits_primitive_batch_norm(Output x) { return x.shape().rank() == 4 && x.shape().channels() == 3; }
  /// A bias, a batch norm of some kind, or nothing.
  Output bias_or_batch_norm(Output x);
  Output activation(Output x);

  Output max_pool(Output x) { return layers::max_pool(graph, name("MaxPool"), x, pool(x)); }
  Output avg_pool(Output x) { return layers::avg_pool(graph, name("AvgPool"), x, pool(x)); }
  Output pad(Output x);
  /// x combined with one number or one for each channel, up to three times.
  Output lines(Output x);
  /// Some of the channels of images.
  Output slice(Output x);
  Output flat(Output x) { return layers::reshape(graph, name("Reshape"), x, {.shape = {x.shape()[0], -1}}); }

 private:
  Output line(Output x);
  layers::Conv2dAttributes window(Output x, std::int64_t filter);
  layers::PoolAttributes pool(Output x);
  void erase_unread(const std::string& name);

  Random random_;
  std::vector<Output> weights_;
};

}  // namespace miniqat::testing
