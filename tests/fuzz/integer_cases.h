#pragma once

#include <cstdint>
#include <vector>

#include "tests/fuzz/integer_case.h"

namespace miniqat::fuzz {

// Each a pure function of its seed.

/// A random integer model for the fast engine, on 1 to 8 threads; or one that a briefly trained random net converts to,
/// also beside the simulated graph.
std::vector<IntegerCase> integer_cases(std::uint64_t seed);

/// A few random models and trained nets as C; for ONNX Runtime single operations, random ones and those of the nets:
/// it rounds ties otherwise, and what follows may magnify the step that this makes.
std::vector<IntegerCase> c_cases(std::uint64_t seed);
std::vector<IntegerCase> onnx_cases(std::uint64_t seed);

/// An operation of one input by itself, on what the reference loops give it.
IntegerCase alone(const IntegerCase& test, std::size_t index);

}  // namespace miniqat::fuzz
