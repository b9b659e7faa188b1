#include "training/evaluate/answers.h"

#include <limits>

#include "core/tensors/tensor.h"
#include "core/text/json.h"
#include "training/evaluate/evaluator.h"
#include "training/task/metrics.h"

namespace miniqat::training {

using Json = nlohmann::ordered_json;

Answers::Answers(const datasets::Dataset& pictures)
    : noun_(pictures.noun()), labels_(pictures.labels), files_(pictures.files) {
  for (std::int64_t k = 0; k < pictures.classes; ++k) names_.push_back(pictures.class_name(k));
  by_class_.resize(names_.size());
}

void Answers::add(std::int64_t index, std::span<const float> logits) {
  const std::int32_t label = labels_.values<std::int32_t>()[static_cast<std::size_t>(index)];
  const std::int64_t predicted = argmax(logits);
  by_class_[static_cast<std::size_t>(label)].count(predicted, label);
  ++counts_[{label, predicted}];
  undecided_ += predicted < 0 ? 1 : 0;
  if (has_many_classes() && predicted >= 0) {
    const std::vector<double> row(logits.begin(), logits.end());
    in_top_five_ += top_k_accuracy(row, std::ssize(row), std::span(&label, 1), 5) > 0 ? 1 : 0;
  }
  if (predicted == label) return;
  const double score = predicted < 0 ? std::numeric_limits<double>::quiet_NaN()
                                     : class_scores(logits)[static_cast<std::size_t>(predicted)];
  wrong_.push_back({.index = index,
                    .label = label,
                    .predicted = predicted,
                    .score = score,
                    .file = files_ ? files_->at(static_cast<std::size_t>(index)) : ""});
}

std::optional<double> Answers::top_five() const {
  if (!has_many_classes()) return {};
  return static_cast<double>(in_top_five_) / static_cast<double>(labels_.elements());
}

std::int64_t Answers::count(std::int64_t label, std::int64_t predicted) const {
  const auto found = counts_.find({label, predicted});
  return found == counts_.end() ? 0 : found->second;
}

Json Answers::classes_json() const {
  Json json = Json::array();
  for (std::int64_t label = 0; label < classes(); ++label) {
    const Hits& hits = of_class(label);
    json.push_back({{"class", name(label)},
                    {"examples", hits.examples},
                    {"correct", hits.correct},
                    {"accuracy", hits.examples == 0 ? Json(nullptr) : Json(hits.accuracy())}});
  }
  return json;
}

Json Answers::confusion_json() const {
  Json json = Json::array();
  for (std::int64_t label = 0; label < classes(); ++label) {
    Json row = Json::array();
    for (std::int64_t predicted = 0; predicted < classes(); ++predicted) row.push_back(count(label, predicted));
    json.push_back(std::move(row));
  }
  return json;
}

Json Answers::wrong_json() const {
  Json json = Json::array();
  for (const WrongAnswer& answer : wrong_) {
    const bool decided = answer.predicted >= 0;
    json.push_back({{"index", answer.index},
                    {"label", answer.label},
                    {"predicted", decided ? Json(answer.predicted) : Json(nullptr)},
                    {"score", decided ? Json(answer.score) : Json(nullptr)}});
    if (files_) json.back()["file"] = answer.file;
  }
  return json;
}

}  // namespace miniqat::training
