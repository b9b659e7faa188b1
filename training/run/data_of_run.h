#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "training/model_source.h"
#include "training/run/run_directory.h"
#include "training/settings/train_settings.h"

namespace miniqat::training {

/// A network that was trained on some data, and is to see these or others.
struct TrainedOn {
  const TrainSettings& settings;
  /// The shape of the network's pictures, [n, h, w, c].
  Shape images;
  int classes = 0;
  /// Empty where nobody knows them.
  std::vector<std::string> class_names = {};
};

/// How a data set is read for such a network. A user's own files other than those it was trained on take on the size,
/// the colour, mean and deviation of those, and classes have the numbers that they had there.
datasets::LoadOptions load_options(const TrainedOn& network, const std::string& dataset);

/// Settings of a run of the network on another data set, a name or an absolute path, whose pictures are read as
/// load_options() says.
TrainSettings moved_to(const TrainedOn& network, const std::string& dataset);

/// What a run records of its data, in dataset.json and in its summary: the grid of the pictures' bytes ("input_scale",
/// "input_zero_point"), the picture_counts() of a user's own files ("pictures"), the number of broken ones that were
/// left out, if any ("skipped_files"), the names of classes ("class_names").
nlohmann::ordered_json data_to_json(const datasets::Splits& data, const std::string& dataset);

/// The names of classes that a run records; empty without a record or names.
std::vector<std::string> recorded_class_names(const RunDirectory& run);

/// One of the values of data_to_json(), from the summary if it has one, or else from dataset.json; null without.
nlohmann::ordered_json recorded_of_data(const RunDirectory& run, const char* key);

/// Whether a data set, by name or absolute path, is own files that are not where they were.
bool is_gone(const std::string& dataset);

/// Throws Error with a way out where the run's own files are not where they were. `has_dataset`: the command takes
/// --dataset itself.
void require_still_there(const std::string& run, const std::string& dataset, bool has_dataset = true);

/// The numbers of pictures of a run on a user's own files, for its summary: "training", "validation", "test".
nlohmann::ordered_json picture_counts(const datasets::Splits& data);

/// The picture_counts() that a run records; null without.
nlohmann::ordered_json recorded_picture_counts(const RunDirectory& run);

/// Throws Error where the data have other numbers of pictures than the run records: files may have been added or taken
/// away. Runs of earlier versions have no dataset.json, and recorded them at their end.
void require_same_pictures(const RunDirectory& run, const std::string& dataset, const datasets::Splits& data);

/// The run's own data, with its validation part held out, if `data` from another place are these: the place that the
/// run records is gone, and the parts have as many pictures as there. Data without a training part are parted first.
std::optional<datasets::Splits> moved_data(const RunDirectory& run, const TrainSettings& settings,
                                           const datasets::Splits& data);

/// Where make_classifier() finds the network that a run's settings ask for, in slices of a batch.
ClassifierOptions classifier_options(const TrainSettings& settings);

/// The data that a run's settings ask for, with its validation part. A model file is held against the pictures before
/// they are read. Throws Error for what does not fit, UsageError for an impossible validation part, and what
/// datasets::load() throws.
datasets::Splits load_wanted_data(const TrainSettings& settings);

}  // namespace miniqat::training
