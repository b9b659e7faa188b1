#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "training/report/answers_report.h"
#include "training/task/task.h"

namespace miniqat::training {

/// What a network answered for a part of the data set; names as in RunReport::results.
struct AnswersOf {
  std::string name;
  NetworkAnswers answers;
};

/// What the page shows of answers that are no classes, and the worst examples of all but pictures in classes, of the
/// first and of the last network; in the units of the data. Null where there is nothing.
///
/// "outputs" (regress): for each of the first four numbers {"name", "targets", "networks": [{"name", "r2",
/// "predictions"}]}, of evenly chosen examples where there are more than 800. "curves" (reconstruct, where there are
/// anomalies): {"name", "auc", "partial_auc", "points": [[false positive rate, true positive rate]]} of each network.
/// "labels" (multilabel): {"name", "examples", "networks": [{"name", "precision", "recall", "f1", "auc"}]}, at a
/// probability of 0.5; null is a share of nothing. "worst": {"index", "file", "texts": [[who, what]], "drawing":
/// draw_example()}, of the last network.
nlohmann::ordered_json outputs_to_json(const std::vector<AnswersOf>& answers, const datasets::Dataset& examples,
                                       const Task& task);

}  // namespace miniqat::training
