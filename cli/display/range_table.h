#pragma once

#include <span>
#include <string>

#include "quantize/calibrate/calibrate.h"
#include "quantize/quantizers.h"

namespace miniqat::cli {

/// A line for each quantizer: its name, what it is, the values seen and the range set; for one range a channel, the
/// lowest and the highest of the ends.
std::string range_table(std::span<const quantize::CalibratedRange> ranges);

/// A line for each quantizer: its name, what it is, its range, and scale and zero point of the grid; for one range a
/// channel, the lowest and the highest of each.
std::string quantizer_table(std::span<const quantize::QuantizerRange> ranges);

}  // namespace miniqat::cli
