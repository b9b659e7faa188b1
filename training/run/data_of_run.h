#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "training/run/run_directory.h"
#include "training/settings/train_settings.h"

namespace miniqat::training {

/// A network that was trained on some data, and is to see these or others.
struct TrainedOn {
  const TrainSettings& settings;
  /// Of its pictures, [n, h, w, c].
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

/// The names of classes that the summary of a run records; empty without a summary or names.
std::vector<std::string> recorded_class_names(const RunDirectory& run);

/// Throws Error with a way out where the run's own files are not where they were.
void require_still_there(const std::string& run, const std::string& dataset);

}  // namespace miniqat::training
