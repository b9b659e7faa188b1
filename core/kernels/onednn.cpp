#include "core/kernels/onednn.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "core/kernels/instruction_set.h"
#include "core/kernels/onednn_kernel.h"
#include "core/kernels/scratch.h"
#include "core/team/team.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"

namespace miniqat::onednn {
namespace {

using dnnl::memory;

using Type = memory::data_type;
constexpr auto kFloat = Type::f32;

Key key_of(Operation operation, const Convolution& c) {
  Key key(operation);
  key.append(c.depthwise);
  for (const Shape* shape : {&c.input, &c.filter, &c.output}) key.append_all(shape->extents());
  for (const auto* pair : {&c.strides, &c.dilations, &c.pad_before, &c.pad_after}) key.append_all(*pair);
  return key;
}

std::string describe(std::string_view what, const Convolution& c) {
  return concat(c.depthwise ? "depthwise convolution" : "convolution", what, " of ", c.input, " with ", c.filter,
                " to ", c.output, ", strides [", c.strides[0], ",", c.strides[1], "], dilations [", c.dilations[0], ",",
                c.dilations[1], "]");
}

/// Layouts: oneDNN counts extents as n, c, h, w whatever the order in memory.
memory::desc images(const Shape& shape, Type type = kFloat) {
  return {{shape[0], shape[3], shape[1], shape[2]}, type, memory::format_tag::nhwc};
}

/// [out, in, kh, kw], or for depthwise [groups, 1 out each = multiplier, 1 in each, kh, kw].
memory::dims filter_extents(const Convolution& c) {
  const Shape& f = c.filter;
  return c.depthwise ? memory::dims{f[2], f[3], 1, f[0], f[1]} : memory::dims{f[3], f[2], f[0], f[1]};
}

memory::desc plain_filter(const Convolution& c, Type type = kFloat) {
  const Shape& f = c.filter;
  const std::int64_t pixel = f[2] * f[3];
  return {filter_extents(c), type,
          c.depthwise ? memory::dims{f[3], 1, f[3], f[1] * pixel, pixel} : memory::dims{1, f[3], f[1] * pixel, pixel}};
}

/// Filters in whatever order suits the kernel: a plain one would send oneDNN to its slow paths.
memory::desc any_filter(const Convolution& c, Type type = kFloat) {
  return {filter_extents(c), type, memory::format_tag::any};
}

memory::dims pair(const std::array<std::int64_t, 2>& values) { return {values[0], values[1]}; }
/// oneDNN counts the pixels skipped.
memory::dims skipped(const std::array<std::int64_t, 2>& dilations) { return {dilations[0] - 1, dilations[1] - 1}; }

auto describe_forward(const Convolution& c) {
  return describe_primitive<dnnl::convolution_forward>(
      dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, images(c.input), any_filter(c),
      images(c.output), pair(c.strides), skipped(c.dilations), pair(c.pad_before), pair(c.pad_after));
}

/// The convolution without what means nothing: a dilation along an extent of 1. oneDNN would choose other kernels for
/// it, and the cache keep a kernel more.
Convolution plain(Convolution c) {
  for (int axis = 0; axis < 2; ++axis)
    if (c.filter[axis] == 1) c.dilations[axis] = 1;
  return c;
}

/// oneDNN's 1x1 kernels for strides first gather the pixels that the filter sees, into scratch memory of each thread.
/// Version 2.6 gets that wrong in the gradient of the filter, with AVX-512 as with AVX2: depending on shape and threads
/// it writes past that memory, sums up what no thread has gathered, or never ends. (Its forward and its gradient of the
/// input are right. Depthwise convolutions of several channels have other kernels.)
bool gathers_wrongly(const Convolution& c) {
  const std::array<std::int64_t, 2> none = {0, 0};
  return c.filter[0] * c.filter[1] == 1 && c.strides != std::array<std::int64_t, 2>{1, 1} &&
         (!c.depthwise || c.filter[2] == 1) && c.pad_before == none && c.pad_after == none;
}

/// The pixels that a 1x1 filter sees: [n, output h, output w, c] of the images.
void gather_pixels(const Convolution& c, const float* images, float* pixels) {
  const std::int64_t rows = c.output[1], columns = c.output[2], channels = c.input[3];
  const std::int64_t row = columns * channels;
  const std::int64_t grain = std::max<std::int64_t>(1, kPointwiseGrain / row);
  parallel_for(c.output[0] * rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t source_row = i / rows * c.input[1] + i % rows * c.strides[0];
      const float* from = images + source_row * c.input[2] * channels;
      for (std::int64_t x = 0; x < columns; ++x)
        std::copy_n(from + x * c.strides[1] * channels, channels, pixels + i * row + x * channels);
    }
  });
}

