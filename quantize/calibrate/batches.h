#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "core/engine/session.h"

namespace miniqat::quantize {

/// Calls a function with the feeds of each batch, the same ones every time. It may throw, to stop.
using FeedsOfBatches = std::function<void(const std::function<void(const Feeds&)>&)>;

/// Called before each layer with its name, its number from 1, and their number.
using OnLayer = std::function<void(const std::string&, std::size_t, std::size_t)>;

}  // namespace miniqat::quantize
