#include "training/evaluate/evaluator.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/engine/profile.h"
#include "core/tensors/tensor.h"
#include "datasets/loader.h"
#include "integer/engine.h"
#include "training/run/integer_source.h"
#include "training/run/run_source.h"

namespace miniqat::training {
namespace {

/// m = max_c z_c, NaN if one is. With e^(z - m) in place of e^z no sum overflows.
double highest(const Eigen::ArrayXd& z) { return z.maxCoeff<Eigen::PropagateNaN>(); }

constexpr std::int64_t kBatch = 100;

}  // namespace

std::vector<double> class_scores(std::span<const float> logits) {
  const Eigen::ArrayXd z = vector_of(logits).cast<double>();
  const Eigen::ArrayXd powers = (z - highest(z)).exp();
  std::vector<double> scores(logits.size());
  vector_of(std::span(scores)) = powers / powers.sum();
  return scores;
}

double cross_entropy(std::span<const float> logits, std::int64_t label) {
  const Eigen::ArrayXd z = vector_of(logits).cast<double>();
  const double m = highest(z);
  return m + std::log((z - m).exp().sum()) - z[label];
}

void Evaluation::count(std::span<const float> logits, std::int32_t label) {
  if (label < 0 || label >= std::ssize(logits))
    fail("a picture has the label ", label, ", the network tells ", logits.size(), " classes apart");
  const std::int64_t answer = argmax(logits);
  Hits::count(answer, label);
  loss += cross_entropy(logits, label);
  if (by_class.size() < logits.size()) by_class.resize(logits.size());
  ++by_class[static_cast<std::size_t>(label)].labels;
  if (answer >= 0) ++by_class[static_cast<std::size_t>(answer)].answers;
  if (answer == label) ++by_class[static_cast<std::size_t>(label)].correct;
}

void Evaluation::finish() {
  loss /= static_cast<double>(std::max<std::int64_t>(examples, 1));
  double shares = 0;
  std::int64_t classes = 0;
  for (const ClassHits& one : by_class) {
    if (one.labels == 0) continue;
    shares += static_cast<double>(one.correct) / static_cast<double>(one.labels);
    ++classes;
  }
  if (classes > 0) balanced_accuracy = shares / static_cast<double>(classes);
}

bool Evaluation::has_uneven_classes() const {
  std::int64_t least = 0, most = 0;
  for (const ClassHits& one : by_class) {
    if (one.labels > 0 && (least == 0 || one.labels < least)) least = one.labels;
    most = std::max(most, one.labels);
  }
  return most > 2 * least;
}

Evaluation evaluate(Session& session, const Classifier& classifier, const datasets::Dataset& dataset,
                    const OnLogits& on_logits, Profile* profile) {
  Evaluation result;
  session.set_profile(profile);
  Profile::Time waiting = Profile::Clock::now();
  const RunRequest request{.fetches = {classifier.logits}};
  const auto classes = static_cast<std::size_t>(classifier.logits.shape()[1]);
  datasets::for_each_batch(dataset, classifier.images.shape()[0], [&](const datasets::EvaluationBatch& batch) {
    if (profile != nullptr)
      profile->record(ProfilePhase::kLoaderWait, "next batch", "(loader)", waiting, Profile::Clock::now());
    const Tensor logits = session.run(request, {{classifier.images, batch.images}}).fetched.front();
    for (std::int64_t i = 0; i < batch.valid; ++i) {
      const std::span<const float> row = logits.values<float>().subspan(i * classes, classes);
      result.count(row, batch.labels.values<std::int32_t>()[i]);
      if (on_logits) on_logits(batch.first + i, row);
    }
    waiting = Profile::Clock::now();
  });
  session.set_profile(nullptr);
  result.finish();
  return result;
}

Evaluation evaluate_integers(const integer::Model& model, const datasets::Dataset& dataset, const OnLogits& on_logits) {
  dataset.check();
  Evaluation result;
  integer::Engine engine(model);
  const integer::TensorInfo& output = model.tensor(model.output);
  std::vector<float> logits(static_cast<std::size_t>(output.shape.elements()));
  for (std::int64_t first = 0; first < dataset.size(); first += kBatch) {
    const std::int64_t count = std::min(kBatch, dataset.size() - first);
    const Tensor& integers = engine.run(input_batch(dataset, model.tensor(model.input).grid, first, count));
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint8_t* row = integers.data<std::uint8_t>() + i * output.shape.elements();
      for (std::size_t k = 0; k < logits.size(); ++k) logits[k] = integer::dequantize(output.grid, row[k]);
      result.count(logits, dataset.labels.values<std::int32_t>()[first + i]);
      if (on_logits) on_logits(first + i, logits);
    }
  }
  result.finish();
  return result;
}

std::vector<std::int64_t> Prediction::ranking() const {
  std::vector<std::int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](std::int64_t k) { return scores[static_cast<std::size_t>(k)]; });
  return order;
}

std::vector<Prediction> predict(const RunSource& run, const datasets::Dataset& pictures, bool integer) {
  std::vector<Prediction> predictions;
  const OnLogits keep = [&](std::int64_t, std::span<const float> logits) {
    predictions.push_back({.predicted = argmax(logits), .scores = class_scores(logits)});
  };
  if (integer) {
    const integer::Model model = convert_run(run.directory, run.checkpoint, grid_of(pictures));
    require_fit(model, pictures, run.directory.eval_graph().string());
    evaluate_integers(model, pictures, keep);
  } else {
    EvaluationSession simulation(run, pictures);
    evaluate(simulation.session, simulation.classifier, pictures, keep);
  }
  return predictions;
}

}  // namespace miniqat::training
