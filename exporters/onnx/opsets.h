#pragma once

#include <cstdint>

namespace miniqat::exporters {

/// The opsets, versions of ONNX's operators, that can be written. With 13 came scales for each channel. Runtimes that
/// know a later one than 21 read 21, too, while its MaxPool keeps its kernel for integers in ONNX Runtime 1.30, as that
/// of 22 does not.
inline constexpr std::int64_t kOldestOpset = 13, kNewestOpset = 21;

}  // namespace miniqat::exporters
