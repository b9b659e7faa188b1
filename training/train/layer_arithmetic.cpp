#include "training/train/layer_arithmetic.h"

#include <algorithm>

#include "core/graph/op_interfaces.h"
#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "layers/batch_norm.h"
#include "quantize/fake_quant.h"
#include "training/settings/usage_error.h"

namespace miniqat::training {

std::string note_on_rounding(TrainingTask& task) {
  const std::string flag = task.settings.rounding_flag();
  if (flag.empty()) return "";
  const std::vector<PlannedLayer> layers = task.session.layers_of_training(task.ends.loss);
  const auto rounding = std::ranges::count_if(layers, &PlannedLayer::rounds);
  const char* when = task.quantization.delay > 0 ? ", once quantization has begun" : "";
  if (rounding > 0) return concat(flag, " rounds in ", rounding, " of ", counted(layers.size(), "layer"), when);
  const bool computes = task.settings.compute != FactorType::kFloat32;
  const char* others = !computes ? ", are depthwise, or multiply no integers"
                       : task.quantization.is_float()
                           ? " or are depthwise"
                           : ", are depthwise, or read quantizers, whose numbers stay as they are";
  return concat(flag, " has no effect on this network", when, ": its layers are too small for it", others);
}

namespace {

bool is_layer(const Node& node) { return as<MultipliesAndAdds>(node.op()) != nullptr; }

/// The product that a folded batch norm takes its statistics from, and nobody else anything.
bool is_for_statistics(const Node& layer) {
  const auto takes_statistics = [](const Use& use) {
    return use.node->as<layers::BatchNorm>() != nullptr && use.node->uses(0).empty();
  };
  return !layer.uses(0).empty() && std::ranges::all_of(layer.uses(0), takes_statistics);
}

}  // namespace

void require_roundable(const TrainingTask& task) {
  if (task.settings.compute == FactorType::kFloat32) return;
  constexpr std::int64_t kByte = 8;
  for (const Node* layer : task.training.graph.nodes()) {
    if (!is_layer(*layer)) continue;
    for (const Output& input : layer->inputs()) {
      // Behind views and pools, too.
      const Node* node = input.node;
      while (node->as<quantize::FakeQuant>() == nullptr && !node->inputs().empty() && !is_layer(*node))
        node = node->inputs()[0].node;
      if (const auto* quantizer = node->as<quantize::FakeQuant>(); quantizer != nullptr && quantizer->bits > kByte)
        throw UsageError(concat(task.settings.rounding_flag(), " goes with at most 8 bits, and ", describe(*node),
                                " has ", quantizer->bits,
                                ": more are neither multiplied as integers nor left as they are"));
    }
  }
}

std::string share_of_integers(TrainingTask& task) {
  if (task.settings.arithmetic != Arithmetic::kInteger || task.quantization.is_float()) return "";
  const std::vector<PlannedLayer> layers = task.session.layers_of_training(task.ends.loss);
  std::int64_t all = 0, on_integers = 0;
  std::size_t width = 0;
  for (const PlannedLayer& layer : layers) {
    all += layer.multiply_adds;
    if (layer.on_integers)
      on_integers += layer.multiply_adds;
    else
      width = std::max(width, layer.node->name().size());
  }
  const auto share = [&](std::int64_t part) {
    return formatted("%.1f%%", 100 * static_cast<double>(part) / static_cast<double>(std::max<std::int64_t>(all, 1)));
  };
  const auto count = std::ranges::count_if(layers, &PlannedLayer::on_integers);
  std::string text = concat(share(on_integers), " of a forward pass's multiply-adds are on integers, in ", count,
                            " of ", counted(layers.size(), "layer"), count < std::ssize(layers) ? "; in float32:" : "");
  for (const PlannedLayer& layer : layers)
    if (!layer.on_integers)
      text += formatted(
          "\n  %-*s  %6s  %s", static_cast<int>(width), layer.node->name().c_str(), share(layer.multiply_adds).c_str(),
          is_for_statistics(*layer.node) ? "for the statistics of its batch norm" : layer.why_float.c_str());
  return text;
}

}  // namespace miniqat::training
