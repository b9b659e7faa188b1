#include "quantize/calibrate/adaptive_rounding.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/tensors/eigen.h"
#include "core/text/classic.h"
#include "core/text/error.h"
#include "layers/layers.h"
#include "quantize/calibrate/layer_moments.h"
#include "quantize/calibrate/rounding_search.h"
#include "quantize/fake_quant.h"
#include "quantize/graph_matcher.h"
#include "quantize/op_roles.h"
#include "quantize/rewrite/layer_patterns.h"

namespace miniqat::quantize {
namespace {

/// What is added to the diagonal of E[x x^T], as a share of the diagonal's mean. GPTQ has the same.
constexpr double kDamping = 0.01;
/// From the middle between two integers towards one of them, where 1 is the integer.
constexpr float kInside = 0.125F;

struct RoundableLayer {
  const Node* layer = nullptr;
  const Node* quantizer = nullptr;
  const Node* variable = nullptr;
};

/// The Variable behind a tensor, through a quantizer, Identity and the factors of a folded batch norm, if nobody else
/// reads it; null otherwise.
const Node* own_weights(Output tensor) {
  while (tensor.node->uses(tensor.index).size() == 1) {
    const Node& node = *tensor.node;
    if (node.as<Variable>() != nullptr) return &node;
    if (node.as<layers::Mul>())
      tensor = node.input(node.input(0).shape() == tensor.shape() ? 0 : 1);
    else if (node.as<layers::Identity>() || is_quantizer(node))
      tensor = node.input(0);
    else
      return nullptr;
  }
  return nullptr;
}

std::string why_left_out(const LayerMatch& match, const RoundableLayer& found, std::int64_t most_inputs) {
  const auto* product = match.layer->as<layers::MatMul>();
  if (!is_quantizer(*found.quantizer)) return "its weights are not quantized";
  if (match.weight_input != 1) return "its weights are the left operand";
  if (product != nullptr && product->transpose_a) return "its input is transposed";
  if (found.variable == nullptr) return "its weights are not a Variable of its own";
  const std::int64_t inputs = layout_of(*match.layer).inputs;
  if (inputs > most_inputs) return concat("an output has ", inputs, " weights, more than ", most_inputs);
  return "";
}

/// The two numbers of a grid around a number; for one outside of the grid both are the grid's end.
struct Neighbours {
  float low = 0;
  float high = 0;
};

Neighbours neighbours_of(const Affine<float>& grid, float value) {
  if (grid.empty()) return {};
  const float nearest = quantize(grid, value), real = dequantize(grid, nearest);
  if (value > real) return {real, nearest < grid.quant_max ? dequantize(grid, nearest + 1) : real};
  if (value < real) return {nearest > grid.quant_min ? dequantize(grid, nearest - 1) : real, real};
  return {real, real};
}

/// A layer's folded weights, their neighbours, and what they are to become, in the order of the variable's elements.
struct FoldedWeights {
  Tensor values;
  /// Rounded to nearest.
  Tensor nearest;
  std::vector<float> low = {};
  std::vector<float> high = {};
  std::vector<float> chosen = {};

  FoldedWeights(Session& session, const Node& quantizer) {
    const RunRequest request{
        .fetches = {quantizer.input(0), quantizer.output(), quantizer.input(1), quantizer.input(2)}};
    const std::vector<Tensor> fetched = session.run(request, {}).fetched;
    values = fetched[0];
    nearest = fetched[1];
    const GridOptions options = quantizer.as<FakeQuant>()->grid_options();
    std::vector<Affine<float>> grids;
    for (std::size_t c = 0; c < fetched[2].values<float>().size(); ++c)
      grids.push_back(grid_of(Range<float>{fetched[2].values<float>()[c], fetched[3].values<float>()[c]}, options));
    for (std::size_t i = 0; i < values.values<float>().size(); ++i) {
      const auto [below, above] = neighbours_of(grids[i % grids.size()], values.values<float>()[i]);
      low.push_back(below);
      high.push_back(above);
    }
    const std::span<const float> rounded = nearest.values<float>();
    chosen.assign(rounded.begin(), rounded.end());
  }
};

/// Rounds the weights of one group of a layer.
class GroupRounding {
 public:
  GroupRounding(const WeightLayout& layout, std::int64_t group, const LayerMoments& moments, FoldedWeights& weights)
      : layout_(layout),
        group_(group),
        squares_(moments.squares(group)),
        weights_(weights),
        values_(rows_of(weights.values.values<float>())),
        pull_(moments.products(group)) {
    const std::vector<float> projected = times_squares(values_);
    double wanted = 0;
    for (std::size_t i = 0; i < pull_.size(); ++i) {
      least_ += static_cast<double>(values_[i]) * projected[i];
      wanted += static_cast<double>(values_[i]) * pull_[i];
      pull_[i] -= projected[i];
    }
    least_ -= 2 * wanted;
  }

