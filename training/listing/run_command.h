#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "training/run/run_directory.h"

namespace miniqat::training {

/// The command that made a run, as its files tell: "train --model lenet5 --weight-bits 4" with every setting that is
/// not the command's default or the float run's, "calibrate FLOAT ...", "quantize FLOAT ...", each followed by ";
/// reestimate" if its batch norms were estimated again. Left out: --out, --data-dir, --threads and what only logs and
/// saves. `summary` may be null.
std::string command_of(const RunDirectory& run, const nlohmann::ordered_json& config,
                       const nlohmann::ordered_json& summary);

/// The same as a line for a shell, "miniqat train ... --out OUT", that makes the run once more, in the folder `out`.
/// It also has --data-dir, --threads, what logs and saves, and --stop-at for a run that was stopped or killed: given
/// the same files, machine and version the checkpoint has the same bytes. A run that --resume made longer takes a
/// command for each of its lengths, behind "&&". Reads metrics.jsonl, and the checkpoint of a run that is not complete.
std::string repeating_command(const RunDirectory& run, const nlohmann::ordered_json& config,
                              const nlohmann::ordered_json& summary, const std::string& out);

}  // namespace miniqat::training
