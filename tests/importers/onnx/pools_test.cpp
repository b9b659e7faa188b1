#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/importers/onnx/node_chain.h"
#include "tests/quantize/convert/trained_integers.h"

// Pools by their definition: which zeros around the image count, and how many windows there are.

namespace miniqat::importers::import_test {
namespace {

struct PoolCase {
  std::int64_t window, stride;
  /// Top, left, bottom, right.
  std::array<std::int64_t, 4> pads;
  bool ceils, counts;
};

/// Along one axis. With ceil_mode a last window that is not whole is one, too, unless it begins behind the image.
std::int64_t windows_of(const PoolCase& c, std::int64_t size, std::int64_t before, std::int64_t after) {
  std::int64_t windows = 0;
  for (std::int64_t start = -before; start <= size + after; start += c.stride) {
    const bool whole = start + c.window <= size + after;
    if (whole || (c.ceils && start < size && start + c.window - c.stride < size + after)) ++windows;
  }
  return windows;
}

/// One mean of x [1, h, w, 1].
float mean_of(const PoolCase& c, const Tensor& x, std::int64_t top, std::int64_t left) {
  const std::int64_t h = x.shape()[1], w = x.shape()[2];
  double sum = 0, count = 0;
  for (std::int64_t y = top; y < top + c.window; ++y)
    for (std::int64_t z = left; z < left + c.window; ++z) {
      const bool in_image = y >= 0 && y < h && z >= 0 && z < w;
      const bool in_border = y >= -c.pads[0] && y < h + c.pads[2] && z >= -c.pads[1] && z < w + c.pads[3];
      if (in_image) sum += x.data<float>()[y * w + z];
      if (c.counts ? in_border : in_image) ++count;
    }
  return static_cast<float>(sum / count);
}

void expect_means(const PoolCase& c) {
  NodeChain net({1, 1, 10, 12});
  pb::Node& pool = net.add("AveragePool");
  set_ints(pool, "kernel_shape", {c.window, c.window});
  set_ints(pool, "strides", {c.stride, c.stride});
  set_ints(pool, "pads", {c.pads.begin(), c.pads.end()});
  set_int(pool, "ceil_mode", c.ceils ? 1 : 0);
  set_int(pool, "count_include_pad", c.counts ? 1 : 0);
  ImportedModel model = net.import();
  const Tensor x = counted_images({1, 10, 12, 1}), y = result_of(model, x);
  const std::int64_t rows = windows_of(c, 10, c.pads[0], c.pads[2]), columns = windows_of(c, 12, c.pads[1], c.pads[3]);
  ASSERT_EQ(y.shape(), (Shape{1, rows, columns, 1}));
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      ASSERT_NEAR(y.data<float>()[i * columns + j], mean_of(c, x, i * c.stride - c.pads[0], j * c.stride - c.pads[1]),
                  1e-4)
          << i << " " << j;
}

TEST(ImportPools, AveragesOverEveryPaddingAndRounding) {
  for (const bool ceils : {false, true})
    for (const bool counts : {false, true})
      for (const auto& [window, stride] : {std::pair{3, 2}, {2, 2}, {2, 3}, {3, 4}, {5, 3}})
        for (const std::array<std::int64_t, 4>& pads :
             {std::array<std::int64_t, 4>{0, 0, 0, 0}, {1, 1, 1, 1}, {1, 0, 0, 1}, {0, 0, 1, 0}}) {
          SCOPED_TRACE(concat("window ", window, " stride ", stride, " pads ", pads[0], pads[1], pads[2], pads[3],
                              ceils ? " ceil_mode" : "", counts ? " count_include_pad" : ""));
          expect_means({window, stride, pads, ceils, counts});
        }
}

/// As pixels of no image, nothing may be made of attributes that change nothing.
TEST(ImportPools, WithoutPadsNothingIsPadded) {
  for (const bool ceils : {false, true}) {
    NodeChain net({1, 1, 10, 12});
    pb::Node& pool = net.add("AveragePool");
    set_ints(pool, "kernel_shape", {3, 3});
    set_ints(pool, "strides", {2, 2});
    set_int(pool, "ceil_mode", ceils ? 1 : 0);
    set_int(pool, "count_include_pad", 1);
    const ImportedModel model = net.import();
    EXPECT_EQ(model.graph.size(), 2U);
    EXPECT_EQ(model.graph.outputs()[0].shape(), ceils ? (Shape{1, 5, 6, 1}) : (Shape{1, 4, 5, 1}));
  }
}

TEST(ImportPools, AveragesBecomeIntegers) {
  for (const bool padded : {false, true}) {
    NodeChain net({4, 3, 8, 8});
    net.constant("w", {6, 3, 3, 3}), net.constant("dense", {6, 5});
    net.add("Conv", {"w"});
    pb::Node& pool = net.add("AveragePool");
    set_ints(pool, "kernel_shape", {3, 3});
    set_ints(pool, "strides", {2, 2});
    if (padded) set_ints(pool, "pads", {1, 0, 0, 0});
    set_int(pool, "ceil_mode", 1);
    set_int(pool, "count_include_pad", 1);
    net.add("GlobalAveragePool");
    net.add("Flatten");
    net.add("MatMul", {"dense"});
    testing::expect_trained_integers(net.import().graph);
  }
}

}  // namespace
}  // namespace miniqat::importers::import_test
