#pragma once

#include <ostream>
#include <string>
#include <utility>

#include "core/graph/graph.h"
#include "layers/layers.h"

namespace miniqat::testing {

/// Where mean and variance come from; but for kStored they are moments of x.
enum class Statistics { kStored, kSquare, kProduct, kBackward, kOfSquares, kOfProducts, kKeptDims };
/// How the result is bracketed, with d = x - mean and r = Rsqrt.
enum class Order { kDR_G, kDG_R, kD_RG, kX_RG, kXR_G };

struct Form {
  Statistics statistics = Statistics::kSquare;
  Order order = Order::kD_RG;
  bool scaling = true;
  bool swapped = false;
  bool bias_add = false;
  bool identities = false;

  bool takes_moments() const { return statistics != Statistics::kStored; }
};

inline std::ostream& operator<<(std::ostream& stream, const Form& form) {
  return stream << "statistics " << static_cast<int>(form.statistics) << ", order " << static_cast<int>(form.order)
                << (form.scaling ? ", scaling" : "") << (form.swapped ? ", swapped" : "")
                << (form.bias_add ? ", BiasAdd" : "") << (form.identities ? ", identities" : "");
}

constexpr int kChannels = 3;

/// Spells out batch norms of [4, 2, 2, 3] op by op.
struct PrimitiveOps {
  Graph graph = {};
  Form form = {};
  std::string scope = "bn";

  std::string name(const std::string& stem) const { return graph.unique_name(scope + "/" + stem); }
  Output images(const std::string& name = "x") { return layers::placeholder(graph, name, {4, 2, 2, kChannels}); }
  /// Of which the gradient says something, as that of the plain sum of y does not.
  Output loss(Output y) { return layers::mul(graph, "loss", y, images("weights")); }

  Output add(Output a, Output b) {
    return form.swapped ? layers::add(graph, name("Add"), b, a) : layers::add(graph, name("Add"), a, b);
  }
  Output mul(Output a, Output b) {
    return form.swapped ? layers::mul(graph, name("Mul"), b, a) : layers::mul(graph, name("Mul"), a, b);
  }
  Output sub(Output a, Output b) { return layers::sub(graph, name("Sub"), a, b); }
  Output mean(Output x, bool keep_dims = false) {
    return layers::mean(graph, name("Mean"), x, {.axes = {0, 1, -2}, .keep_dims = keep_dims});
  }
  Output square(Output x) { return layers::square(graph, name("Square"), x); }
  Output epsilon() { return layers::constant(graph, name("epsilon"), {}, {0.01}); }
  Output read(Output x) { return form.identities ? layers::identity(graph, name("read"), x) : x; }

  Output vector(const std::string& stem, double value, bool trainable = true) {
    return layers::variable(graph, name(stem), {kChannels},
                            {.kind = Initializer::Kind::kTruncatedNormal, .mean = value, .stddev = 0.3}, trainable);
  }

  std::pair<Output, Output> statistics(Output x) {
    const bool kept = form.statistics == Statistics::kKeptDims;
    if (!form.takes_moments()) return {vector("mean", 0.2, false), vector("variance", 1.5, false)};
    const Output centre = read(mean(x, kept));
    switch (form.statistics) {
      case Statistics::kProduct: {
        const Output d = sub(x, centre);
        return {centre, mean(mul(d, read(d)))};
      }
      case Statistics::kBackward:
        return {centre, mean(square(sub(centre, x)))};
      case Statistics::kOfSquares:
        return {centre, sub(mean(square(x)), square(centre))};
      case Statistics::kOfProducts:
        return {centre, sub(mean(mul(x, x)), mul(centre, centre))};
      default:
        return {centre, mean(square(sub(x, centre)), kept)};
    }
  }

  Output scaled(Output value, Output rsqrt, Output gamma) {
    if (!form.scaling) return mul(value, rsqrt);
    switch (form.order) {
      case Order::kDG_R:
        return mul(mul(value, gamma), rsqrt);
      case Order::kDR_G:
      case Order::kXR_G:
        return mul(read(mul(value, rsqrt)), gamma);
      default:
        return mul(value, mul(rsqrt, gamma));
    }
  }

  Output normalise(Output x, Output centre, Output spread, Output epsilon) {
    const Output gamma = form.scaling ? read(vector("gamma", 1)) : Output{};
    return normalise(x, centre, spread, epsilon, gamma);
  }

  Output normalise(Output x, Output centre, Output spread, Output epsilon, Output gamma) {
    const Output beta = read(vector("beta", 0));
    const Output rsqrt = read(layers::rsqrt(graph, name("Rsqrt"), add(spread, epsilon)));
    const auto sum = [&](Output a, Output b) {
      return form.bias_add ? layers::bias_add(graph, name("BiasAdd"), a, b) : add(a, b);
    };
    if (form.order == Order::kX_RG || form.order == Order::kXR_G)
      return sum(scaled(x, rsqrt, gamma), sub(beta, scaled(centre, rsqrt, gamma)));
    return sum(scaled(sub(x, centre), rsqrt, gamma), beta);
  }

  Output batch_norm(Output x) {
    x = read(x);
    const auto [centre, spread] = statistics(x);
    return normalise(x, centre, spread, epsilon());
  }
};

}  // namespace miniqat::testing
