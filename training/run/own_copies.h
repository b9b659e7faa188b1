#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/files/safetensors.h"
#include "training/run/run_directory.h"
#include "training/settings/train_settings.h"

// What a run keeps of the files that its settings name. config.json has their paths of the time when the run was made;
// it may have been moved or copied since.
namespace miniqat::training {

/// Lets settings of a run take the arrays that a Python program gave it from the run's own file: config.json names it
/// where the run was made, which may have been moved or copied since.
void use_own_arrays(TrainSettings& settings, const RunDirectory& run);

/// recorded_settings() of the run's config.json, with its own arrays. Throws Error for a file that cannot be read.
TrainSettings settings_of(const RunDirectory& run);

/// Throws UsageError where a new run in `directory` would delete its own data set (--overwrite): the arrays that a
/// Python program gave to the run that is there; and what require_no_strange_arrays() throws.
void require_data_elsewhere(const std::string& dataset, const std::filesystem::path& directory);

/// Throws UsageError where a new run in `directory`, in which no run is, on the arrays of another run would take a file
/// that is there for its own copy.
void require_no_strange_arrays(const std::string& dataset, const std::filesystem::path& directory);

/// Lets settings of a run take weights that came from a file from the run's own copy.
void use_own_class_weights(TrainSettings& settings, const RunDirectory& run);

/// Makes a run in `to` of the one in `from`: its graphs, its settings and what these need, with another checkpoint and
/// summary. config.json comes last: a directory without it is no run.
void hand_on_run(const RunDirectory& from, const RunDirectory& to, const Safetensors& checkpoint,
                 const nlohmann::ordered_json& summary);

}  // namespace miniqat::training
