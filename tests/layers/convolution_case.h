#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/kernels/onednn.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "layers/conv2d.h"
#include "layers/reference/conv2d.h"
#include "tests/fewer_cases.h"

namespace miniqat::testing {

/// A convolution but for its channels.
struct ConvolutionCase {
  /// [n, h, w].
  std::array<std::int64_t, 3> images;
  std::array<std::int64_t, 2> window;
  layers::Conv2dAttributes attributes;

  Shape x(std::int64_t channels) const { return {images[0], images[1], images[2], channels}; }
  Shape filter(std::int64_t in, std::int64_t out) const { return {window[0], window[1], in, out}; }
  layers::reference::Convolution reference(std::int64_t in, std::int64_t out) const {
    return {layers::window_of(x(in), filter(in, out), attributes), x(in), filter(in, out)};
  }
  onednn::Convolution fast(std::int64_t in, std::int64_t out) const {
    const Window2d seen = layers::window_of(x(in), filter(in, out), attributes);
    return {.input = x(in),
            .filter = filter(in, out),
            .output = {images[0], seen.rows.output, seen.columns.output, out},
            .strides = attributes.strides,
            .dilations = attributes.dilations,
            .pad_before = {seen.rows.pad_before, seen.columns.pad_before},
            .pad_after = {seen.rows.pad_after, seen.columns.pad_after}};
  }
  /// For failures. `in` and `out` as in filter().
  std::string text(std::int64_t in, std::int64_t out) const {
    return concat("images ", x(in), ", filter ", filter(in, out), ", strides ", attributes.strides[0], "x",
                  attributes.strides[1], ", dilations ", attributes.dilations[0], "x", attributes.dilations[1], " ",
                  kPaddingNames[static_cast<int>(attributes.padding)], ", ", thread_count(), " threads");
  }
};

/// Calls check(case, in, out) for odd shapes, with one, two and three threads: one in six of them, unless all cases are
/// tried.
template <class Check>
void for_odd_convolutions(const Check& check) {
  const layers::Conv2dAttributes strided = {.strides = {2, 2}}, valid = {.padding = Padding::kValid};
  const std::vector<ConvolutionCase> cases = {
      {{2, 7, 9}, {3, 3}, {}},
      {{5, 14, 14}, {5, 5}, valid},
      {{3, 11, 6}, {5, 3}, {.strides = {2, 1}}},
      {{2, 12, 12}, {3, 3}, {.dilations = {2, 3}}},
      {{2, 7, 7}, {2, 4}, {.strides = {2, 2}, .padding = Padding::kExplicit, .pads = {0, 2, 1, 0}}},
      {{3, 5, 4}, {1, 1}, {}},
      {{5, 6, 7}, {1, 1}, strided},
      {{2, 11, 12}, {3, 2}, {.strides = {2, 2}, .dilations = {2, 2}}},
      {{2, 10, 9}, {3, 3}, {.strides = {2, 2}, .padding = Padding::kValid}},
      {{1, 33, 1}, {3, 1}, strided},
      {{7, 1, 1}, {1, 1}, {}},
      {{4, 16, 16}, {3, 3}, {}},
  };
  const int before = thread_count();
  OneIn chosen(6);
  for (const ConvolutionCase& of : cases)
    for (const auto& [in, out] : {std::pair{1, 1}, {3, 16}, {6, 16}, {16, 16}, {17, 33}, {32, 64}, {40, 9}, {64, 48}})
      for (const int threads : {1, 2, 3}) {
        if (!chosen() || ::testing::Test::HasFatalFailure()) continue;
        set_thread_count(threads);
        check(of, in, out);
      }
  set_thread_count(before);
}

}  // namespace miniqat::testing