  /// The sum over the outputs of E(W_q x_q - W x)^2 - E(W x)^2.
  double error() const {
    std::vector<float> errors = rows_of(weights_.chosen);
    for (std::size_t i = 0; i < errors.size(); ++i) errors[i] -= values_[i];
    const std::vector<float> products = times_squares(errors);
    double sum = least_;
    for (std::size_t i = 0; i < errors.size(); ++i)
      sum += static_cast<double>(errors[i]) * (static_cast<double>(products[i]) - 2 * static_cast<double>(pull_[i]));
    return sum;
  }

  void choose(const std::function<bool()>& stops) {
    const std::int64_t n = layout_.inputs;
    VectorMap<float> all = vector_of(std::span(squares_));
    Eigen::Map<Eigen::ArrayXf, 0, Eigen::InnerStride<>> diagonal(all.data(), n, Eigen::InnerStride<>(n + 1));
    const Eigen::ArrayXf undamped = diagonal;
    const double mean = undamped.cast<double>().mean();
    // Nothing but zeros comes in, and every choice is as good.
    if (!(mean > 0)) return;
    diagonal += static_cast<float>(kDamping * mean);
    const std::vector<float> low = rows_of(weights_.low), high = rows_of(weights_.high);
    const std::vector<float> chosen =
        round_rows(squares_, n, {.values = values_, .low = low, .high = high, .pull = pull_}, stops);
    diagonal = undamped;
    for (std::int64_t o = 0; o < layout_.outputs; ++o)
      for (std::int64_t i = 0; i < n; ++i)
        weights_.chosen[static_cast<std::size_t>(layout_.element(group_, i, o))] =
            chosen[static_cast<std::size_t>(o * n + i)];
  }

 private:
  /// Row-major [outputs, inputs].
  std::vector<float> rows_of(std::span<const float> elements) const {
    std::vector<float> rows;
    for (std::int64_t o = 0; o < layout_.outputs; ++o)
      for (std::int64_t i = 0; i < layout_.inputs; ++i)
        rows.push_back(elements[static_cast<std::size_t>(layout_.element(group_, i, o))]);
    return rows;
  }
  std::vector<float> times_squares(const std::vector<float>& rows) const {
    std::vector<float> products(rows.size());
    Eigen::Map<Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(products.data(), layout_.outputs,
                                                                                      layout_.inputs) =
        matrix_of(std::span(rows), layout_.inputs) * matrix_of(std::span(squares_), layout_.inputs);
    return products;
  }

  const WeightLayout& layout_;
  const std::int64_t group_;
  std::vector<float> squares_;
  FoldedWeights& weights_;
  const std::vector<float> values_;
  /// The pull on the weights, in the form that round_rows() takes: E[(y - W x_q) x_q^T] with y = W x.
  std::vector<float> pull_;
  /// E||W x_q||^2 - 2 E[y^T W x_q].
  double least_ = 0;
};

/// The factor by which each element of a layer's variable is multiplied before it is quantized.
Tensor folded_factors(Session& session, const RoundableLayer& layer) {
  const std::string& name = layer.variable->name();
  const Tensor values = session.variable(name).clone();
  Tensor ones(values.shape());
  std::ranges::fill(ones.values<float>(), 1.0F);
  session.set_variable(name, ones);
  const Tensor factors = session.run({.fetches = {layer.quantizer->input(0)}}, {}).fetched.front();
  session.set_variable(name, values);
  return factors;
}

/// Returns how many weights have another integer than the nearest.
std::int64_t move_weights(Session& session, const RoundableLayer& layer, const FoldedWeights& weights) {
  const Tensor all_factors = folded_factors(session, layer);
  const std::string& name = layer.variable->name();
  const Tensor before = session.variable(name).clone();
  Tensor moved = before.clone();
  const std::span<const float> factors = all_factors.values<float>(), nearest = weights.nearest.values<float>();
  const std::span<float> values = moved.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (weights.chosen[i] == nearest[i]) continue;
    const float middle = weights.low[i] + (weights.high[i] - weights.low[i]) / 2;
    const float value = (middle + kInside * (weights.chosen[i] - middle)) / factors[i];
    if (std::isfinite(value)) values[i] = value;
  }
  session.set_variable(name, moved);
  const Tensor quantized = session.run({.fetches = {layer.quantizer->output()}}, {}).fetched.front();
  std::int64_t count = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (weights.chosen[i] == nearest[i]) continue;
    const bool there = quantized.values<float>()[i] == weights.chosen[i];
    if (!there) values[i] = before.values<float>()[i];
    count += there;
  }
  session.set_variable(name, moved);
  return count;
}