auto describe_filter_gradient(const Convolution& c) {
  return describe_backward<dnnl::convolution_backward_weights>(
      describe_forward(c), dnnl::algorithm::convolution_direct, images(c.input), any_filter(c), images(c.output),
      pair(c.strides), skipped(c.dilations), pair(c.pad_before), pair(c.pad_after));
}

void compute_filter_gradient(const Convolution& c, const float* input, const float* d_output, float* d_filter,
                             TeamParts parts) {
  const auto compile = [&c] {
    return Kernel(describe_filter_gradient(c), {{DNNL_ARG_SRC, images(c.input)},
                                                {DNNL_ARG_DIFF_DST, images(c.output)},
                                                {DNNL_ARG_DIFF_WEIGHTS, plain_filter(c), true}});
  };
  run(key_of(Operation::kBackwardFilter, c), [&c] { return describe(" (gradient of the filter)", c); }, compile, parts,
      {input, d_output, d_filter});
}

/// What oneDNN gives each thread of a filter's gradient: a part of its channels, of the pictures, or anything else.
enum class Sharing { kChannels, kPictures, kOther };

struct FilterGradientPlan {
  Sharing sharing;
  bool has_run = false;
};

/// Threads that share out the pictures keep their sums in the scratchpad, all but the first, and add them up there.
FilterGradientPlan& plan_of_filter_gradient(const Convolution& c) {
  thread_local Kept<FilterGradientPlan> plans;
  return plans.get(key_of(Operation::kBackwardFilter, c), [&c] {
    const auto description = describe_filter_gradient(c);
    const auto sums = static_cast<std::int64_t>(description.scratchpad_desc().get_size());
    const auto filter = static_cast<std::int64_t>(description.diff_weights_desc().get_size());
    return FilterGradientPlan{sums == 0                               ? Sharing::kChannels
                              : sums >= (thread_count() - 1) * filter ? Sharing::kPictures
                                                                      : Sharing::kOther};
  });
}

/// `parts` divides the pictures.
void add_up_filter_gradients(const Convolution& c, const float* input, const float* d_output, float* d_filter,
                             int parts, bool first_time) {
  ScratchScope scratch;
  const std::int64_t size = c.filter.elements();
  const std::span<float> others = scratch.take<float>(static_cast<std::size_t>((parts - 1) * size));
  const auto sum_of = [&](int part) { return part == 0 ? d_filter : others.data() + (part - 1) * size; };
  Convolution own = c;
  own.input = {c.input[0] / parts, c.input[1], c.input[2], c.input[3]};
  own.output = {c.output[0] / parts, c.output[1], c.output[2], c.output[3]};
  run_independent_parts(parts, first_time, [&](int part) {
    compute_filter_gradient(own, input + part * own.input.elements(), d_output + part * own.output.elements(),
                            sum_of(part), TeamParts::kIndependent);
  });
  parallel_for(size, kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    for (int part = 1; part < parts; ++part)
      std::transform(d_filter + begin, d_filter + end, sum_of(part) + begin, d_filter + begin, std::plus<>());
  });
}

