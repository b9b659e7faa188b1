#include "training/listing/run_list.h"

#include <algorithm>
#include <chrono>

#include "core/files/files.h"
#include "core/text/error.h"
#include "training/quantize/quantization_plan.h"
#include "training/run/data_of_run.h"
#include "training/run/made_by.h"
#include "training/run/run_directory.h"
#include "training/run/run_source.h"
#include "training/settings/train_settings.h"
#include "training/task/task.h"

namespace miniqat::training {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

/// A run has config.json, which other programs have, too; `quantize` begins with a file of its own.
bool looks_like_a_run(const fs::path& folder) {
  if (is_there(folder / "quantize.json")) return true;
  if (!is_there(folder / "config.json")) return false;
  try {
    const Json config = read_json(folder / "config.json");
    return config.is_object() && config.contains("model") && config.contains("dataset");
  } catch (const Error&) {
    // Damaged, and beside other files of a run: it is one.
    return is_there(folder / "train_graph.json") || is_there(folder / "checkpoint.safetensors");
  }
}

fs::file_time_type last_write(const fs::path& folder) {
  fs::file_time_type latest = fs::file_time_type::min();
  for (const char* name : {"config.json", "summary.json", "metrics.jsonl", "quantize.json", "checkpoint.safetensors"}) {
    std::error_code failure;
    if (const auto time = fs::last_write_time(folder / name, failure); !failure) latest = std::max(latest, time);
  }
  return latest;
}

/// The state of a run that was not stopped in good order.
std::string state_from_metrics(const RunDirectory& run) {
  if (!run.metrics().exists()) return "unfinished, at step 0";
  const Json last = run.metrics().last();
  if (const std::string failure = text_at(last, "failure"); !failure.empty()) return "failed: " + failure;
  const auto step = last.find("step");
  return concat("unfinished, at step ", step == last.end() ? Json(0).dump() : step->dump());
}

void read_summary(const Json& summary, ListedRun& listed) {
  listed.complete = summary.value("complete", false);
  listed.state = listed.complete ? "complete" : concat("stopped at step ", summary.value("steps", std::int64_t{0}));
  listed.quantization = text_at(summary, "quantization");
  listed.bits = summary.value("bits", Json(nullptr));
  const std::string name = summary.value("task", classification().name);
  const Task& task = find_task(name);
  const auto main_of = [&](const char* part) -> std::optional<Measure> {
    for (const MeasureKind& kind : task.measures)
      if (const std::optional<double> value = number_at(summary, concat(part, "_", kind.key).c_str()))
        return Measure{.kind = &kind, .value = *value};
    return {};
  };
  listed.test = main_of("test");
  listed.validation = main_of("validation");
  if (const std::optional<Measure>& measure = listed.test ? listed.test : listed.validation)
    listed.decides = measure->kind;
  listed.seconds = number_at(summary, "seconds");
}

/// The seconds of calibration and training in a complete `quantize`, whose summary is that of the stage it chose.
std::optional<double> seconds_of_stages(const fs::path& folder) {
  if (!is_there(folder / "quantize.json")) return {};
  const RunDirectory run = RunDirectory::open(folder);
  double sum = 0;
  for (const fs::path& stage : {calibrated_in(run), trained_in(run)})
    sum += number_at(json_if_there(stage / "summary.json"), "seconds").value_or(0);
  return sum > 0 ? std::optional(sum) : std::nullopt;
}

void read_run(const fs::path& folder, ListedRun& listed) {
  if (!is_there(folder / "config.json")) {
    listed.state = "unfinished, no network chosen yet";
    const Json plan = read_json(folder / "quantize.json");
    const Json training = plan.value("training", Json::object());
    listed.model = text_at(training, "model");
    listed.dataset = text_at(training, "dataset");
    TrainSettings asked;
    asked.task = training.value("task", asked.task);
    listed.decides = &task_of(asked).measures.front();
    return;
  }
  const RunDirectory run = RunDirectory::open(folder);
  const Json config = read_json(run.config());
  listed.model = text_at(config, "model");
  listed.dataset = text_at(config, "dataset");
  // Settings that no command can read.
  listed.decides = &task_of(recorded_settings(config, run.config().string())).measures.front();
  const Json summary = json_if_there(run.summary());
  if (summary.is_object()) {
    read_summary(summary, listed);
  } else {
    listed.state = state_from_metrics(run);
    const quantize::Quantization quantization = quantization_of(run);
    listed.quantization = quantization.label();
    listed.bits = quantization.bits();
  }
  if (const std::optional<double> stages = seconds_of_stages(folder)) listed.seconds = stages;
}

void read_commands(const fs::path& folder, ListedRun& listed) {
  const fs::path file = folder / "commands.json";
  if (!is_there(file)) return;
  try {
    listed.commands = read_json(file);
    listed.command = text_of_commands(listed.commands);
  } catch (const Error& error) {
    // The run is none the worse for it.
    listed.command = concat("(", error.what(), ")");
  }
}

/// "b" of "a/b/", and in that folder of ".".
std::string own_name(const fs::path& folder) {
  std::error_code failure;
  const fs::path whole = fs::weakly_canonical(folder, failure);
  const fs::path name = whole.filename();
  return failure || name.empty() ? folder.string() : name.string();
}

ListedRun listed(const fs::path& folder, const std::string& name) {
  ListedRun run{.name = name, .path = folder, .written = last_write(folder)};
  read_commands(folder, run);
  try {
    read_run(folder, run);
  } catch (const std::exception& error) {
    run.complete = false;
    run.state = concat("broken: ", error.what());
  }
  return run;
}

}  // namespace

Json ListedRun::json() const {
  const auto optional = [](const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); };
  const auto key_of = [&](const char* part, const std::optional<Measure>& measure) {
    return concat(part, measure ? measure->kind->key : decides != nullptr ? decides->key : "accuracy");
  };
  const auto time = std::chrono::file_clock::to_sys(written);
  return {{"name", name},
          {"model", model},
          {"dataset", dataset},
          {"quantization", quantization},
          {"bits", bits},
          {"complete", complete},
          {"state", state},
          {key_of("test_", test), test ? Json(test->value) : Json(nullptr)},
          {key_of("validation_", validation), validation ? Json(validation->value) : Json(nullptr)},
          {"seconds", optional(seconds)},
          {"command", command},
          {"commands", commands},
          {"written", std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count()}};
}

std::vector<ListedRun> list_runs(const fs::path& folder) {
  std::error_code failure, ignored;
  if (!fs::is_directory(folder, failure)) fail(folder.string(), " is not a folder");
  std::vector<ListedRun> runs;
  if (looks_like_a_run(folder)) {
    runs.push_back(listed(folder, own_name(folder)));
    return runs;
  }
  const auto options = fs::directory_options::skip_permission_denied;
  fs::recursive_directory_iterator place(folder, options, failure);
  for (; !failure && place != fs::recursive_directory_iterator(); place.increment(failure)) {
    if (!place->is_directory(ignored) || !looks_like_a_run(place->path())) continue;
    runs.push_back(listed(place->path(), place->path().lexically_relative(folder).string()));
    place.disable_recursion_pending();
  }
  if (failure) fail("cannot read ", folder.string(), ": ", failure.message());
  std::ranges::sort(runs, [](const ListedRun& a, const ListedRun& b) {
    return std::tie(a.written, a.name) < std::tie(b.written, b.name);
  });
  return runs;
}

}  // namespace miniqat::training
