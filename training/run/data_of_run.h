#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/hold_out.h"
#include "datasets/load_options.h"
#include "training/model_source.h"
#include "training/run/run_directory.h"
#include "training/run_observer.h"
#include "training/settings/train_settings.h"

namespace miniqat::training {

/// A network that was trained on some data, and is to see these or others.
struct TrainedOn {
  const TrainSettings& settings;
  /// The shape of the network's pictures, [n, h, w, c].
  Shape images;
  int classes = 0;
  /// Whether it was trained on pictures or on numbers; kAuto where nobody knows it.
  datasets::Inputs inputs = datasets::Inputs::kAuto;
  /// Numbers that it gives for an example.
  std::int64_t outputs = 0;
  /// Empty where nobody knows them; of the features, too.
  std::vector<std::string> class_names = {};
  std::vector<std::string> input_names = {};
  /// Null where nothing was standardised.
  std::shared_ptr<const datasets::Standard> standard = {};
  std::shared_ptr<const datasets::Standard> target_standard = {};
};

/// What a run records its numbers, or its targets, to be standardised with; null without.
std::shared_ptr<const datasets::Standard> recorded_standard(const RunDirectory& run, bool of_targets);

/// How a data set is read for such a network. Pictures other than those it was trained on take on the mean and
/// deviation of those, a user's own files the size and the colour, too. Arrays are read as the pictures or numbers that
/// the run records, its own as well: those of `calibrate --dataset` look like others. Classes have the numbers that
/// they had there.
datasets::LoadOptions load_options(const TrainedOn& network, const std::string& dataset);

/// Gives examples without answers what the network knows of these: names of classes, and the units of its outputs.
void describe_outputs(const TrainedOn& network, datasets::Dataset& examples);

/// Throws Error for folders of pictures and a network whose examples, of the shape `example`, are none: their classes
/// would be compared before any picture is read. `source` names the network.
void require_kind_fits(datasets::DataKind kind, const Shape& example, const std::string& dataset,
                       const std::string& source);

/// Settings of a run of the network on another data set, a name or an absolute path, whose pictures are read as
/// load_options() says.
TrainSettings moved_to(const TrainedOn& network, const std::string& dataset);

/// What a run records of its data, in dataset.json and in its summary: the grid of the pictures' bytes ("input_scale",
/// "input_zero_point") or of numbers ("inputs": "numbers"; of sounds "sounds": true) what these and the targets were
/// standardised with ("input_mean", "input_std", "target_mean", "target_std"), the picture_counts() of a user's own
/// files ("pictures"), the number of broken ones that were left out, if any ("skipped_files"), the names of classes
/// ("class_names"), of numbers to predict ("target_names") and of features ("input_names").
nlohmann::ordered_json data_to_json(const datasets::Splits& data, const std::string& dataset);

/// What the run's examples are called, as Dataset::noun() has it.
const char* noun_of(const RunDirectory& run);

/// The names that a run records under a key of data_to_json(); empty without a record or names.
std::vector<std::string> recorded_names(const RunDirectory& run, const char* key);

/// One of the values of data_to_json(), from the summary if it has one, or else from dataset.json; null without.
nlohmann::ordered_json recorded_of_data(const RunDirectory& run, const char* key);

/// Whether a data set, by name or absolute path, is own files that are not where they were.
bool is_gone(const std::string& dataset);

/// Throws Error with a way out where the run's own files are not where they were. `has_dataset`: the command takes
/// --dataset itself.
void require_still_there(const std::string& run, const std::string& dataset, bool has_dataset = true);

/// The numbers of pictures of a run on a user's own files, for its summary: "training", "validation", "test".
nlohmann::ordered_json picture_counts(const datasets::Splits& data);

/// Throws Error where the test or the validation part does not have what the task measures its network by: data may
/// have answers in the training part alone.
void require_answers(const datasets::Splits& data, const Task& task);

/// The run's own data, with its validation part held out, if `data` from another place are these: the place that the
/// run records is gone, and the parts have as many pictures as there. Data without a training part are parted first.
std::optional<datasets::Splits> moved_data(const RunDirectory& run, const TrainSettings& settings,
                                           const datasets::Splits& data);

/// What the run learns; classes, of a run whose settings do not say it yet.
const Task& task_of(const TrainSettings& settings);

/// Where make_classifier() finds the network that a run's settings ask for, in slices of a batch.
ClassifierOptions classifier_options(const TrainSettings& settings);

/// The data that a run's settings ask for, with its validation part. A model file is held against the pictures before
/// they are read. Throws Error for what does not fit, UsageError for an impossible validation part, and what
/// datasets::load() throws.
datasets::Splits load_wanted_data(const TrainSettings& settings);

/// The data of a run with its validation part: that of the data, or what TrainSettings::validation holds out of
/// training. Throws Error that names --validation where there are both, and where it leaves fewer training pictures
/// than a batch.
datasets::Splits with_validation_part(const datasets::Splits& data, const TrainSettings& settings);

/// Which training pictures a run holds out.
struct ValidationPart {
  std::int64_t size = 0;
  datasets::HoldOut method = datasets::HoldOut::kByClass;