/// oneDNN's threads wait, spinning, for one another's sums of pictures. The same sums in parts of ours, which are
/// independent, have the same bits with AVX-512.
void share_out_filter_gradient(const Convolution& c, const float* input, const float* d_output, float* d_filter) {
  const int threads = in_team() ? 1 : thread_count();
  if (threads == 1 || c.depthwise) return compute_filter_gradient(c, input, d_output, d_filter, TeamParts::kMayWait);
  FilterGradientPlan& plan = plan_of_filter_gradient(c);
  if (plan.sharing == Sharing::kPictures && c.input[0] % threads == 0 && instruction_set() == InstructionSet::kAvx512)
    return add_up_filter_gradients(c, input, d_output, d_filter, threads, !std::exchange(plan.has_run, true));
  compute_filter_gradient(c, input, d_output, d_filter,
                          plan.sharing == Sharing::kChannels ? TeamParts::kIndependent : TeamParts::kMayWait);
}

}  // namespace

void convolve(const Convolution& convolution, const float* input, const float* filter, float* output) {
  const ComputeScope computing;
  const Convolution c = plain(convolution);
  const auto compile = [&c] {
    return Kernel(
        describe_forward(c),
        {{DNNL_ARG_SRC, images(c.input)}, {DNNL_ARG_WEIGHTS, plain_filter(c)}, {DNNL_ARG_DST, images(c.output), true}});
  };
  run(key_of(Operation::kForward, c), [&c] { return describe("", c); }, compile, TeamParts::kIndependent,
      {input, filter, output});
}

int exact_byte() {
#if defined(__x86_64__)
  static const bool has_vnni = [] {
    engine();
    // Each set's bits are among those of the sets that contain it.
    constexpr auto kVnni = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_vnni);
    return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & kVnni) == kVnni;
  }();
  return has_vnni ? 128 : 64;
#else
  return 0;
#endif
}

void convolve(const Convolution& convolution, const std::uint8_t* input, const std::int8_t* filter,
              std::int32_t* output) {
  const ComputeScope computing;
  const Convolution c = plain(convolution);
  const auto compile = [&c] {
    const memory::desc from = images(c.input, Type::u8), to = images(c.output, Type::s32);
    return Kernel(
        describe_primitive<dnnl::convolution_forward>(
            dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, from, any_filter(c, Type::s8), to,
            pair(c.strides), skipped(c.dilations), pair(c.pad_before), pair(c.pad_after)),
        {{DNNL_ARG_SRC, from}, {DNNL_ARG_WEIGHTS, plain_filter(c, Type::s8)}, {DNNL_ARG_DST, to, true}});
  };
  run(key_of(Operation::kIntegerForward, c), [&c] { return describe(" of integers", c); }, compile,
      TeamParts::kIndependent, {input, filter, output});
}

void convolve_backward_input(const Convolution& convolution, const float* d_output, const float* filter,
                             float* d_input) {
  const ComputeScope computing;
  const Convolution c = plain(convolution);
  const auto compile = [&c] {
    const auto description = describe_backward<dnnl::convolution_backward_data>(
        describe_forward(c), dnnl::algorithm::convolution_direct, images(c.input), any_filter(c), images(c.output),
        pair(c.strides), skipped(c.dilations), pair(c.pad_before), pair(c.pad_after));
    return Kernel(description, {{DNNL_ARG_DIFF_DST, images(c.output)},
                                {DNNL_ARG_WEIGHTS, plain_filter(c)},
                                {DNNL_ARG_DIFF_SRC, images(c.input), true}});
  };
  run(key_of(Operation::kBackwardInput, c), [&c] { return describe(" (gradient of the input)", c); }, compile,
      TeamParts::kIndependent, {d_output, filter, d_input});
}

void convolve_backward_filter(const Convolution& convolution, const float* input, const float* d_output,
                              float* d_filter) {
  const ComputeScope computing;
  Convolution c = plain(convolution);
  if (!gathers_wrongly(c)) return share_out_filter_gradient(c, input, d_output, d_filter);
  ScratchScope scratch;
  const std::span<float> pixels = scratch.take<float>(c.output.elements() / c.output[3] * c.input[3]);
  gather_pixels(c, input, pixels.data());
  c.input = {c.output[0], c.output[1], c.output[2], c.input[3]};
  c.strides = {1, 1};
  share_out_filter_gradient(c, pixels.data(), d_output, d_filter);
}

