#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "datasets/dataset.h"
#include "training/run/run_directory.h"
#include "training/settings/train_settings.h"

namespace miniqat::training {

/// The weights that TrainSettings::class_weights gives the classes of the training pictures; empty where it is "".
/// "balanced": n / (k n_c) for a class with n_c of the n pictures, where k classes have any (King and Zeng 2001), 0 for
/// a class without. Otherwise those of a JSON file, {"cat": 1.5, ...} with the name or number of each class, or one
/// number a class in an array. Throws UsageError that names the file, a class that is missing or unknown, and a weight
/// that is not a finite number from 0 on.
std::vector<double> class_weights_of(const TrainSettings& settings, const datasets::Dataset& train);

/// Writes the weights that the settings give to the run's own class_weights.json, by the names of classes; nothing
/// without weights.
void write_class_weights(const TrainSettings& settings, const datasets::Dataset& train, const RunDirectory& run);

/// Lets settings of a run take weights that came from a file from the run's own copy.
void use_own_class_weights(TrainSettings& settings, const RunDirectory& run);

/// Copies the class weights' file of the run in `from` to a run in `to` that is made from it, whose config.json takes
/// it.
void hand_on_class_weights(const RunDirectory& from, const RunDirectory& to, nlohmann::ordered_json& config);

}  // namespace miniqat::training
