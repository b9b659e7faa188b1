#include "core/kernels/onednn.h"

#include <algorithm>
#include <functional>
#include <type_traits>
#include <utility>

#include "core/kernels/instruction_set.h"
#include "core/kernels/onednn_kernel.h"
#include "core/kernels/onednn_matrix.h"
#include "core/kernels/scratch.h"
#include "core/team/team.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"

namespace miniqat::onednn {
namespace {

using dnnl::memory;

using Type = memory::data_type;
constexpr auto kFloat = Type::f32;

Key key_of(Operation operation, const Convolution& c, Type factors = kFloat) {
  Key key(operation);
  key.append(static_cast<std::int64_t>(factors));
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

/// The convolution without what means nothing: a dilation along an extent of 1. oneDNN would choose other kernels for
/// it, and the cache keep a kernel more.
Convolution plain(Convolution c) {
  for (int axis = 0; axis < 2; ++axis)
    if (c.filter[axis] == 1) c.dilations[axis] = 1;
  return c;
}

/// What an operation multiplies, for errors.
std::string factors_of(std::string_view what, Type factors) {
  return concat(what, factors == kFloat ? "" : " of bfloat16");
}

/// `output`: the type of the output, or for a gradient of the output's gradient.
auto describe_forward(const Convolution& c, Type factors, Type output) {
  return describe_primitive<dnnl::convolution_forward>(
      dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, images(c.input, factors),
      any_filter(c, factors), images(c.output, output), pair(c.strides), skipped(c.dilations), pair(c.pad_before),
      pair(c.pad_after));
}

template <class Factor>
void convolve_numbers(const Convolution& convolution, const Factor* input, const Factor* filter, float* output) {
  static constexpr Type kFactor = kTypeOf<Factor>;
  const ComputeScope computing;
  const Convolution c = plain(convolution);
  const auto compile = [&c] {
    return Kernel(describe_forward(c, kFactor, kFloat), {{DNNL_ARG_SRC, images(c.input, kFactor)},
                                                         {DNNL_ARG_WEIGHTS, plain_filter(c, kFactor)},
                                                         {DNNL_ARG_DST, images(c.output), true}});
  };
  run(key_of(Operation::kForward, c, kFactor), [&c] { return describe(factors_of("", kFactor), c); }, compile,
      TeamParts::kIndependent, {input, filter, output});
}

template <class Factor>
void compute_input_gradient(const Convolution& convolution, const Factor* d_output, const Factor* filter,
                            float* d_input) {
  static constexpr Type kFactor = kTypeOf<Factor>;
  const ComputeScope computing;
  const Convolution c = plain(convolution);
  const auto compile = [&c] {
    const auto description = describe_backward<dnnl::convolution_backward_data>(
        describe_forward(c, kFactor, kFactor), dnnl::algorithm::convolution_direct, images(c.input),
        any_filter(c, kFactor), images(c.output, kFactor), pair(c.strides), skipped(c.dilations), pair(c.pad_before),
        pair(c.pad_after));
    return Kernel(description, {{DNNL_ARG_DIFF_DST, images(c.output, kFactor)},
                                {DNNL_ARG_WEIGHTS, plain_filter(c, kFactor)},
                                {DNNL_ARG_DIFF_SRC, images(c.input), true}});
  };
  run(key_of(Operation::kBackwardInput, c, kFactor),
      [&c] { return describe(factors_of(" (gradient of the input)", kFactor), c); }, compile, TeamParts::kIndependent,
      {d_output, filter, d_input});
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

/// The pixels that a 1x1 filter sees: [n, output h, output w, c] of the images. The convolution then has no strides.
template <class Factor>
const Factor* gathered(Convolution& c, const Factor* images, ScratchScope& scratch) {
  const std::int64_t rows = c.output[1], columns = c.output[2], channels = c.input[3];
  const std::int64_t row = columns * channels;
  Factor* pixels = scratch.take<Factor>(static_cast<std::size_t>(c.output[0] * rows * row)).data();
  const std::int64_t grain = std::max<std::int64_t>(1, kPointwiseGrain / row);
  parallel_for(c.output[0] * rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t source_row = i / rows * c.input[1] + i % rows * c.strides[0];
      const Factor* from = images + source_row * c.input[2] * channels;
      for (std::int64_t x = 0; x < columns; ++x)
        std::copy_n(from + x * c.strides[1] * channels, channels, pixels + i * row + x * channels);
    }
  });
  c.input = {c.output[0], rows, columns, channels};
  c.strides = {1, 1};
  return pixels;
}

std::int64_t pixels_of(const Shape& images) { return images[0] * images[1] * images[2]; }

template <class Factor>
MatrixOf<Factor> pixel_rows(const Shape& images, const Factor* numbers) {
  return MatrixOf<Factor>::row_major(numbers, pixels_of(images), images[3]);
}

template <class Factor>
MatrixOf<Factor> filter_rows(const Convolution& c, const Factor* filter) {
  return MatrixOf<Factor>::row_major(filter, c.filter[2], c.filter[3]);
}

/// Version 2.6 multiplies bytes wrongly by 1x1 filters where the output has 5 pixels a picture and more than 64
/// channels.
bool is_wrong_without_vnni(const Convolution& c) {
  return isa_level() == IsaLevel::kAvx512 && !c.depthwise && c.filter[0] * c.filter[1] == 1 &&
         c.output[1] * c.output[2] == 5 && (gathers_wrongly(c) || c.has_windows_of_a_pixel());
}

template <class Byte>
void convolve_integers(const Convolution& convolution, const Byte* input, const std::int8_t* filter,
                       std::int32_t* output) {
  const ComputeScope computing;
  Convolution c = plain(convolution);
  ScratchScope scratch;
  if (is_wrong_without_vnni(c)) {
    if (gathers_wrongly(c)) input = gathered(c, input, scratch);
    return multiply(pixel_rows(c.input, input), filter_rows(c, filter), output);
  }
  const auto compile = [&c] {
    const memory::desc from = images(c.input, kTypeOf<Byte>), to = images(c.output, Type::s32);
    return Kernel(
        describe_primitive<dnnl::convolution_forward>(
            dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, from, any_filter(c, Type::s8), to,
            pair(c.strides), skipped(c.dilations), pair(c.pad_before), pair(c.pad_after)),
        {{DNNL_ARG_SRC, from}, {DNNL_ARG_WEIGHTS, plain_filter(c, Type::s8)}, {DNNL_ARG_DST, to, true}});
  };
  run(key_of(Operation::kIntegerForward, c, kTypeOf<Byte>), [&c] { return describe(" of integers", c); }, compile,
      TeamParts::kIndependent, {input, filter, output});
}

auto describe_filter_gradient(const Convolution& c, Type factors) {
  return describe_backward<dnnl::convolution_backward_weights>(
      describe_forward(c, factors, factors), dnnl::algorithm::convolution_direct, images(c.input, factors),
      any_filter(c), images(c.output, factors), pair(c.strides), skipped(c.dilations), pair(c.pad_before),
      pair(c.pad_after));
}

template <class Factor>
void compute_filter_gradient(const Convolution& c, const Factor* input, const Factor* d_output, float* d_filter,
                             TeamParts parts) {
  static constexpr Type kFactor = kTypeOf<Factor>;
  const auto compile = [&c] {
    return Kernel(describe_filter_gradient(c, kFactor), {{DNNL_ARG_SRC, images(c.input, kFactor)},
                                                         {DNNL_ARG_DIFF_DST, images(c.output, kFactor)},
                                                         {DNNL_ARG_DIFF_WEIGHTS, plain_filter(c), true}});
  };
  run(key_of(Operation::kBackwardFilter, c, kFactor),
      [&c] { return describe(factors_of(" (gradient of the filter)", kFactor), c); }, compile, parts,
      {input, d_output, d_filter});
}

/// What oneDNN gives each thread of a filter's gradient: a part of its channels, of the pictures, or anything else.
enum class Sharing { kChannels, kPictures, kOther };

struct FilterGradientPlan {
  Sharing sharing;
  bool has_run = false;
};

/// Threads that share out the pictures keep their sums in the scratchpad, all but the first, and add them up there.
/// With bfloat16 the scratchpad has more than sums, and we share out the pictures.
FilterGradientPlan& plan_of_filter_gradient(const Convolution& c, Type factors) {
  thread_local Kept<FilterGradientPlan> plans;
  return plans.get(key_of(Operation::kBackwardFilter, c, factors), [&c, factors] {
    if (factors != kFloat) return FilterGradientPlan{Sharing::kPictures};
    const auto description = describe_filter_gradient(c, factors);
    const auto sums = static_cast<std::int64_t>(description.scratchpad_desc().get_size());
    const auto filter = static_cast<std::int64_t>(description.diff_weights_desc().get_size());
    return FilterGradientPlan{sums == 0                               ? Sharing::kChannels
                              : sums >= (thread_count() - 1) * filter ? Sharing::kPictures
                                                                      : Sharing::kOther};
  });
}

template <class Factor>
void add_up_filter_gradients(const Convolution& c, const Factor* input, const Factor* d_output, float* d_filter,
                             int parts, bool first_time) {
  ScratchScope scratch;
  const std::int64_t size = c.filter.elements();
  const std::span<float> others = scratch.take<float>(static_cast<std::size_t>((parts - 1) * size));
  const auto sum_of = [&](int part) { return part == 0 ? d_filter : others.data() + (part - 1) * size; };
  const std::int64_t pictures = c.input[0];
  run_independent_parts(parts, first_time, [&](int part) {
    const std::int64_t begin = pictures * part / parts, count = pictures * (part + 1) / parts - begin;
    Convolution own = c;
    own.input = {count, c.input[1], c.input[2], c.input[3]};
    own.output = {count, c.output[1], c.output[2], c.output[3]};
    compute_filter_gradient(own, input + begin * (c.input.elements() / pictures),
                            d_output + begin * (c.output.elements() / pictures), sum_of(part), TeamParts::kIndependent);
  });
  parallel_for(size, kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    for (int part = 1; part < parts; ++part)
      std::transform(d_filter + begin, d_filter + end, sum_of(part) + begin, d_filter + begin, std::plus<>());
  });
}

/// oneDNN's threads wait, spinning, for one another's sums of pictures. The same sums in parts of ours, which are
/// independent, have the same bits with AVX-512.
template <class Factor>
void share_out_filter_gradient(const Convolution& c, const Factor* input, const Factor* d_output, float* d_filter) {
  constexpr bool kIsFloat = std::is_same_v<Factor, float>;
  int threads = in_team() ? 1 : thread_count();
  if (!kIsFloat) threads = static_cast<int>(std::min<std::int64_t>(threads, c.input[0]));
  if (threads == 1 || c.depthwise) return compute_filter_gradient(c, input, d_output, d_filter, TeamParts::kMayWait);
  FilterGradientPlan& plan = plan_of_filter_gradient(c, kTypeOf<Factor>);
  const bool same_bits = c.input[0] % threads == 0 && instruction_set() == InstructionSet::kAvx512;
  if (plan.sharing == Sharing::kPictures && (same_bits || !kIsFloat))
    return add_up_filter_gradients(c, input, d_output, d_filter, threads, !std::exchange(plan.has_run, true));
  compute_filter_gradient(c, input, d_output, d_filter,
                          plan.sharing == Sharing::kChannels ? TeamParts::kIndependent : TeamParts::kMayWait);
}

/// Version 2.6 gets gradients of the filter from bfloat16 wrong, and may write past its memory: with AMX if the
/// filter's rows are dilated and there are more than 32 input channels, and with any instructions if a row of the
/// picture is narrower than the stride. No other of 7,000 random shapes was wrong; float32's were right.
bool rounds_wrongly(const Convolution& c) {
  const bool dilated = isa_level() == IsaLevel::kAmx && c.dilations[0] > 1 && c.filter[2] > 32;
  const bool narrow = c.filter[1] > 1 && c.input[2] < c.strides[1];
  return dilated || narrow;
}

/// Whether a convolution of bfloat16 is faster as a product of matrices: 1x1 filters with AMX. On two threads,
/// roundings included, gradient of the input / of the filter: 16x128 to 128: 1.3 / 1.1; 8x256 to 256: 1.2 / 2.1; 4x256
/// to 512: 2.1 / 5.0; 2x1024 to 1024: 4.3 / 11; 32x32 to 64: 1.1 / 0.8. Forward only where pixels are few: 2x1024 to
/// 1024: 3.3; 8x256 to 256: 1.1.
bool is_faster_product(const Convolution& c) {
  return isa_level() == IsaLevel::kAmx && !c.depthwise && c.has_windows_of_a_pixel();
}

const float* as_floats(const Bfloat16* numbers, const Shape& shape, ScratchScope& scratch) {
  const std::span<float> floats = scratch.take<float>(static_cast<std::size_t>(shape.elements()));
  parallel_for(std::ssize(floats), kPointwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    std::transform(numbers + begin, numbers + end, floats.data() + begin, [](Bfloat16 n) { return n.number(); });
  });
  return floats.data();
}

