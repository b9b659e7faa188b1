#pragma once

#include <cstdint>
#include <functional>

namespace miniqat::datasets {

/// Told how many pictures of a folder have been decoded, several times a second and at the end, in the thread that
/// loads them; 0 while their sizes are read. What it throws ends the loading, and no cache is written.
using DecodeProgress = std::function<void(std::int64_t done, std::int64_t all)>;

/// Whom all loading tells from now on; {}: nobody. For a program that has a terminal, and before it loads: not to be
/// changed meanwhile.
void tell_of_decoding(DecodeProgress listener);

/// Tells that one, if there is any.
void decoding_went_on(std::int64_t done, std::int64_t all);

}  // namespace miniqat::datasets