LayerMoments moments_of(Session& session, FloatNetwork& in_float, const Node& layer, const FeedsOfBatches& batches,
                        const RoundingOptions& options) {
  LayerMoments moments(layer, options.patches, options.seed);
  batches([&](const Feeds& feeds) {
    const Tensor input = session.run({.fetches = {layer.input(0)}}, feeds).fetched.front();
    moments.add(input, in_float.run({layer.output()}, feeds).front());
  });
  if (moments.count() == 0) fail("rounding has seen no batch");
  return moments;
}

/// None if it was stopped.
std::optional<RoundedLayer> round_layer(Session& session, const RoundableLayer& layer, const LayerMoments& moments,
                                        const std::function<bool()>& stops) {
  const WeightLayout layout = layout_of(*layer.layer);
  FoldedWeights weights(session, *layer.quantizer);
  const double square = moments.wanted_square();
  double nearest_error = square, error = square;
  for (std::int64_t group = 0; group < layout.groups; ++group) {
    GroupRounding rounding(layout, group, moments, weights);
    nearest_error += rounding.error();
    rounding.choose(stops);
    if (stops && stops()) return std::nullopt;
    error += rounding.error();
  }
  if (!std::isfinite(nearest_error)) fail(describe(*layer.layer), " has values that are not finite");
  // Rounding of sums may leave less than nothing of a tiny error.
  const auto relative = [&](double sum) { return square > 0 ? std::max(sum, 0.0) / square : 0; };
  return RoundedLayer{.layer = layer.layer->name(),
                      .variable = layer.variable->name(),
                      .weights = weights.values.elements(),
                      .moved = move_weights(session, layer, weights),
                      .nearest_error = relative(nearest_error),
                      .error = relative(error)};
}

std::string in_percent(double share) { return formatted("%.3g%%", 100 * share); }

}  // namespace

std::string AdaptiveRounding::text() const {
  std::string text;
  for (const RoundedLayer& layer : rounded)
    text += concat("  rounded    ", layer.layer, ": ", layer.moved, " of ", counted(layer.weights, "weight"),
                   " not at the nearest integer, error of the output ", in_percent(layer.nearest_error), " -> ",
                   in_percent(layer.error), "\n");
  for (const LeftOutLayer& layer : left_out) text += concat("  left out   ", layer.layer, ": ", layer.reason, "\n");
  return text;
}

AdaptiveRounding round_adaptively(Session& session, const FeedsOfBatches& batches, const RoundingOptions& options,
                                  const OnLayer& on_layer) {
  AdaptiveRounding result;
  std::vector<RoundableLayer> layers;
  for (const LayerMatch& match : find_layers(session.graph(), "").matches) {
    const Output weights = match.layer->input(match.weight_input);
    const RoundableLayer layer{
        .layer = match.layer, .quantizer = source_through(weights, kIdentity).node, .variable = own_weights(weights)};
    if (std::string reason = why_left_out(match, layer, options.most_inputs); reason.empty())
      layers.push_back(layer);
    else
      result.left_out.push_back({match.layer->name(), std::move(reason)});
  }
  for (const RoundableLayer& layer : layers)
    result.before.emplace(layer.variable->name(), session.variable(layer.variable->name()).clone());
  FloatNetwork in_float(session, result.before);
  for (const RoundableLayer& layer : layers) {
    if (on_layer) on_layer(layer.layer->name(), result.rounded.size() + 1, layers.size());
    const LayerMoments moments = moments_of(session, in_float, *layer.layer, batches, options);
    std::optional<RoundedLayer> rounded = round_layer(session, layer, moments, options.stops);
    if (!rounded) break;
    result.rounded.push_back(std::move(*rounded));
  }
  return result;
}

}  // namespace miniqat::quantize
