#pragma once

#include <cstdint>

namespace miniqat::exporters {

/// The opsets, versions of ONNX's operators, that can be written. With 13 came scales for each channel. Runtimes that
/// know a later one than 21 read 21, too, while its MaxPool keeps its kernel for integers in ONNX Runtime 1.30, as that
/// of 22 does not.
inline constexpr std::int64_t kOldestOpset = 13, kNewestOpset = 21;

/// The version of the file's messages that the first release of ONNX with this opset has. A runtime reads no file of a
/// later version than its own.
constexpr std::int64_t ir_version_of(std::int64_t opset) {
  return opset < 15 ? 7 : opset < 19 ? 8 : opset < 21 ? 9 : 10;
}

}  // namespace miniqat::exporters
