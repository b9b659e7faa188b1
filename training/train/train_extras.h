#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/profile.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "distributed/communicator.h"
#include "training/run/run_directory.h"
#include "training/settings/train_settings.h"

namespace miniqat::training {

struct TrainExtras {
  /// Continue the run's checkpoint.
  bool resume = false;
  /// End after this step as the observer would: checkpoint written, ready to be resumed.
  std::optional<std::int64_t> stop_at = {};
  /// With `resume`: the settings in the run's config.json, of which those asked for now may differ where no step is
  /// computed otherwise, and in a greater length.
  TrainSettings begun = {};
  /// For a new run: the settings that somebody chose, by name, even where they are the usual ones. A graph that was
  /// rewritten before must be as they say (require_as_asked()).
  std::vector<std::string> given = {};
  /// Tell the observer every name that init_checkpoint gives, not only the first few.
  bool all_names = false;
  /// The command that continues the run after a stop or failure, for its messages; by default `miniqat train`.
  std::string way_on = {};
  /// What the observer hears when a new run begins; "" for nothing.
  std::vector<std::string> notes = {};
  /// Writes what a new run needs beside its own files, before config.json makes it a run; null: nothing.
  std::function<void(const RunDirectory&)> first_files = {};
  /// A stage of `quantize`, which has said already what can be known before the first step: whether the network can
  /// become integers, which pictures decide.
  bool is_stage = false;
  /// Takes the times of the steps; null: nothing is timed.
  Profile* profile = nullptr;
  /// The processes that compute a batch's shards; must stay. The first of them leads, keeps the run directory and
  /// decides; the others follow it.
  std::reference_wrapper<distributed::Communicator> ranks = distributed::alone();
};

/// The command line that goes on with the run.
inline std::string way_on(const RunDirectory& run, const TrainExtras& extras) {
  return extras.way_on.empty() ? concat("miniqat train --resume --out ", shell_path(run.path())) : extras.way_on;
}

}  // namespace miniqat::training
