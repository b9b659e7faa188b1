#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "training/run/run_directory.h"

namespace miniqat::training {

/// The command that made a run, as its files tell: "train --model lenet5 --weight-bits 4" with every setting that is
/// not the default, "calibrate FLOAT ...", "quantize FLOAT ...", each followed by "; reestimate" if its batch norms
/// were estimated again. Left out: --out, --data-dir, --threads and what only logs and saves. `summary` may be null.
std::string command_of(const RunDirectory& run, const nlohmann::ordered_json& config,
                       const nlohmann::ordered_json& summary);

}  // namespace miniqat::training
