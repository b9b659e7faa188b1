#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/tensors/shape.h"

namespace miniqat {

struct TensorSpec;

/// The behaviour of a sliding window at the border, as in TensorFlow. With an effective window e = (window - 1) *
/// dilation + 1:
///   SAME      output = ceil(input / stride); the image is padded by max((output - 1) * stride + e - input, 0) in all,
///             the smaller half before it and the larger after.
///   VALID     output = ceil((input - e + 1) / stride); no padding.
///   EXPLICIT  output = floor((before + input + after - e) / stride) + 1; padded by Pads, as in PyTorch and ONNX.
enum class Padding { kSame, kValid, kExplicit };
inline constexpr std::array<std::string_view, 3> kPaddingNames = {"SAME", "VALID", "EXPLICIT"};

/// Pixels around an image: top, left, bottom, right. For EXPLICIT, each less than the effective window, so that no
/// window lies wholly outside the image; 0 for the others.
using Pads = std::array<std::int64_t, 4>;

/// One axis of a sliding window over an image. Output position o sees through tap k the input position source(o, k),
/// which is padding unless contains() says otherwise.
struct WindowAxis {
  std::int64_t input = 1;
  std::int64_t window = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t output = 1;
  /// Pixels of padding, as far as windows reach over the image.
  std::int64_t pad_before = 0;
  std::int64_t pad_after = 0;

  std::int64_t source(std::int64_t o, std::int64_t k) const { return o * stride - pad_before + k * dilation; }
  bool contains(std::int64_t position) const { return position >= 0 && position < input; }
};

struct Window2d {
  WindowAxis rows;
  WindowAxis columns;
};

struct WindowAttributes {
  std::array<std::int64_t, 2> window = {1, 1};
  std::array<std::int64_t, 2> strides = {1, 1};
  std::array<std::int64_t, 2> dilations = {1, 1};
  Padding padding = Padding::kSame;
  Pads pads = {0, 0, 0, 0};
};

/// The most of a window's extent, dilated or not, its strides and dilations: keeps every product of them far from
/// overflow, here and inside oneDNN (which uses int).
inline constexpr std::int64_t kMostWindowPixels = 65536;

/// Lays a window over images [n, h, w, c]. Throws Error when window, strides or dilations are not in 1..65536, a
/// dilated window exceeds 65536, pads break their rule, or no window fits (too small an image, and no or few pads).
Window2d slide(const Shape& images, const WindowAttributes& attributes);

/// One meeting of an output pixel, a tap of the window and the input pixel seen through it, as flat indices: `output`
/// over [n, output h, output w], `window` over [window h, window w], `input` over [n, input h, input w].
struct Tap {
  std::int64_t output;
  std::int64_t window;
  std::int64_t input;
};

/// Calls visit(Tap) for every tap that does not fall on padding: the loops that the references of convolution, pooling
/// and all their gradients have in common. An output pixel's taps come in row-major order of the window. (Fast loops
/// ask WindowAxis where a tap is, so that an error there shows against these.)
template <class Visit>
void for_each_tap(std::int64_t batch, const Window2d& window, const Visit& visit) {
  const auto& [rows, columns] = window;
  for (std::int64_t n = 0; n < batch; ++n)
    for (std::int64_t oy = 0; oy < rows.output; ++oy)
      for (std::int64_t ox = 0; ox < columns.output; ++ox)
        for (std::int64_t ky = 0; ky < rows.window; ++ky)
          for (std::int64_t kx = 0; kx < columns.window; ++kx) {
            const std::int64_t y = oy * rows.stride + ky * rows.dilation - rows.pad_before;
            const std::int64_t x = ox * columns.stride + kx * columns.dilation - columns.pad_before;
            if (y >= 0 && y < rows.input && x >= 0 && x < columns.input)
              visit(Tap{.output = (n * rows.output + oy) * columns.output + ox,
                        .window = ky * columns.window + kx,
                        .input = (n * rows.input + y) * columns.input + x});
          }
}

}  // namespace miniqat
