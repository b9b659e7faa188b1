#pragma once

#include "core/graph/graph.h"

namespace miniqat::testing {

/// Constants as users have them, one number or one for each channel: a picture's preprocessing, a scale layer between
/// two convolutions, one before a Clip, one behind a mean. Pictures [4, 8, 8, 3], 5 results.
Graph scale_shift_net();

}  // namespace miniqat::testing
