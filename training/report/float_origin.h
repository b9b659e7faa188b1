#pragma once

#include <optional>

#include "training/run/float_run.h"
#include "training/run/run_directory.h"

namespace miniqat::training {

/// The float run that a quantized run came from, by `calibrate`, `quantize` or `train --init-checkpoint`, also in
/// several steps. It is looked for at the path that the run's files name, seen from here, then beside the run. A run of
/// another test accuracy than was measured then is another run. None if the run began without one, or it is gone.
std::optional<FloatRun> float_origin(const RunDirectory& run);

}  // namespace miniqat::training
