#include "cli/value_names.h"

#include "bench/kernel_registry.h"
#include "bench/operation.h"
#include "datasets/dataset.h"
#include "models/models.h"
#include "training/settings/optimizers.h"

namespace miniqat::cli {
namespace {

using Names = std::vector<std::string>;

Names names_of_optimizers() {
  Names names;
  for (const training::KnownOptimizer& optimizer : training::known_optimizers()) names.push_back(optimizer.name);
  return names;
}

Names names_of_schedules() {
  const auto names = optim::schedule_names();
  return {names.begin(), names.end()};
}

/// The names of operations, and of kernels beside ours.
Names names_of_kernels() {
  Names names;
  for (const auto& operation : bench::operations()) names.emplace_back(operation.name);
  const Names kernels = bench::registered_names();
  names.insert(names.end(), kernels.begin(), kernels.end());
  return names;
}

Names names_of_augmentations() { return {"auto", "none", "shift", "crop-flip"}; }
Names names_of_colours() { return {"auto", "grey", "rgb"}; }
Names names_of_weights() { return {"balanced"}; }

struct Row {
  /// "" for every command.
  const char* command;
  const char* flag;
  Names (*names)();
  bool or_file = false;
  bool is_list = false;
};

/// Elsewhere --model is a file.
constexpr Row kRows[] = {
    {.command = "train", .flag = "--model", .names = models::model_names, .or_file = true},
    {.command = "models", .flag = "--model", .names = models::model_names},
    {.command = "bench", .flag = "--models", .names = models::model_names, .is_list = true},
    {.command = "bench", .flag = "--kernel", .names = names_of_kernels, .is_list = true},
    {.command = "", .flag = "--dataset", .names = datasets::dataset_names, .or_file = true},
    {.command = "", .flag = "--optimizer", .names = names_of_optimizers},
    {.command = "", .flag = "--schedule", .names = names_of_schedules},
    {.command = "", .flag = "--augment", .names = names_of_augmentations},
    {.command = "", .flag = "--colour", .names = names_of_colours},
    {.command = "", .flag = "--class-weights", .names = names_of_weights, .or_file = true},
};

}  // namespace

std::optional<ValueNames> value_names(const std::string& command, const std::string& flag) {
  for (const Row& row : kRows)
    if (flag == row.flag && (*row.command == '\0' || command == row.command))
      return ValueNames{.names = row.names(), .or_file = row.or_file, .is_list = row.is_list};
  return {};
}

}  // namespace miniqat::cli
