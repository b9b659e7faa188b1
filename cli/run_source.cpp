#include "cli/run_source.h"

#include "cli/integer_source.h"
#include "cli/settings.h"

namespace miniqat::cli {

RunSource open_run(const std::string& run, const std::string& checkpoint) {
  RunSource source{.directory = RunDirectory::open(run),
                   .settings = {},
                   .checkpoint = checkpoint_file(checkpoint.empty() ? run : checkpoint).string()};
  const std::filesystem::path config = source.directory.config();
  settings_from_json(read_json(config), source.settings, config.string());
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
    if (scale != summary.end() && scale->is_number() && zero_point != summary.end() && zero_point->is_number_integer())
      return {.scale = scale->get<float>(), .zero_point = zero_point->get<std::int32_t>(), .bits = 8};
  }
  return grid_of(load_data(run, {}, {}).test);
}

}  // namespace miniqat::cli
