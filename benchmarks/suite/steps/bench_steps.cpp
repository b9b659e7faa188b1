#include "benchmarks/suite/steps/bench_steps.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "benchmarks/suite/measure/rounds.h"
#include "benchmarks/suite/steps/noise_training.h"
#include "core/error.h"
#include "core/parallel.h"
#include "layers/layers.h"
#include "models/models.h"

namespace miniqat::benchmarks {

namespace {

struct Variant {
  std::string what;
  /// None: float.
  std::optional<quantize::RewriteOptions> rewrite;
};

bool has_batch_norm(const models::Model& model) {
  Graph graph;
  const Shape picture = picture_of(model);
  model.build(graph, layers::placeholder(graph, "images", {1, picture[0], picture[1], picture[2]}), {});
  return std::ranges::any_of(graph.nodes(), [](const Node* node) { return node->as<layers::BatchNorm>() != nullptr; });
}

quantize::RewriteOptions with_learned_ranges(quantize::RewriteOptions options) {
  options.weight_bits = options.activation_bits = 4;
  options.ranges = quantize::RangeChoice::kLearned;
  return options;
}

std::vector<Variant> variants_of(const models::Model& model) {
  std::vector<Variant> variants = {{"float", std::nullopt}};
  if (!has_batch_norm(model)) {
    variants.push_back({"W8A8", quantize::RewriteOptions{}});
    variants.push_back({"W4A4, learned ranges", with_learned_ranges({})});
    return variants;
  }
  constexpr std::int64_t kNever = std::int64_t{1} << 30;
  variants.push_back({"W8A8, before quant_delay", quantize::RewriteOptions{.quant_delay = kNever}});
  variants.push_back({"W8A8, --bn-fold single", quantize::RewriteOptions{.bn_fold = quantize::BnFold::kSingle}});
  variants.push_back({"W8A8, --bn-fold tf", quantize::RewriteOptions{}});
  variants.push_back({"W8A8, after the BN freeze", quantize::RewriteOptions{.freeze_bn_delay = 0}});
  variants.push_back({"W4A4, learned, single", with_learned_ranges({.bn_fold = quantize::BnFold::kSingle})});
  return variants;
}

/// On a small batch, where the reference loops take no time to speak of. Step by step, each given equal inputs: the
/// loss of a deep network that has not learned anything magnifies the last bit's rounding to what a mistake would do
/// (docs/performance.md).
void require_right_steps(const models::Model& model, const Variant& variant) {
  constexpr std::int64_t kSmallBatch = 4;
  quantize::StepJudge judge;
  // The findings name its nodes.
  NoiseTraining training(model, variant.rewrite, kSmallBatch);
  training.judged_step(judge);
  if (!judge.findings().empty())
    fail(std::string(model.name), ", ", variant.what, ": ", judge.findings().front().text());
}

/// `batch`, or less when not even the fewest steps of that many pictures would fit into the time there is.
std::int64_t affordable_batch(const models::Model& model, const std::vector<Variant>& variants, std::int64_t batch,
                              double seconds) {
  constexpr std::int64_t kProbe = 8;
  // Two steps beforehand and three that count, QAT's maybe twice as long as float's.
  const double float_steps = 10 * static_cast<double>(variants.size());
  if (batch <= kProbe) return batch;
  NoiseTraining probe(model, variants.front().rewrite, kProbe);
  probe.step();
  const double a_picture = seconds_of([&] { probe.step(); }) / kProbe;
  const double most = seconds / (a_picture * float_steps);
  return most >= static_cast<double>(batch) ? batch : std::max(kProbe, static_cast<std::int64_t>(most));
}

}  // namespace

ModelTimes bench_steps(const std::string& name, std::int64_t batch, double budget_seconds) {
  const auto start = std::chrono::steady_clock::now();
  const models::Model& model = models::find_model(name);
  const std::vector<Variant> variants = variants_of(model);
  if (batch == 0)
    batch = has_batch_norm(model) ? 64 : 128;
  else
    batch = affordable_batch(model, variants, batch, budget_seconds);

  std::vector<std::unique_ptr<NoiseTraining>> trainings;
  for (const Variant& variant : variants) {
    require_right_steps(model, variant);
    trainings.push_back(std::make_unique<NoiseTraining>(model, variant.rewrite, batch));
    // The first step compiles plan and kernels, the second finds all memory in place.
    for (int i = 0; i < 2; ++i) trainings.back()->step();
  }
  // No more rounds where they are not steady: a step takes long enough.
  const Patience patience = {.seconds = budget_seconds - seconds_since(start), .longest_stretch = 1};
  const QuietWatch watch;
  const auto times = measure_in_turns(variants.size(), patience,
                                      [&](std::size_t k) { return seconds_of([&] { trainings[k]->step(); }); });
  ModelTimes results{.rows = {}, .disturbance = watch.since()};
  for (std::size_t k = 0; k < variants.size(); ++k)
    results.rows.push_back({.model = name,
                            .what = variants[k].what,
                            .batch = batch,
                            .threads = thread_count(),
                            .rounds = times[k],
                            .over_float = ratio_of(times[k], times[0]),
                            .arena = trainings[k]->arena()});
  return results;
}

}  // namespace miniqat::benchmarks
