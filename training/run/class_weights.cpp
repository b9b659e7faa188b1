#include "training/run/class_weights.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/json_text.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "datasets/class_counts.h"
#include "training/settings/usage_error.h"

namespace miniqat::training {
namespace {

using Json = nlohmann::ordered_json;

std::vector<double> balanced_weights(const datasets::Dataset& train) {
  const std::vector<std::int64_t> counts = datasets::class_counts(train);
  const auto classes = static_cast<double>(counts.size() - std::ranges::count(counts, 0));
  std::vector<double> weights;
  for (const std::int64_t count : counts)
    weights.push_back(count == 0 ? 0 : static_cast<double>(train.size()) / (classes * static_cast<double>(count)));
  return weights;
}

double weight_from(const Json& json, const std::string& name, const std::string& file) {
  if (!json.is_number() || !(json.get<double>() >= 0) || !std::isfinite(json.get<float>()))
    throw UsageError(concat("--class-weights ", file, ": the weight of ", name,
                            " must be a finite number from 0 on, is ", shown(json)));
  return json.get<double>();
}

std::vector<double> weights_in_file(const std::string& file, const datasets::Dataset& train) {
  std::error_code failure;
  if (!std::filesystem::exists(file, failure))
    throw UsageError(concat("--class-weights is balanced or a JSON file, and there is no ", file));
  const Json json = as_usage([&] { return read_json(file); });
  std::vector<std::string> names;
  for (int label = 0; label < train.classes; ++label) names.push_back(train.class_name(label));
  std::vector<double> weights;
  if (json.is_array()) {
    if (json.size() != names.size())
      throw UsageError(concat("--class-weights ", file, " has ", counted(json.size(), "number"), " for ",
                              counted(names.size(), "class")));
    for (std::size_t label = 0; label < names.size(); ++label)
      weights.push_back(weight_from(json[label], names[label], file));
  } else if (json.is_object()) {
    for (const auto& item : json.items())
      if (std::ranges::find(names, item.key()) == names.end())
        throw UsageError(concat("--class-weights ", file, ": no class is called ", quote(item.key()),
                                did_you_mean(item.key(), names)));
    for (const std::string& name : names) {
      const auto found = json.find(name);
      if (found == json.end())
        throw UsageError(concat("--class-weights ", file, " has no weight for the class ", printable(name)));
      weights.push_back(weight_from(*found, name, file));
    }
  } else {
    throw UsageError(concat("--class-weights ", file, R"( must be {"class": weight, ...} or an array of weights)"));
  }
  if (std::ranges::all_of(weights, [](double weight) { return weight == 0; }))
    throw UsageError(concat("--class-weights ", file, ": all weights are 0"));
  return weights;
}

}  // namespace

std::vector<double> class_weights_of(const TrainSettings& settings, const datasets::Dataset& train) {
  if (settings.class_weights.empty()) return {};
  return has_class_weights_file(settings) ? weights_in_file(settings.class_weights, train) : balanced_weights(train);
}

void write_class_weights(const TrainSettings& settings, const datasets::Dataset& train, const RunDirectory& run) {
  if (settings.class_weights.empty()) return;
  const std::vector<double> weights = class_weights_of(settings, train);
  Json json = Json::object();
  for (std::size_t label = 0; label < weights.size(); ++label)
    json[train.class_name(static_cast<std::int64_t>(label))] = weights[label];
  write_json(run.class_weights(), json);
}

void use_own_class_weights(TrainSettings& settings, const RunDirectory& run) {
  std::error_code failure;
  if (has_class_weights_file(settings) && std::filesystem::exists(run.class_weights(), failure))
    settings.class_weights = run.class_weights().string();
}

void hand_on_class_weights(const RunDirectory& from, const RunDirectory& to, Json& config) {
  copy_if_there(from.class_weights(), to.class_weights());
  const auto setting = config.find("class_weights");
  if (setting != config.end() && *setting != "" && *setting != "balanced") *setting = to.class_weights().string();
}

}  // namespace miniqat::training
