#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "datasets/dataset.h"
#include "integer/arithmetic.h"
#include "quantize/quantizers.h"
#include "training/run/data_of_run.h"
#include "training/run/run_directory.h"
#include "training/settings/train_settings.h"

namespace miniqat::training {

/// How to go on after a NonFiniteLoss, which a run with or without dampening meets again from its last checkpoint.
std::string after_non_finite(bool dampens);

/// A run that a command takes its graph, settings and variables from.
struct RunSource {
  RunDirectory directory;
  TrainSettings settings;
  /// A .safetensors file: the run's own or another.
  std::string checkpoint;
  /// trained_variables().note of the run that the variables come from.
  std::string note = {};
};

/// Variables to take over, as a path names them.
struct TrainedVariables {
  /// The .safetensors file.
  std::filesystem::path file;
  /// For an unfinished run "note: the run in ... is unfinished: ...", with the step of its checkpoint and the way to go
  /// on. A run is unfinished if its summary.json is missing or does not call it complete. "" for a run that is
  /// complete, and for a file.
  std::string note;
};

/// Finds the variables of `path`, which is a .safetensors file or a run directory. Throws Error where there is no such
/// thing, and for a run that has not trained a step that its checkpoint knows: its variables are those it began with.
TrainedVariables trained_variables(const std::filesystem::path& path);

/// The note on a run that is not complete, also for one without a trained step. Throws Error for a checkpoint that is
/// none.
std::string unfinished_note(const RunDirectory& run);

/// Throws Error that says the same for a run that is not complete.
void require_complete(const RunDirectory& run);

/// Lets settings of a run take the network of a model file from the copy that the run in `run` has. Runs of earlier
/// versions have none. Throws Error where the file is not there, either.
void use_model_copy(TrainSettings& settings, const RunDirectory& run);

/// `checkpoint` is a .safetensors file or run directory, "" for the run's own; an unfinished run that the variables
/// come from is noted. Throws Error when there is no such run, and what trained_variables() throws.
RunSource open_run(const std::string& run, const std::string& checkpoint);

/// The run's network and what it was trained on; shares the run's settings. Throws Error for a graph that is no
/// classifier.
TrainedOn trained_on(const RunSource& run);

/// The data set given to a command, or else the run's own, with the run's validation part held out. Own files are read
/// as load_options() says. Of others than the run's own no training part is needed, and files without parts are test
/// pictures as a whole, unless they are the run's own at another place (moved_data()). Throws UsageError for an unknown
/// name, Error for files that are missing or malformed, or whose pictures are not of the size that the run's graph
/// takes or fewer than its validation part needs.
datasets::Splits load_data(const RunSource& run, const std::string& dataset, const std::string& data_dir);

/// How a run is quantized: as its graph for training says, which shows more than that for evaluation.
quantize::Quantization quantization_of(const RunDirectory& run);

/// The grid of the run's pictures as the run records it; of a run without such a record, that of its data set, which
/// must then be there.
integer::Grid recorded_input(const RunSource& run);

/// The accuracy on test pictures that the run's summary records for its own variables: nothing without a summary, or
/// where the variables come from elsewhere.
std::optional<double> recorded_accuracy(const RunSource& run);

}  // namespace miniqat::training
