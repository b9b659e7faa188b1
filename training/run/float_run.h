#pragma once

#include <string>
#include <vector>

#include "core/engine/session.h"
#include "core/files/safetensors.h"
#include "core/graph/graph.h"
#include "datasets/dataset.h"
#include "training/model_source.h"
#include "training/settings/train_settings.h"

namespace miniqat::training {

/// A float run as it is found, or the float network of a model file that no run has trained.
struct FloatRun {
  /// "" without a run.
  std::string path = {};
  bool is_run() const { return !path.empty(); }

  TrainSettings settings = {};
  /// recorded_class_names()
  std::vector<std::string> class_names = {};
  Classifier training = {};
  Classifier evaluation = {};
  /// The file of the evaluation graph, for errors.
  std::string graph_name = {};
  Safetensors checkpoint = {};
  std::string checkpoint_name = {};
  /// trained_variables().note: the run is unfinished, or "".
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

}  // namespace miniqat::training
