#include "quantize/quantize.h"
#include "tests/quantize/net_parts.h"
#include "tests/quantize/random_net.h"

namespace miniqat::testing {
namespace {

/// One block after the other; a block may branch and join inside.
class Blocks {
 public:
  Blocks(std::uint64_t seed, std::int64_t more_channels) : parts_(seed) {
    parts_.more_channels = more_channels;
    Output x = layers::placeholder(parts_.graph, "images", {3, 6, 6, 3});
    if (parts_.chance(4)) x = parts_.lines(x);
    if (parts_.chance(8)) x = norm("net/picture", x);
    const int count = 2 + parts_.below(3);
    for (int i = 0; i < count; ++i) x = stage("net/stage" + std::to_string(i), x);
    parts_.scope = "net/head";
    x = parts_.chance(2) ? parts_.flat(x) : layers::mean(parts_.graph, parts_.name("Mean"), x, {.axes = {1, 2}});
    if (parts_.chance(2)) x = block("net/dense", x);
    if (parts_.chance(10)) x = norm("net/rows", x);
    parts_.scope = "net/logits";
    x = parts_.dense(x);
    x = layers::bias_add(parts_.graph, "net/logits/BiasAdd", x, parts_.vector("biases", x.shape().channels()));
    if (parts_.chance(2)) x = layers::softmax(parts_.graph, "net/Softmax", x);
    parts_.graph.set_outputs({x});
  }

  Graph take() { return std::move(parts_.graph); }

 private:
  Output block(const std::string& scope, Output x) {
    parts_.scope = scope;
    return parts_.activation(parts_.bias_or_batch_norm(parts_.layer(x)));
  }

  /// 1x1, of the shape of x, without an activation.
  Output linear(const std::string& scope, Output x) {
    parts_.scope = scope;
    const std::int64_t channels = x.shape().channels();
    const Output w = parts_.weights({1, 1, channels, channels});
    return parts_.bias_or_batch_norm(layers::conv2d(parts_.graph, parts_.name("Conv2D"), x, w));
  }

  /// By itself, whatever x comes from.
  Output norm(const std::string& scope, Output x) {
    parts_.scope = scope;
    return NetParts::fits_primitive_batch_norm(x) && parts_.chance(3) ? parts_.primitive_batch_norm(x, x)
                                                                      : parts_.batch_norm(x, !parts_.chance(4));
  }

  Output stage(const std::string& scope, Output x) {
    if (parts_.chance(8)) return read_before_activation(scope, linear(scope + "/a", x));
    const Output y = block(scope + "/a", x);
    switch (parts_.below(11)) {
      case 0:
        return y;
      case 6:
        return parts_.activation(parts_.lines(y));
      case 7:
        return parts_.activation(norm(scope + "/norm", y));
      case 8:
        return preactivated(scope, y);
      case 9:
        return norm(scope + "/norm", smaller(scope, y));
      case 1:
        return residual(scope, y);
      case 2:
        return layers::add(parts_.graph, scope + "/Add", y, parts_.activation(linear(scope + "/b", y)));
      case 3:
        return separable(scope + "/separable", y);
      case 4:
        return layers::concat(parts_.graph, scope + "/Concat",
                              {y, layers::relu(parts_.graph, scope + "/Relu", linear(scope + "/b", y))});
      case 5:
        return layers::concat(parts_.graph, scope + "/Concat",
                              {linear(scope + "/left", parts_.slice(y)), linear(scope + "/right", y)});
      default:
        return smaller(scope, y);
    }
  }

  Output residual(const std::string& scope, Output x) {
    const Output branch = linear(scope + "/c", layers::relu(parts_.graph, scope + "/Relu", linear(scope + "/b", x)));
    const Output sum = layers::add(parts_.graph, scope + "/Add", x, branch);
    return parts_.chance(2) ? layers::relu(parts_.graph, scope + "/ReluAfter", sum) : sum;
  }

  /// y + a layer of what a batch norm and an activation make of y; as in a DenseNet both side by side.
  Output preactivated(const std::string& scope, Output y) {
    const Output branch = linear(scope + "/c", parts_.activation(norm(scope + "/norm", y)));
    if (parts_.chance(2)) return layers::concat(parts_.graph, scope + "/Concat", {y, branch});
    const Output sum = layers::add(parts_.graph, scope + "/Add", y, branch);
    return parts_.chance(2) ? norm(scope + "/after", sum) : sum;
  }

  /// What a layer gives goes into an activation and elsewhere.
  Output read_before_activation(const std::string& scope, Output x) {
    const Output behind = layers::relu(parts_.graph, scope + "/Relu", x);
    parts_.scope = scope + "/beside";
    Output beside = x;
    switch (parts_.below(5)) {
      case 0:
        return layers::add(parts_.graph, scope + "/Add", x, behind);
      case 1:
        beside = parts_.activation(x);
        break;
      case 2:
        beside = parts_.lines(x);
        break;
      case 3:
        beside = norm(scope + "/norm", x);
        break;
      default:
        break;
    }
    return layers::concat(parts_.graph, scope + "/Concat", {beside, behind});
  }

  Output separable(const std::string& scope, Output x) {
    parts_.scope = scope;
    return parts_.activation(parts_.bias_or_batch_norm(parts_.conv(parts_.depthwise(x))));
  }

  Output smaller(const std::string& scope, Output x) {
    parts_.scope = scope;
    switch (parts_.below(4)) {
      case 0:
        return parts_.avg_pool(x);
      case 1:
        return parts_.pad(parts_.max_pool(x));
      case 2:
        return layers::dropout(parts_.graph, scope + "/Dropout", x, {.rate = 0.3});
      default:
        return parts_.max_pool(x);
    }
  }

  NetParts parts_;
};

}  // namespace

Graph well_formed_net(std::uint64_t seed) { return Blocks(seed, 0).take(); }

Graph wide_well_formed_net(std::uint64_t seed) { return Blocks(seed, kMoreChannels).take(); }

}  // namespace miniqat::testing
