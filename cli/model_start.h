#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cli/flags/command_line.h"
#include "cli/flags/setting_flags.h"
#include "core/graph/graph.h"
#include "core/text/error.h"
#include "training/settings/settings.h"
#include "training/settings/train_settings.h"
#include "training/settings/usage_error.h"

namespace miniqat::cli {

/// Of commands that read a graph file.
inline constexpr const char* kImageSizeHelp =
    "of an ONNX model that leaves height and width of images open: HxW, or one number for both";

/// The network of a graph JSON file or of an ONNX model; `image_size` is the value of --image-size, "" without it.
/// Throws UsageError for a size beside a graph JSON, and what read_network() and import_onnx() throw.
Graph read_graph_file(const std::string& path, const std::string& image_size);

/// Settings that a float run has already: their flags go with --model.
inline constexpr std::array<const char*, 6> kSettingsOfModel = {"output", "image_size", "colour",
                                                                "mean",   "std",        "skip_broken"};

/// Throws UsageError unless there is a run or a --model, and not both, and for flags that need --model. `flags`:
/// SettingFlags with "model" and kSettingsOfModel. `dataset`: that of --dataset, which a run may be given, too.
template <class Flags>
void require_run_or_model(const std::string& run, const Flags& flags, const std::string& dataset = {}) {
  using training::MissingArgument, training::UsageError;
  const bool has_model = flags.was_given("model");
  if (run.empty() && !has_model)
    throw MissingArgument(
        "--run is required: RUN or --run RUN, the directory of a float run; or --model MODEL.onnx with --dataset");
  if (!run.empty() && has_model) throw UsageError("give a float run or --model, not both");
  for (const char* setting : kSettingsOfModel)
    if (const bool is_for_dataset = !dataset.empty() && setting == std::string_view("skip_broken");
        !has_model && !is_for_dataset && flags.was_given(setting))
      throw UsageError(concat(training::flag_of(setting), " goes with --model: a float run has its own"));
}

/// What a float run has: the network, its pictures and batches.
struct ModelSettings : training::TrainSettings {
  template <class Visitor>
  static void visit(Visitor&& visitor) {
    training::TrainSettings::visit([&](const char* name, auto access, const char* help) {
      if (name == std::string_view("model"))
        visitor(name, access, "an ONNX model with its weights, instead of a float run; needs --dataset");
      else if (name == std::string_view("batch_size") || std::ranges::count(kSettingsOfModel, std::string_view(name)))
        visitor(name, access, help);
    });
  }
};

using ModelFlags = SettingFlags<ModelSettings>;

std::shared_ptr<ModelFlags> make_model_flags(Command& command);

/// The settings of --model, whose data set is given by flags of its own; none for a run. Throws UsageError as
/// require_run_or_model() and settle_model() do, and for --batch-size of a run.
std::optional<training::TrainSettings> model_instead_of_run(const ModelFlags& flags, const std::string& run,
                                                            const std::string& dataset, const std::string& data_dir);

/// Whether --skip-broken is given, with a run or a model.
bool asks_to_skip_broken(const ModelFlags& flags);

}  // namespace miniqat::cli