std::map<std::string, std::string> compiled_kernels() {
  std::map<std::string, std::string> kernels;
  for (const auto& [key, compiled] : kernels_of_thread().all())
    kernels.emplace(compiled.description, compiled.kernel.implementation());
  return kernels;
}

namespace {

/// Multiply-adds below which a share costs more than it saves.
constexpr std::int64_t kShare = 1 << 15;
/// Larger products stay with oneDNN's threads: looking for equal bits would take a tenth of a second and more.
constexpr std::int64_t kLargestShared = std::int64_t{1} << 30;
/// Numbers of a factor or of the product: looking takes as much memory again.
constexpr std::int64_t kLargestMatrix = std::int64_t{1} << 24;

dnnl::memory::desc layout(const Matrix& m) {
  return {{m.rows, m.columns}, dnnl::memory::data_type::f32, dnnl::memory::dims{m.row_stride, m.column_stride}};
}

/// `stride`: between the rows of the product.
Key key_of(const Matrix& a, const Matrix& b, std::int64_t stride) {
  Key key(Operation::kMultiply);
  for (const Matrix* m : {&a, &b}) key.append_all(std::array{m->rows, m->columns, m->row_stride, m->column_stride});
  key.append(stride);
  return key;
}

/// By oneDNN's own threads, or inside a part by this one.
void multiply_whole(const Matrix& a, const Matrix& b, float* product, std::int64_t stride) {
  const Matrix result{product, a.rows, b.columns, stride};
  const auto compile = [&] {
    return Kernel(describe_primitive<dnnl::matmul>(layout(a), layout(b), layout(result)),
                  {{DNNL_ARG_SRC, layout(a)}, {DNNL_ARG_WEIGHTS, layout(b)}, {DNNL_ARG_DST, layout(result), true}});
  };
  const auto describe = [&] {
    return concat("matrix product of [", a.rows, ",", a.columns, a.column_stride == 1 ? "" : "; transposed", "] and [",
                  b.rows, ",", b.columns, b.column_stride == 1 ? "" : "; transposed", "]");
  };
  run(key_of(a, b, stride), describe, compile, TeamParts::kMayWait, {a.data, b.data, product});
}

/// How a product is shared out, each share to one thread: its rows or its columns, which `count` divides. None where
/// oneDNN's threads compute it, which wait, spinning, for one another.
struct Shares {
  bool rows = true;
  int count = 0;
};

void multiply_in_shares(const Matrix& a, const Matrix& b, float* product, Shares shares, bool first_time) {
  const std::int64_t size = (shares.rows ? a.rows : b.columns) / shares.count;
  run_independent_parts(shares.count, first_time, [&](int part) {
    Matrix left = a, right = b;
    const std::int64_t begin = part * size;
    if (shares.rows) {
      left.rows = size;
      left.data += begin * a.row_stride;
    } else {
      right.columns = size;
      right.data += begin * b.column_stride;
    }
    multiply_whole(left, right, product + begin * (shares.rows ? b.columns : 1), b.columns);
  });
}

/// From the first number of a matrix to its last.
std::int64_t extent(const Matrix& m) { return (m.rows - 1) * m.row_stride + (m.columns - 1) * m.column_stride + 1; }

/// Numbers in [-0.5, 0.5) whose sums are rounded: fractions of multiples of the golden ratio.
std::vector<float> uneven_numbers(const Matrix& m, double offset) {
  std::vector<float> numbers(static_cast<std::size_t>(extent(m)));
  double fraction = offset;
  for (float& number : numbers) {
    fraction += 0.6180339887498949;
    if (fraction >= 1) fraction -= 1;
    number = static_cast<float>(fraction - 0.5);
  }
  return numbers;
}

/// oneDNN's order of sums depends on its version, the instruction set and the shape, so ask it. (Not with the numbers
/// at hand: zeros, or few bits, have the same sums in any order.)
bool have_the_same_bits(const Matrix& a, const Matrix& b, Shares shares) {
  const std::vector<float> left = uneven_numbers(a, 0.1), right = uneven_numbers(b, 0.7);
  Matrix own_a = a, own_b = b;
  own_a.data = left.data();
  own_b.data = right.data();
  std::vector<float> whole(static_cast<std::size_t>(a.rows * b.columns)), shared(whole.size());
  multiply_whole(own_a, own_b, whole.data(), b.columns);
  multiply_in_shares(own_a, own_b, shared.data(), shares, true);
  return std::memcmp(whole.data(), shared.data(), whole.size() * sizeof(float)) == 0;
}

/// The longer side is shared out: the shares read less twice.
Shares planned_shares(const Matrix& a, const Matrix& b) {
  const std::int64_t work = a.rows * a.columns * b.columns;
  if (work == 0 || work > kLargestShared) return {};
  if (std::max({extent(a), extent(b), a.rows * b.columns}) > kLargestMatrix) return {};
  const int threads = thread_count();
  Shares shares{a.rows >= b.columns, static_cast<int>(std::clamp<std::int64_t>(work / kShare, 1, threads))};
  const std::int64_t side = std::max(a.rows, b.columns);
  if (shares.count < threads)
    while (side % shares.count != 0) --shares.count;
  return side % shares.count == 0 && have_the_same_bits(a, b, shares) ? shares : Shares{};
}

}  // namespace

