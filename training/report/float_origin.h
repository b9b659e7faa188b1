#pragma once

#include <optional>

#include "training/run/float_run.h"
#include "training/run/run_directory.h"

namespace miniqat::training {

/// The float run that a quantized run came from, by `calibrate`, `quantize` or `train --init-checkpoint`, also in
/// several steps. A path that leads nowhere from here is looked for beside the run. None if the run began without one,
/// or it is gone.
std::optional<FloatRun> float_origin(const RunDirectory& run);

}  // namespace miniqat::training
