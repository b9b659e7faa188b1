#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/session.h"
#include "core/files/safetensors.h"
#include "core/graph/graph.h"
#include "datasets/dataset.h"
#include "integer/arithmetic.h"
#include "quantize/quantizers.h"
#include "training/model_source.h"
#include "training/run/data_of_run.h"
#include "training/run/run_directory.h"
#include "training/run/trained_variables.h"
#include "training/settings/train_settings.h"

namespace miniqat::training {

/// A run that a command takes its graph, settings and variables from.
struct RunSource {
  RunDirectory directory;
  TrainSettings settings;
  /// A .safetensors file: the run's own or another.
  std::string checkpoint;
  /// trained_variables().note of the run that the variables come from.
  std::string note = {};
};

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
/// takes or fewer than its validation part needs. `answers_optional`: what others than the run's own are to be answered
/// with may be unknown (LoadOptions).
datasets::Splits load_data(const RunSource& run, const std::string& dataset, const std::string& data_dir,
                           bool answers_optional = false);

/// How a run is quantized: as its graph for training says, which shows more than that for evaluation.
quantize::Quantization quantization_of(const RunDirectory& run);

/// The grid of the run's pictures as the run records it; of a run without such a record, that of its data set, which
/// must then be there. None of a run on numbers.
std::optional<integer::Grid> recorded_input(const RunSource& run);

/// The accuracy on test pictures that the run's summary records for its own variables: nothing without a summary, or
/// where the variables come from elsewhere.
std::optional<double> recorded_accuracy(const RunSource& run);

/// A run's evaluation graph with its variables, ready to compute.
struct EvaluationSession {
  /// Throws Error where the graph does not take the data set's pictures or tell its classes apart, and what reading it
  /// and restoring the variables throws.
  EvaluationSession(const RunSource& run, const datasets::Dataset& pictures);
  EvaluationSession(const EvaluationSession&) = delete;

  Classifier classifier;
  Session session;
};

/// A float run as it is found, or the float network of a model file that no run has trained.
struct FloatRun {
  /// "" without a run.
  std::string path = {};
  bool is_run() const { return !path.empty(); }

  TrainSettings settings = {};
  /// recorded_names()
  std::vector<std::string> class_names = {};
  Classifier training = {};
  Classifier evaluation = {};
  /// The file of the evaluation graph, for errors.
  std::string graph_name = {};
  Safetensors checkpoint = {};
  std::string checkpoint_name = {};
  /// For RunObserver::warn(): trained_variables().note, or the notes of a model's file in one line; "" for nothing.
  std::string note = {};
};

/// Throws Error where there is no run, where it is quantized already, and what trained_variables() throws.
FloatRun read_float_run(const std::string& path);

/// The network of the ONNX model in `settings.model` with the model's weights, as a float run on the data of the
/// settings would have it before its first step. Throws Error for what import_onnx() refuses, and for data that do not
/// fit the network.
FloatRun read_float_model(const TrainSettings& settings);

/// Gives the run's variables to a session of its evaluation graph, rewritten. New variables of that graph must belong
/// to quantizers: fresh statistics of a batch norm, say, would make any range worthless: Error.
void take_over(Session& session, const FloatRun& source);

struct FloatRunData {
  datasets::Splits splits;
  /// TrainSettings::validation of the splits: that of the run for its own data, otherwise 0.
  std::int64_t held_out = 0;
};

/// A data set by name or absolute path, which must fit the run's network; the validation part of the run's own data
/// set, also at another place (moved_data()), is held out. Throws Error for what does not fit.
FloatRunData load_data(const FloatRun& run, const std::string& dataset, const std::string& data_dir);

/// 16 hexadecimal digits that change with any byte of a checkpoint file: FNV-1a of 64 bits. Throws Error for a file
/// that cannot be read.
std::string variables_hash(const std::filesystem::path& checkpoint);

/// Changes with any byte of an ONNX model, and of the files in which it keeps weights: the variables_hash() of each,
/// with
/// "-" between them. Throws Error for a file that cannot be read, and what importers::external_files() throws.
std::string model_hash(const std::filesystem::path& model);

}  // namespace miniqat::training