  bool operator==(const ValidationPart&) const = default;
};
ValidationPart validation_part_of(const TrainSettings& settings);
void set_validation_part(TrainSettings& settings, const ValidationPart& part);

/// Gives settings of a new run that begins from another run on the same data (--init-checkpoint) the validation part of
/// that one, so that no picture judges that has trained. Returns what there is to say about it, "" for nothing.
/// `asked`: what somebody gave; a size of 0 then is obeyed. Throws UsageError for another part than that run's.
struct AskedValidation {
  bool size = false;
  bool method = false;
};
std::string inherit_validation_part(TrainSettings& settings, const AskedValidation& asked);

/// "600 validation pictures, 60 of each of 10 classes", of data that have such a part.
std::string validation_counts(const datasets::Splits& data);

/// A note that names classes of which the validation part has nothing, although there are training pictures of them;
/// "" without any, and without a validation part.
std::string note_on_small_classes(const datasets::Splits& data);

/// How many examples of the training part are anomalies, which a network that reconstructs should not see; "" without
/// any, and for other tasks.
std::string note_on_anomalies(const datasets::Splits& data, const Task& task);

/// Pictures on which choices are measured, and what they are called: "validation" or "test".
struct JudgingPart {
  const datasets::Dataset& pictures;
  const char* name;
};

/// The validation part where there is one, the test pictures where not. `data` must stay.
JudgingPart judging_part(const datasets::Splits& data);

/// The weights that TrainSettings::class_weights gives the classes of the training pictures; empty where it is "".
/// "balanced": n / (k n_c) for a class with n_c of the n pictures, where k classes have any (King and Zeng 2001), 0 for
/// a class without. Otherwise those of a JSON file, {"cat": 1.5, ...} with the name or number of each class, or one
/// number a class in an array. Throws UsageError that names the file, a class that is missing or unknown, and a weight
/// that is not a finite number from 0 on.
std::vector<double> class_weights_of(const TrainSettings& settings, const datasets::Dataset& train);

/// Writes the weights of class_weights_of() to the run's own class_weights.json, by the names of classes; nothing
/// without weights.
void write_class_weights(const std::vector<double>& weights, const datasets::Dataset& train, const RunDirectory& run);

/// Tells of what the readers of the data left out or changed.
void warn_of_files(const datasets::Splits& data, RunObserver& observer);

/// Writes the run's skipped_files.json, [{"file": "train/cat/7.png", "why": "..."}, ...]: the broken files that
/// TrainSettings::skip_broken left out. Nothing where there are none.
void write_skipped_files(const datasets::Splits& data, const RunDirectory& run);

}  // namespace miniqat::training
