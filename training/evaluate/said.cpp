#include "training/evaluate/said.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace miniqat::training {
namespace {

/// What the outputs for example i say: the probability of each label, the mean squared error of a reconstruction, or
/// themselves.
std::vector<double> answers_of(const Task& task, const datasets::Dataset& data, std::size_t i,
                               const std::vector<double>& outputs) {
  std::vector<double> answers = outputs;
  if (&task == &multilabel())
    for (double& answer : answers) answer = 1 / (1 + std::exp(-answer));
  if (&task != &reconstruction()) return answers;
  double squares = 0;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const std::size_t at = i * outputs.size() + k;
    const double number = data.has_pictures()
                              ? (data.images.values<std::uint8_t>()[at] - data.zero_point) * double{data.scale}
                              : data.images.values<float>()[at];
    squares += (outputs[k] - number) * (outputs[k] - number);
  }
  return {squares / static_cast<double>(outputs.size())};
}

}  // namespace

Prediction said_of(const AskedPicture& asked, const std::vector<Prediction>& predictions) {
  const auto windows =
      std::span(predictions).subspan(static_cast<std::size_t>(asked.first), static_cast<std::size_t>(asked.windows));
  Prediction all = windows.front();
  if (windows.size() == 1 || all.scores.empty()) return all;
  for (std::size_t k = 0; k < all.scores.size(); ++k) {
    double sum = 0;
    for (const Prediction& one : windows) sum += one.scores[k];
    all.scores[k] = sum / static_cast<double>(windows.size());
  }
  const bool decided = std::ranges::all_of(windows, [](const Prediction& one) { return one.predicted >= 0; });
  all.predicted = decided ? all.ranking().front() : -1;
  return all;
}

std::vector<double> answers_to(const Task& task, const datasets::Dataset& data, const AskedPicture& asked,
                               const std::vector<Prediction>& predictions) {
  std::vector<double> means;
  for (std::int64_t i = asked.first; i < asked.first + asked.windows; ++i) {
    const auto place = static_cast<std::size_t>(i);
    const std::vector<double> answers = answers_of(task, data, place, predictions[place].outputs);
    means.resize(answers.size());
    for (std::size_t k = 0; k < answers.size(); ++k) means[k] += answers[k] / static_cast<double>(asked.windows);
  }
  return means;
}

}  // namespace miniqat::training
