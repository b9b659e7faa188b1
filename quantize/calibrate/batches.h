#pragma once

#include <functional>

#include "core/engine/session.h"

namespace miniqat::quantize {

/// Calls a function with the feeds of each batch, the same ones every time. It may throw, to stop.
using FeedsOfBatches = std::function<void(const std::function<void(const Feeds&)>&)>;

}  // namespace miniqat::quantize
