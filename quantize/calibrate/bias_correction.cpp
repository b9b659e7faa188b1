#include "quantize/calibrate/bias_correction.h"

#include <algorithm>
#include <cmath>

#include "core/graph/source_ops.h"
#include "core/tensors/eigen.h"
#include "core/text/error.h"
#include "layers/batch_norm.h"
#include "layers/reshape.h"
#include "quantize/fold/batch_norm_fold.h"
#include "quantize/graph_matcher.h"
#include "quantize/op_roles.h"
#include "quantize/rewrite/layer_patterns.h"

namespace miniqat::quantize {
namespace {

/// A quantized layer, and the variable that moves its output.
struct BiasedLayer {
  std::string layer;
  const Node* variable = nullptr;
  /// The layer's output with its bias, before any activation or quantizer.
  Output biased = {};
};

/// The vector that a layer's bias adds: of a folded batch norm, beta.
Output added_by(const Node& bias) {
  if (bias.as<layers::BatchNorm>()) return bias.input(2);
  for (const int k : {1, 0}) {
    const Output operand = bias.input(k);
    if (operand.node->as<BatchNormFold>()) return operand.node->input(1);
    if (operand.shape().rank() == 1) return operand;
  }
  return {};
}

/// Null where others read it, too.
const Node* own_bias(Output tensor) {
  for (; tensor.node != nullptr; tensor = tensor.node->input(0)) {
    if (tensor.node->uses(tensor.index).size() != 1) return nullptr;
    if (tensor.node->as<Variable>() != nullptr) return tensor.node;
    if (!tensor.node->as<layers::Identity>()) return nullptr;
  }
  return nullptr;
}

bool has_quantized_weights(const LayerMatch& match) {
  const Output weights = match.layer->input(match.weight_input);
  return is_quantizer(*source_through(weights, kIdentity).node);
}

class ChannelMeans {
 public:
  void add(const Tensor& values) {
    const ConstMatrixMap<float> rows = matrix_of<float>(values);
    if (rows_ == 0) sums_.setZero(rows.cols());
    for (Eigen::Index row = 0; row < rows.rows(); ++row) sums_ += rows.row(row).transpose().array().cast<double>();
    rows_ += rows.rows();
  }
  /// Minus the other's.
  std::vector<double> minus(const ChannelMeans& other, const BiasedLayer& layer) const {
    std::vector<double> differences(static_cast<std::size_t>(sums_.size()));
    vector_of(std::span(differences)) =
        sums_ / static_cast<double>(rows_) - other.sums_ / static_cast<double>(other.rows_);
    if (!std::ranges::all_of(differences, [](double each) { return std::isfinite(each); }))
      fail(describe(*layer.biased.node), " has values that are not finite");
    return differences;
  }
  bool empty() const { return rows_ == 0; }

 private:
  Eigen::ArrayXd sums_;
  std::int64_t rows_ = 0;
};

std::vector<ChannelMeans> float_means(FloatNetwork& network, const std::vector<BiasedLayer>& layers,
                                      const FeedsOfBatches& batches) {
  std::vector<Output> fetches;
  for (const BiasedLayer& layer : layers) fetches.push_back(layer.biased);
  std::vector<ChannelMeans> means(layers.size());
  batches([&](const Feeds& feeds) {
    const std::vector<Tensor> fetched = network.run(fetches, feeds);
    for (std::size_t i = 0; i < means.size(); ++i) means[i].add(fetched[i]);
  });
  return means;
}

void subtract(Session& session, const std::string& variable, const std::vector<double>& errors) {
  Tensor values = session.variable(variable).clone();
  VectorMap<float> biases = vector_of<float>(values);
  biases = (biases.cast<double>() - Eigen::Map<const Eigen::ArrayXd>(errors.data(), std::ssize(errors))).cast<float>();
  session.set_variable(variable, values);
}

}  // namespace

std::string BiasCorrection::text() const {
  std::string text;
  for (const CorrectedBias& bias : corrected) {
    const auto [least, most] = std::ranges::minmax(bias.errors);
    text += concat("  corrected  ", bias.layer, ": ", counted(bias.errors.size(), "channel"), ", mean errors ", least,
                   " to ", most, "\n");
  }
  for (const LeftOutLayer& layer : left_out) text += concat("  left out   ", layer.layer, ": ", layer.reason, "\n");
  return text;
}

BiasCorrection correct_biases(Session& session, const FeedsOfBatches& batches, const NamedTensors& in_float,
                              const OnLayer& on_layer) {
  BiasCorrection result;
  std::vector<BiasedLayer> layers;
  for (const LayerMatch& match : find_layers(session.graph(), "").matches) {
    const std::string& name = match.layer->name();
    const Node* variable = match.bias != nullptr ? own_bias(added_by(*match.bias)) : nullptr;
    if (!has_quantized_weights(match))
      result.left_out.push_back({name, "its weights are not quantized"});
    else if (variable == nullptr)
      result.left_out.push_back({name, "it has no bias or beta that is a Variable of its own"});
    else if (variable->output().shape().elements() != match.bias->output().shape().channels())
      result.left_out.push_back({name, "its channels share one bias"});
    else
      layers.push_back({.layer = name, .variable = variable, .biased = match.bias->output()});
  }
  if (layers.empty()) return result;
  FloatNetwork network(session, in_float);
  const std::vector<ChannelMeans> before = float_means(network, layers, batches);
  if (before.front().empty()) fail("bias correction has seen no batch");
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (on_layer) on_layer(layers[i].layer, i + 1, layers.size());
    ChannelMeans means;
    const RunRequest request{.fetches = {layers[i].biased}};
    batches([&](const Feeds& feeds) { means.add(session.run(request, feeds).fetched.front()); });
    const std::vector<double> errors = means.minus(before[i], layers[i]);
    subtract(session, layers[i].variable->name(), errors);
    result.corrected.push_back({layers[i].layer, layers[i].variable->name(), errors});
  }
  return result;
}

}  // namespace miniqat::quantize
