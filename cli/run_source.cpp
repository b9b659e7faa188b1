#include "cli/run_source.h"

#include <cmath>
#include <cstdio>

#include "cli/integer_source.h"
#include "cli/settings.h"
#include "core/quote.h"

namespace miniqat::cli {
namespace {

/// Empty for a run that is complete.
std::string why_unfinished(const RunDirectory& run) {
  std::error_code failure;
  if (!std::filesystem::exists(run.summary(), failure)) return "it has no summary.json yet";
  const Json summary = read_json(run.summary());
  const auto complete = summary.find("complete"), steps = summary.find("steps");
  if (complete != summary.end() && *complete == true) return "";
  const bool known = steps != summary.end() && steps->is_number_integer();
  return known ? concat("it stopped after step ", steps->get<std::int64_t>()) : "summary.json does not say complete";
}

}  // namespace

std::string unfinished_note(const RunDirectory& run) {
  const std::string reason = why_unfinished(run);
  if (reason.empty()) return "";
  return concat("note: the run in ", run.path().string(), " is unfinished: ", reason,
                " (miniqat train --resume goes on)");
}

void print_note(const std::string& note) {
  if (!note.empty()) std::fprintf(stderr, "%s\n", printable(note).c_str());
}

RunSource open_run(const std::string& run, const std::string& checkpoint) {
  const std::string variables = checkpoint.empty() ? run : checkpoint;
  RunSource source{
      .directory = RunDirectory::open(run), .settings = {}, .checkpoint = checkpoint_file(variables).string()};
  const std::filesystem::path config = source.directory.config();
  settings_from_json(read_json(config), source.settings, config.string());
  if (std::filesystem::is_directory(variables)) source.note = unfinished_note(RunDirectory::open(variables));
  return source;
}

datasets::Splits load_data(const RunSource& run, const std::string& dataset, const std::string& data_dir) {
  const std::string name = dataset.empty() ? run.settings.dataset : dataset;
  check_dataset(name);
  return datasets::load(name, data_dir.empty() ? run.settings.data_dir : data_dir);
}

integer::Grid recorded_input(const RunSource& run) {
  if (std::filesystem::exists(run.directory.summary())) {
    const Json summary = read_json(run.directory.summary());
    const auto scale = summary.find("input_scale"), zero_point = summary.find("input_zero_point");
    std::int32_t zero = 0;
    if (scale != summary.end() && scale->is_number() && std::isfinite(scale->get<float>()) &&
        zero_point != summary.end() && integer_from_json(*zero_point, zero))
      return {.scale = scale->get<float>(), .zero_point = zero, .bits = 8};
  }
  return grid_of(load_data(run, {}, {}).test);
}

}  // namespace miniqat::cli
