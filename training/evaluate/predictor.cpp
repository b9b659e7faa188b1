#include "training/evaluate/predictor.h"

#include <algorithm>
#include <numeric>

#include "core/tensors/argmax.h"
#include "training/evaluate/class_scores.h"
#include "training/evaluate/evaluator.h"
#include "training/evaluate/integer_evaluator.h"
#include "training/run/evaluation_session.h"
#include "training/run/integer_source.h"

namespace miniqat::training {

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
