#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/flags/command_line.h"
#include "cli/flags/setting_flags.h"
#include "core/graph/graph.h"
#include "core/text/error.h"
#include "training/settings/settings.h"
#include "training/settings/train_settings.h"
#include "training/settings/usage_error.h"

namespace miniqat::cli {

/// The help of --image-size, for commands that read a graph file.
inline constexpr const char* kImageSizeHelp =
    "of an ONNX model that leaves height and width of images open: HxW, or one number for both";

struct GraphFile {
  Graph graph;
  /// For print_notes(): what the graph does otherwise than an ONNX model, "note: the final Softmax ...".
  std::vector<std::string> notes = {};
};

/// The network of a graph JSON file or of an ONNX model; `image_size` is the value of --image-size, "" without it.
/// Throws UsageError for a size beside a graph JSON, and what read_network() and import_onnx() throw.
GraphFile read_graph_file(const std::string& path, const std::string& image_size);

/// Settings that a float run has already: their flags go with --model, and so do kReadingSettings and those that
/// `quantize` takes beside a run, too.
inline constexpr std::array<const char*, 6> kSettingsOfModel = {"output", "image_size", "colour",
                                                                "mean",   "std",        "skip_broken"};

/// Settings that say how numbers and sounds of one's own are read, which a float run knows as well.
inline constexpr std::array<const char*, 19> kReadingSettings = {
    "target",       "inputs", "answers",     "group_by",  "test_groups", "pad_to",    "features",
    "frames",       "snr_db", "sample_rate", "seconds",   "window_ms",   "stride_ms", "bands",
    "coefficients", "low_hz", "high_hz",     "mel_scale", "silence"};

using TrainFlags = SettingFlags<training::TrainSettings>;

/// Throws UsageError unless there is a run or a --model, and not both, and for flags of what a run has. `dataset`: that
/// of --dataset, which a run may be given, too.
void require_run_or_model(const std::string& run, const TrainFlags& flags, const std::string& dataset = {});

/// The flags for what a float run has: the network, its task, the way its data are read, and batches.
std::shared_ptr<TrainFlags> make_model_flags(Command& command);

/// The settings of --model, whose data set is given by flags of its own; none for a run. Throws UsageError as
/// require_run_or_model() and settle_model() do, and for --batch-size of a run.
std::optional<training::TrainSettings> model_instead_of_run(const TrainFlags& flags, const std::string& run,
                                                            const std::string& dataset, const std::string& data_dir);

/// Whether --skip-broken is given, with a run or a model.
bool asks_to_skip_broken(const TrainFlags& flags);

}  // namespace miniqat::cli