template <class Factor>
void gather_and_share_out(const Convolution& convolution, const Factor* input, const Factor* d_output,
                          float* d_filter) {
  const ComputeScope computing;
  Convolution c = plain(convolution);
  ScratchScope scratch;
  if (gathers_wrongly(c)) input = gathered(c, input, scratch);
  share_out_filter_gradient(c, input, d_output, d_filter);
}

}  // namespace

void convolve(const Convolution& convolution, const float* input, const float* filter, float* output) {
  convolve_numbers(convolution, input, filter, output);
}

void convolve(const Convolution& convolution, const Bfloat16* input, const Bfloat16* filter, float* output) {
  const std::int64_t pixels = pixels_of(convolution.input);
  if (is_faster_product(convolution) && pixels <= std::max(convolution.filter[2], convolution.filter[3]))
    return multiply(pixel_rows(convolution.input, input), filter_rows(convolution, filter), output);
  convolve_numbers(convolution, input, filter, output);
}

bool has_bfloat16() {
#if defined(__x86_64__)
  static const bool has = [] {
    engine();
    return has_bfloat16(dnnl::get_effective_cpu_isa());
  }();
  return has;
#else
  return false;
#endif
}

bool has_fast_bfloat16() {
#if defined(__x86_64__)
  return has_bfloat16() && (isa_level() == IsaLevel::kAmx || !__builtin_cpu_is("intel"));
#else
  return false;
#endif
}

