#pragma once

#include <string_view>

namespace miniqat::exporters {

// The C of layers, in the order in which a compiler can read it: pieces of c_runtime() (exporters/c/runtime.h).

/// The structs of a layer and of a block of its output channels.
extern const std::string_view kLayerText;
/// Each fills filter[] with weights of a block of 4 channels.
extern const std::string_view kUnpack8Text;
extern const std::string_view kUnpack4Text;
extern const std::string_view kUnpack2Text;
/// Weights of other widths, and a last block of fewer channels.
extern const std::string_view kUnpackBitsText;
/// What all layers share: the start of a block, its weights, its results.
extern const std::string_view kBlockText;
/// Sums over stretches of numbers.
extern const std::string_view kAccumulateText;
/// The taps of a window that lie on the image.
extern const std::string_view kTapsText;
extern const std::string_view kConvolveText;
extern const std::string_view kDepthwiseText;
extern const std::string_view kFullyConnectedText;

}  // namespace miniqat::exporters
