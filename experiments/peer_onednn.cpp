// oneDNN's side of experiments/bench-kernels: fake quantization as a pair of reorders, float to bytes and back, on
// demand.
//
//   peer_onednn forward 8 1 ELEMENTS THREADS
//
// Talks as experiments/serve.h has it. Exit status 1, and a line on standard error, when something is wrong: the pair
// is compared with the reference before it is timed. It rounds ties to even, and multiplies by 1 / scale, so that a few
// elements near ties may be a step off.

#include <cmath>
#include <cstdio>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <vector>

#include "bench/timed_case.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "experiments/serve.h"
#include "quantize/reference/fake_quant.h"

namespace miniqat::benchmarks {
namespace {

using dnnl::memory;

/// A reorder and what it is called with.
struct Reorder {
  dnnl::reorder primitive;
  std::unordered_map<int, memory> arguments;
};

/// to = round(factor * from), less or plus the zero point as `side` (DNNL_ARG_SRC or DNNL_ARG_DST) says.
Reorder reorder_of(const memory& from, const memory& to, float factor, int side, std::int32_t zero_point) {
  const dnnl::engine engine = from.get_engine();
  dnnl::primitive_attr attributes;
  Reorder reorder;
  reorder.arguments = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
#if DNNL_VERSION_MAJOR >= 3
  attributes.set_scales_mask(DNNL_ARG_SRC, 0);
  attributes.set_zero_points_mask(side, 0);
  memory scales({{1}, memory::data_type::f32, memory::format_tag::a}, engine);
  memory zero_points({{1}, memory::data_type::s32, memory::format_tag::a}, engine);
  *static_cast<float*>(scales.get_data_handle()) = factor;
  *static_cast<std::int32_t*>(zero_points.get_data_handle()) = zero_point;
  reorder.arguments[DNNL_ARG_ATTR_SCALES | DNNL_ARG_SRC] = scales;
  reorder.arguments[DNNL_ARG_ATTR_ZERO_POINTS | side] = zero_points;
#else
  attributes.set_output_scales(0, {factor});
  attributes.set_zero_points(side, 0, {zero_point});
#endif
  reorder.primitive = dnnl::reorder({engine, from.get_desc(), engine, to.get_desc(), attributes});
  return reorder;
}

class ReorderPair {
 public:
  explicit ReorderPair(std::int64_t elements)
      : tensors_(elements), grid_(quantize::grid_of<float>({-0.8f, 0.7f}, {.bits = 8})) {
    const memory::dims shape = {elements};
    const memory from({shape, memory::data_type::f32, memory::format_tag::a}, engine_, tensors_.from.data());
    const memory to({shape, memory::data_type::f32, memory::format_tag::a}, engine_, tensors_.to.data());
    const memory bytes({shape, memory::data_type::u8, memory::format_tag::a}, engine_);
    const auto zero_point = static_cast<std::int32_t>(grid_.zero_point);
    to_bytes_ = reorder_of(from, bytes, 1 / grid_.scale, DNNL_ARG_DST, zero_point);
    to_floats_ = reorder_of(bytes, to, grid_.scale, DNNL_ARG_SRC, zero_point);
  }

  void run() {
    to_bytes_.primitive.execute(stream_, to_bytes_.arguments);
    to_floats_.primitive.execute(stream_, to_floats_.arguments);
    stream_.wait();
  }

  /// Throws Error unless each element is within a step of the reference's, and 999 of 1,000 within rounding.
  void verify() {
    run();
    const std::span<const float> x = tensors_.from, got = tensors_.to;
    std::vector<float> expected(x.size());
    quantize::reference::fake_quant_forward<float>(x, std::span(&grid_, 1), expected.data());
    std::size_t steps = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float off = std::abs(got[i] - expected[i]) / grid_.scale;
      if (!(off < 1.01f)) fail("element ", i, ": expected ", expected[i], ", got ", got[i], " for x = ", x[i]);
      steps += off > 0.01f ? 1 : 0;
    }
    if (1000 * steps > x.size()) fail(steps, " of ", x.size(), " elements are a step off");
  }

 private:
  bench::BenchTensors tensors_;
  quantize::Affine<float> grid_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  Reorder to_bytes_, to_floats_;
};

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() != 5) {
    std::fprintf(stderr, "usage: peer_onednn forward 8 1 ELEMENTS THREADS\n");
    return 2;
  }
  if (arguments[0] != "forward" || arguments[1] != "8" || arguments[2] != "1")
    fail("oneDNN's reorders do forward with 8 bits per tensor");
  set_thread_count(std::stoi(arguments[4]));
  const ComputeScope computing;
  const std::int64_t elements = std::stol(arguments[3]);
  const auto pair = std::make_shared<ReorderPair>(elements);
  pair->verify();
  return serve({.items = elements, .repeat = [pair] { pair->run(); }});
}

}  // namespace
}  // namespace miniqat::benchmarks

int main(int argc, char** argv) {
  return miniqat::benchmarks::run_peer("peer_onednn", argc, argv, miniqat::benchmarks::run);
}
