#pragma once

#include <filesystem>
#include <string>

#include "training/run/run_directory.h"
#include "training/settings/train_settings.h"

namespace miniqat::training {

/// The default directory of a run: runs/<model>-<data set>-<bits>-seed<n>. Of a graph file that is quantized already
/// the bits are its own. Throws what read_network() throws.
std::string default_directory(const TrainSettings& settings);

/// Throws UsageError for a learning rate that a config.json chose for the optimizer `former`, where the settings have
/// another one and nobody gave a rate for it.
void require_rate_for(const std::string& former, const TrainSettings& settings, bool rate_given);

/// The settings that a run began with, from its directory, with its own copy of the bits of layers. Throws Error for
/// files that cannot be read.
TrainSettings begun_settings(const RunDirectory& run);

/// Where `config` is the config.json of a run, lets the settings that it gave take bits of layers, weights of classes
/// and the arrays of a Python program from the run's own copies: the paths in the file are of the time when the run was
/// made.
void use_own_copies(TrainSettings& settings, const std::filesystem::path& config);

/// Throws UsageError for a new run that would replace (--overwrite) the run in `out` and with it what it reads itself:
/// the variables, the model or the data.
void require_inputs_elsewhere(const TrainSettings& settings, const std::filesystem::path& out);

/// A run goes on with the settings it began with: others would make it another run. Throws UsageError that names the
/// first setting of `wanted` that differs, but for those that change no step (and the length, which the trainer looks
/// at when the data are there). What says the same in other words is no difference, and `wanted` gets the run's own:
/// "auto" for what it stands for, ranges by task. (Of data of one's own TrainingTask compares the guess of --task
/// auto.) The run has a copy of its bits file, so the content must not differ, and `wanted` gets the name of the copy.
void require_same_run(TrainSettings& wanted, const TrainSettings& begun);

}  // namespace miniqat::training