void multiply(const Matrix& a, const Matrix& b, float* product) {
  const ComputeScope computing;
  if (in_team() || thread_count() == 1) return multiply_whole(a, b, product, b.columns);
  thread_local Kept<Shares> kept;
  const Shares shares = kept.get(key_of(a, b, b.columns), [&] { return planned_shares(a, b); });
  if (shares.count == 0) return multiply_whole(a, b, product, b.columns);
  multiply_in_shares(a, b, product, shares, false);
}

namespace {

void multiply_rows(const std::uint8_t* a, const std::int8_t* b, std::int64_t rows, std::int64_t inner,
                   std::int64_t columns, std::int32_t* product) {
  Key key(Operation::kIntegerMultiply);
  key.append_all(std::array{rows, inner, columns});
  const auto compile = [&] {
    const auto matrix = [](std::int64_t height, std::int64_t width, Type type) {
      return memory::desc({height, width}, type, memory::format_tag::ab);
    };
    const memory::desc left = matrix(rows, inner, Type::u8), right = matrix(inner, columns, Type::s8),
                       result = matrix(rows, columns, Type::s32);
    return Kernel(describe_primitive<dnnl::matmul>(left, right, result),
                  {{DNNL_ARG_SRC, left}, {DNNL_ARG_WEIGHTS, right}, {DNNL_ARG_DST, result, true}});
  };
  const auto describe = [&] {
    return concat("product of the matrices of integers [", rows, ",", inner, "] and [", inner, ",", columns, "]");
  };
  run(key, describe, compile, TeamParts::kMayWait, {a, b, product});
}

}  // namespace

void multiply(const std::uint8_t* a, const std::int8_t* b, std::int64_t rows, std::int64_t inner, std::int64_t columns,
              std::int32_t* product) {
  const ComputeScope computing;
  // However the rows are shared out, the sums are the same.
  const auto parts =
      static_cast<int>(in_team() ? 1
                                 : std::clamp<std::int64_t>(rows * inner * columns / kShare, 1,
                                                            std::min<std::int64_t>(thread_count(), rows)));
  if (parts == 1) return multiply_rows(a, b, rows, inner, columns, product);
  thread_local Kept<bool> compiled;
  Key key(Operation::kIntegerMultiply);
  key.append_all(std::array{rows, inner, columns});
  bool first_time = false;
  compiled.get(key, [&] { return first_time = true; });
  run_independent_parts(parts, first_time, [&](int part) {
    const std::int64_t begin = rows * part / parts, end = rows * (part + 1) / parts;
    multiply_rows(a + begin * inner, b, end - begin, inner, columns, product + begin * columns);
  });
}

}  // namespace miniqat::onednn
