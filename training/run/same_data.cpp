#include "training/run/same_data.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "datasets/user_files.h"
#include "training/run/data_of_run.h"

namespace miniqat::training {
namespace {

using Json = nlohmann::ordered_json;

std::string names_text(const Json& list) {
  std::vector<std::string> names;
  for (const Json& name : list) names.push_back(printable(name.is_string() ? name.get<std::string>() : name.dump()));
  return shortened(joined(names));
}

/// In parts of the deviation: far more than another machine's rounding, far less than data of another kind.
constexpr double kLeastShift = 1e-3;

bool has_moved(const datasets::Standard& before, const datasets::Standard& now) {
  if (before.mean.size() != now.mean.size()) return true;
  for (std::size_t c = 0; c < now.mean.size(); ++c) {
    const double deviation = before.deviation[c], shift = std::abs(double{now.mean[c]} - before.mean[c]);
    if (!(std::max(shift, std::abs(now.deviation[c] - deviation)) <= kLeastShift * deviation)) return true;
  }
  return false;
}

/// "" for nothing.
std::string changed_meaning(const RunDirectory& run, const std::string& dataset, const datasets::Splits& data) {
  if (!datasets::is_path(dataset)) return "";
  const Json described = data_to_json(data, dataset);
  for (const auto& [key, what] : {std::pair("class_names", "classes"), {"target_names", "numbers to predict"}}) {
    const Json before = recorded_of_data(run, key), now = described.value(key, Json());
    if (before.is_array() && now.is_array() && before != now)
      return concat("its ", what, " are ", names_text(now), " now, not ", names_text(before));
  }
  for (const auto& [of_targets, now] : {std::pair(false, data.train.standard), {true, data.train.target_standard}})
    if (const auto before = recorded_standard(run, of_targets); before && (!now || has_moved(*before, *now)))
      return concat("its ", of_targets ? "numbers to predict" : "numbers", " have other means or deviations now");
  return "";
}

std::string changed_counts(const RunDirectory& run, const datasets::Splits& data) {
  const Json before = recorded_of_data(run, "pictures"), now = picture_counts(data);
  const auto text = [&](const Json& counts) {
    return concat(counts.value("training", 0), " training, ", counts.value("validation", 0), " validation and ",
                  counts.value("test", 0), " test ", data.train.noun(), "s");
  };
  return before.is_object() && before != now ? concat("it has ", text(now), " now, not ", text(before)) : "";
}

void require_none(const std::string& change, const std::string& dataset) {
  if (!change.empty()) fail(dataset, " has changed since the run began: ", change, "; train anew");
}

}  // namespace

void require_same_meaning(const RunDirectory& run, const std::string& dataset, const datasets::Splits& data) {
  require_none(changed_meaning(run, dataset, data), dataset);
}

void require_same_data(const RunDirectory& run, const std::string& dataset, const datasets::Splits& data) {
  require_none(changed_counts(run, data), dataset);
  require_same_meaning(run, dataset, data);
}

}  // namespace miniqat::training
