#include "training/run/run_directory.h"

#include "core/files/files.h"
#include "tests/fuzz/readers/reader.h"
#include "training/run/run_source.h"
#include "training/settings/given_settings.h"
#include "training/settings/settings.h"

namespace miniqat::fuzz::run_directory_reader {

using namespace miniqat::training;

namespace {

/// Named, not read: a run's own would have to be of a trained step.
constexpr const char* kVariables = "variables.safetensors";
constexpr const char* kConfig = R"({"model": "lenet", "dataset": "mnist"})";

void read_config(const fuzz::Place& place) {
  std::optional<RunSource> run;
  if (!fuzz::accepts([&] { run = open_run(place.path().string(), kVariables); })) return;
  const Json written = settings_to_json(run->settings);
  write_json(run->directory.config(), written);
  TrainSettings again;
  settings_from_json(read_json(run->directory.config()), again, "config.json");
  fuzz::require(settings_to_json(again) == written, "settings are read as they were written");
  fuzz::accepts([&] { check(run->settings); });
}

void read_summary(const fuzz::Place& place) {
  fuzz::accepts([&] { unfinished_note(RunDirectory::open(place.path())); });
  fuzz::accepts([&] { recorded_input(open_run(place.path().string(), kVariables)); });
}

void read_metrics(const fuzz::Place& place) {
  const RunDirectory run = RunDirectory::open(place.path());
  const auto kept = [&] {
    fuzz::accepts([&] { run.metrics().forget_after(40); });
    fuzz::accepts([&] { run.metrics().find(40, "loss"); });
    return read_file(place / "metrics.jsonl");
  };
  const std::string once = kept();
  fuzz::require(kept() == once, "what was kept is kept");
  run.metrics().append({{"step", 40}, {"loss", 0.5}});
  fuzz::require(kept() == once + "{\"step\": 40, \"loss\": 0.5}\n", "a line is read as it was logged");
}

void read_any(const fuzz::Place& place, const std::string& name) {
  Json json;
  if (!fuzz::accepts([&] { json = read_json(place / name); })) return;
  write_json(place / name, json);
  fuzz::require(read_json(place / name) == json, "JSON is read as it was written");
}

}  // namespace

/// The first line is the name of the file that holds the rest.
MINIQAT_READER(run_directory)(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Place place;
  const std::string_view text = fuzz::text_of(data, size);
  const std::size_t newline = text.find('\n');
  if (newline == std::string_view::npos) return 0;
  const std::string name(text.substr(0, newline));
  const std::string_view content = text.substr(newline + 1);
  place.write("config.json", kConfig);
  place.write("checkpoint.safetensors", "");
  for (const char* file : {"summary.json", "dataset.json"}) std::filesystem::remove(place / file);
  const auto read = [&](auto reader) {
    place.write(name, content);
    reader(place);
  };
  if (name == "config.json") read(read_config);
  if (name == "summary.json" || name == "dataset.json") read(read_summary);
  if (name == "metrics.jsonl") read(read_metrics);
  if (name == "init_checkpoint.json") read([&](const fuzz::Place& there) { read_any(there, name); });
  return 0;
}

}  // namespace miniqat::fuzz::run_directory_reader