void convolve(const Convolution& convolution, const std::uint8_t* input, const std::int8_t* filter,
              std::int32_t* output) {
  convolve_integers(convolution, input, filter, output);
}

void convolve(const Convolution& convolution, const std::int8_t* input, const std::int8_t* filter,
              std::int32_t* output) {
  convolve_integers(convolution, input, filter, output);
}

void convolve_backward_input(const Convolution& convolution, const float* d_output, const float* filter,
                             float* d_input) {
  compute_input_gradient(convolution, d_output, filter, d_input);
}

void convolve_backward_input(const Convolution& convolution, const Bfloat16* d_output, const Bfloat16* filter,
                             float* d_input) {
  if (is_faster_product(convolution))
    return multiply(pixel_rows(convolution.output, d_output), filter_rows(convolution, filter).transposed(), d_input);
  compute_input_gradient(convolution, d_output, filter, d_input);
}

void convolve_backward_filter(const Convolution& convolution, const float* input, const float* d_output,
                              float* d_filter) {
  gather_and_share_out(convolution, input, d_output, d_filter);
}

void convolve_backward_filter(const Convolution& convolution, const Bfloat16* input, const Bfloat16* d_output,
                              float* d_filter) {
  if (is_faster_product(convolution))
    return multiply(pixel_rows(convolution.input, input).transposed(), pixel_rows(convolution.output, d_output),
                    d_filter);
  if (!rounds_wrongly(plain(convolution))) return gather_and_share_out(convolution, input, d_output, d_filter);
  ScratchScope scratch;
  gather_and_share_out(convolution, as_floats(input, convolution.input, scratch),
                       as_floats(d_output, convolution.output, scratch), d_filter);
}

std::map<std::string, std::string> compiled_kernels() {
  std::map<std::string, std::string> kernels;
  for (const auto& [key, compiled] : kernels_of_thread().all())
    kernels.emplace(compiled.description, compiled.kernel.implementation());
  return kernels;
}

}  // namespace miniqat::onednn
