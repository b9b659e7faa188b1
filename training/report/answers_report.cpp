#include "training/report/answers_report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/tensors/tensor.h"
#include "training/evaluate/evaluator.h"
#include "training/report/example_drawing.h"

namespace miniqat::training {

NetworkAnswers::NetworkAnswers(const datasets::Dataset& examples, const Task& task)
    : has_targets_(&task == &regression() || &task == &multilabel()) {
  if (&task == &classification()) answers.emplace(examples);
}

void NetworkAnswers::add(std::int64_t index, std::span<const float> outputs) {
  if (has_targets_) given.insert(given.end(), outputs.begin(), outputs.end());
  if (!answers) return;
  answers->add(index, outputs);
  const std::int64_t chosen = argmax(outputs);
  choices.push_back({chosen, chosen < 0 ? 0 : class_scores(outputs)[static_cast<std::size_t>(chosen)]});
}

Comparison compare(const NetworkAnswers& first, const NetworkAnswers& second, const datasets::Dataset& pictures,
                   std::size_t most) {
  Comparison result;
  const auto labels = pictures.labels.values<std::int32_t>();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const Choice &a = first.choices[i], &b = second.choices[i];
    const bool a_right = a.predicted == labels[i], b_right = b.predicted == labels[i];
    std::int64_t& count = a_right ? (b_right ? result.both_right : result.only_first_right)
                                  : (b_right ? result.only_second_right : result.both_wrong);
    ++count;
    result.same_class += a.predicted == b.predicted ? 1 : 0;
    if (a_right && !b_right)
      result.lost.push_back(
          {.index = static_cast<std::int64_t>(i), .label = labels[i], .in_float = a, .in_integers = b});
  }
  std::ranges::stable_sort(result.lost, std::greater(), [](const LostPicture& lost) { return lost.in_integers.score; });
  result.lost.resize(std::min(result.lost.size(), most));
  for (LostPicture& lost : result.lost) lost.drawing = draw_example(pictures, lost.index);
  return result;
}

std::vector<std::int64_t> worst_examples(const Evaluation& evaluation, std::size_t most) {
  std::vector<std::int64_t> order(evaluation.losses.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](std::int64_t i) {
    const double loss = evaluation.losses[static_cast<std::size_t>(i)];
    return std::isnan(loss) ? std::numeric_limits<double>::infinity() : loss;
  });
  order.resize(std::min(order.size(), most));
  return order;
}

}  // namespace miniqat::training
