#include "training/run/same_data.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "datasets/known_datasets.h"
#include "training/run/data_of_run.h"
#include "training/settings/settings.h"

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
/// The same for data that have grown: more than new examples of one kind move a mean, less than another unit does.
constexpr double kMostShift = 0.5;

bool has_moved(const datasets::Standard& before, const datasets::Standard& now, double most) {
  if (before.mean.size() != now.mean.size()) return true;
  for (std::size_t c = 0; c < now.mean.size(); ++c) {
    const double deviation = before.deviation[c], shift = std::abs(double{now.mean[c]} - before.mean[c]);
    if (!(std::max(shift, std::abs(now.deviation[c] - deviation)) <= most * deviation)) return true;
  }
  return false;
}

/// `most`: how far means and deviations may be off, in deviations. "" for nothing.
std::string changed_meaning(const RunDirectory& run, const std::string& dataset, const datasets::Splits& data,
                            double most) {
  if (!datasets::is_path(dataset)) return "";
  const Json described = data_to_json(data, dataset);
  for (const auto& [key, what] :
       {std::pair("class_names", "classes"), {"target_names", "numbers to predict"}, {"input_names", "columns"}}) {
    const Json before = recorded_of_data(run, key), now = described.value(key, Json());
    if (before.is_array() && now.is_array() && before != now)
      return concat("its ", what, " are ", names_text(now), " now, not ", names_text(before));
  }
  for (const auto& [of_targets, now] : {std::pair(false, data.train.standard), {true, data.train.target_standard}})
    if (const auto before = recorded_standard(run, of_targets); before && (!now || has_moved(*before, *now, most)))
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

std::int64_t all_in(const Json& counts) {
  std::int64_t all = 0;
  for (const Json& count : counts)
    if (std::int64_t one = 0; integer_from_json(count, one)) all += one;
  return all;
}

std::string change_note(const std::string& dataset, const std::string& change) {
  return change.empty() ? "" : concat("note: ", dataset, " has changed since the run began: ", change);
}

/// "" for nothing.
std::string changed_size(const RunDirectory& run, const datasets::Splits& data) {
  const Json recorded = recorded_of_data(run, "pictures");
  const std::int64_t before = all_in(recorded), now = all_in(picture_counts(data));
  return recorded.is_object() && before != now ? concat("it has ", counted(now, data.test.noun()), " now, not ", before,
                                                        ", and examples that the run was trained with may measure it")
                                               : "";
}

}  // namespace

std::string note_on_growth(const RunDirectory& run, const std::string& dataset, const datasets::Splits& data) {
  return change_note(dataset, changed_size(run, data));
}

std::string require_similar_data(const RunDirectory& run, const std::string& dataset, const datasets::Splits& data) {
  require_none(changed_meaning(run, dataset, data, kMostShift), dataset);
  std::string change = changed_size(run, data);
  if (change.empty()) change = changed_meaning(run, dataset, data, kLeastShift);
  const char* standard =
      data.train.standard || data.train.target_standard ? ", means and deviations stay those of the run" : "";
  return change_note(dataset, change.empty() ? "" : concat(change, "; its parts are made anew", standard));
}

void require_same_data(const RunDirectory& run, const std::string& dataset, const datasets::Splits& data) {
  require_none(changed_counts(run, data), dataset);
  require_none(changed_meaning(run, dataset, data, kLeastShift), dataset);
}

}  // namespace miniqat::training
