#include "cli/inputs.h"

#include "core/files/files.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "datasets/known_datasets.h"
#include "datasets/user_files.h"
#include "importers/onnx/import.h"
#include "training/model_source.h"
#include "training/run/run_directory.h"
#include "training/settings/usage_error.h"

namespace miniqat::cli {

using namespace training;
namespace fs = std::filesystem;

namespace {

/// What is read with `input`: all files of a run and its data, the other part of data, the weights beside an ONNX
/// model.
std::vector<fs::path> files_with(const fs::path& input) {
  if (const auto run = run_of_variables(input)) {
    std::vector<fs::path> files = run->files();
    const nlohmann::ordered_json config = read_json(run->config());
    const std::string dataset = text_at(config, "dataset");
    if (datasets::is_path(dataset))
      for (fs::path& file : datasets::files_read_with(dataset)) files.push_back(std::move(file));
    files.insert(files.end(), {run->given_arrays(), run->trace(), text_at(config, "data_dir")});
    return files;
  }
  if (is_onnx_file(input.string()) && is_there(input)) return importers::external_files(input);
  return datasets::files_read_with(input);
}

/// Whether it is a file of data at any depth of a folder that is not a run's.
bool is_data_in(const fs::path& file, const fs::path& folder) {
  std::error_code failure;
  if (!datasets::is_named_like_data(file) || !fs::is_directory(folder, failure) || run_of_variables(folder))
    return false;
  fs::path place = fs::canonical(file, failure);
  while (place.has_relative_path() && !fs::equivalent(place, folder, failure)) place = place.parent_path();
  return place.has_relative_path();
}

}  // namespace

void require_no_input(const std::string& flag, const fs::path& file, const std::vector<fs::path>& inputs) {
  if (!is_there(file)) return;
  const auto refuse = [&](const std::vector<fs::path>& files) {
    std::error_code failure;
    for (const fs::path& input : files)
      if (fs::equivalent(file, input, failure) || is_data_in(file, input))
        throw UsageError(
            concat(flag, " would replace ", file.string(), ", which the command reads: give another ", flag));
  };
  // The files themselves first: an ONNX model may be none.
  refuse(inputs);
  for (const fs::path& input : inputs) refuse(files_with(input));
}

}  // namespace miniqat::cli
