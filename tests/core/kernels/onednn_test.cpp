#include "core/kernels/onednn.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <vector>

#include "core/kernels/onednn_kernel.h"
#include "core/kernels/onednn_matrix.h"
#include "core/tensors/random.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"

namespace miniqat::onednn::onednn_test {
namespace {

TEST(OneDnn, MultipliesStridedMatrices) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};
  const std::vector<float> b = {1, 10, 100};
  std::vector<float> product(2);
  multiply(Matrix::row_major(a.data(), 2, 3), Matrix::row_major(b.data(), 3, 1), product.data());
  EXPECT_EQ(product, (std::vector<float>{321, 654}));
  // The first two columns only: rows lie further apart than they are long.
  multiply({.data = a.data(), .rows = 2, .columns = 2, .row_stride = 3}, Matrix::row_major(b.data(), 2, 1),
           product.data());
  EXPECT_EQ(product, (std::vector<float>{21, 54}));
  // The same extents without the gap are another kernel.
  multiply(Matrix::row_major(a.data(), 2, 2), Matrix::row_major(b.data(), 2, 1), product.data());
  EXPECT_EQ(product, (std::vector<float>{21, 43}));
  std::vector<float> transposed(3);
  multiply(Matrix::row_major(a.data(), 2, 3).transposed(), Matrix::row_major(b.data(), 2, 1), transposed.data());
  EXPECT_EQ(transposed, (std::vector<float>{41, 52, 63}));
}

Convolution same_5x5(std::int64_t size, std::int64_t in, std::int64_t out) {
  return {.input = {16, size, size, in},
          .filter = {5, 5, in, out},
          .output = {16, size, size, out},
          .pad_before = {2, 2},
          .pad_after = {2, 2}};
}

void run_all(const Convolution& c) {
  const std::vector<float> input(c.input.elements(), 1);
  const std::vector<float> filter(c.filter.elements(), 1);
  std::vector<float> output(c.output.elements());
  std::vector<float> d_input(c.input.elements());
  std::vector<float> d_filter(c.filter.elements());
  convolve(c, input.data(), filter.data(), output.data());
  convolve_backward_input(c, output.data(), filter.data(), d_input.data());
  convolve_backward_filter(c, input.data(), output.data(), d_filter.data());
  // The middle of an image of ones sees the whole filter.
  const std::int64_t middle = c.output[1] / 2 * c.output[2] + c.output[2] / 2;
  const float taps = static_cast<float>(c.filter[0] * c.filter[1] * (c.depthwise ? 1 : c.filter[2]));
  EXPECT_EQ(output[middle * c.output[3]], taps);
}

/// Debian's oneDNN has fast convolutions for x86-64 with AVX2 only.
bool convolutions_are_fast() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") != 0;
#else
  return false;
#endif
}

// On plain NHWC images a wrong choice of layouts silently costs a hundredfold.
TEST(OneDnn, ModelsLayersAvoidSlowImplementations) {
  if (!convolutions_are_fast()) GTEST_SKIP() << "a processor without AVX2 has no fast convolutions";
  run_all(same_5x5(28, 1, 32));
  run_all(same_5x5(14, 32, 64));
  run_all({.input = {16, 32, 32, 3},
           .filter = {3, 3, 3, 32},
           .output = {16, 16, 16, 32},
           .strides = {2, 2},
           .pad_after = {1, 1}});
  run_all({.input = {16, 16, 16, 32},
           .filter = {3, 3, 32, 1},
           .output = {16, 16, 16, 32},
           .pad_before = {1, 1},
           .pad_after = {1, 1},
           .depthwise = true});
  run_all({.input = {16, 16, 16, 32}, .filter = {1, 1, 32, 64}, .output = {16, 16, 16, 64}});
  const auto kernels = compiled_kernels();
  EXPECT_GE(kernels.size(), 15u);
  for (const auto& [operation, implementation] : kernels) {
    EXPECT_EQ(implementation.find("ref"), std::string::npos) << operation << ": " << implementation;
    if (operation.starts_with("conv") || operation.starts_with("depthwise")) {
      EXPECT_EQ(implementation.find("gemm"), std::string::npos) << operation << ": " << implementation;
    }
  }
}

/// oneDNN's own kernel for `threads` threads.
std::vector<float> filter_gradient_by_onednn(const Convolution& c, int threads, const std::vector<float>& input,
                                             const std::vector<float>& d_output) {
  using dnnl::memory;
  const ComputeScope computing(threads);
  const auto images = [](const Shape& s) {
    return memory::desc({s[0], s[3], s[1], s[2]}, memory::data_type::f32, memory::format_tag::nhwc);
  };
  const memory::dims extents = {c.filter[3], c.filter[2], c.filter[0], c.filter[1]};
  const memory::desc plain(extents, memory::data_type::f32, memory::format_tag::hwio);
  const memory::desc any(extents, memory::data_type::f32, memory::format_tag::any);
  const memory::dims strides = {c.strides[0], c.strides[1]}, none = {0, 0};
  const memory::dims before = {c.pad_before[0], c.pad_before[1]}, after = {c.pad_after[0], c.pad_after[1]};
  const auto forward = describe_primitive<dnnl::convolution_forward>(
      dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, images(c.input), any, images(c.output),
      strides, none, before, after);
  const auto backward = describe_backward<dnnl::convolution_backward_weights>(
      forward, dnnl::algorithm::convolution_direct, images(c.input), any, images(c.output), strides, none, before,
      after);
  Kernel kernel(
      backward,
      {{DNNL_ARG_SRC, images(c.input)}, {DNNL_ARG_DIFF_DST, images(c.output)}, {DNNL_ARG_DIFF_WEIGHTS, plain, true}});
  std::vector<float> d_filter(c.filter.elements());
  kernel.run({input.data(), d_output.data(), d_filter.data()});
  return d_filter;
}

// Where oneDNN's threads would wait for one another, ours add up the same sums in the same order.
TEST(OneDnn, FilterGradientsHaveTheBitsOfItsOwnThreads) {
  if (!convolutions_are_fast()) GTEST_SKIP() << "a processor without AVX2 has no fast convolutions";
  const int before = thread_count();
  Random random(1);
  const auto numbers = [&](const Shape& shape) {
    std::vector<float> values(shape.elements());
    for (float& value : values) value = random.uniform(-1, 1);
    return values;
  };
  const auto same = [](std::int64_t n, std::int64_t size, std::int64_t window, std::int64_t in, std::int64_t out) {
    const std::int64_t pad = window / 2;
    return Convolution{.input = {n, size, size, in},
                       .filter = {window, window, in, out},
                       .output = {n, size, size, out},
                       .pad_before = {pad, pad},
                       .pad_after = {pad, pad}};
  };
  for (const Convolution& c :
       {same(128, 14, 5, 6, 16), same(64, 28, 5, 1, 32), same(96, 14, 5, 32, 64), same(17, 14, 5, 32, 64),
        same(31, 16, 3, 16, 16), same(64, 8, 3, 64, 64), same(3, 8, 3, 64, 64), same(48, 16, 1, 32, 64),
        same(13, 16, 1, 32, 64), same(64, 8, 1, 256, 256), same(2, 33, 3, 3, 16)}) {
    const std::vector<float> input = numbers(c.input), d_output = numbers(c.output);
    for (const int threads : {1, 2, 3, 4}) {
      set_thread_count(threads);
      std::vector<float> d_filter(c.filter.elements(), NAN);
      convolve_backward_filter(c, input.data(), d_output.data(), d_filter.data());
      EXPECT_EQ(d_filter, filter_gradient_by_onednn(c, threads, input, d_output))
          << threads << " threads, " << c.input << ", " << c.filter;
    }
  }
  set_thread_count(before);
}

/// oneDNN's own kernel for `threads` threads.
std::vector<float> product_by_onednn(const Matrix& a, const Matrix& b, int threads) {
  const ComputeScope computing(threads);
  const auto layout = [](const Matrix& m) {
    return dnnl::memory::desc({m.rows, m.columns}, dnnl::memory::data_type::f32,
                              dnnl::memory::dims{m.row_stride, m.column_stride});
  };
  std::vector<float> product(a.rows * b.columns);
  const Matrix result = Matrix::row_major(product.data(), a.rows, b.columns);
  Kernel kernel(describe_primitive<dnnl::matmul>(layout(a), layout(b), layout(result)),
                {{DNNL_ARG_SRC, layout(a)}, {DNNL_ARG_WEIGHTS, layout(b)}, {DNNL_ARG_DST, layout(result), true}});
  kernel.run({a.data, b.data, product.data()});
  return product;
}

// Shares of rows have the order of sums of the whole, or the whole is left to oneDNN's threads: the last shapes.
TEST(OneDnn, ProductsHaveTheBitsOfItsOwnThreads) {
  const int before = thread_count();
  const std::int64_t sizes[][3] = {{128, 400, 120}, {96, 256, 120}, {128, 84, 10},   {128, 1024, 10},
                                   {60, 512, 1024}, {17, 784, 300}, {32, 65536, 64}, {512, 1024, 512}};
  Random random(1);
  for (const auto& [rows, inner, columns] : sizes) {
    std::vector<float> left(rows * inner), right(inner * columns);
    for (auto* values : {&left, &right})
      for (float& value : *values) value = random.uniform(-1, 1);
    const auto a = {Matrix::row_major(left.data(), rows, inner),
                    Matrix::row_major(left.data(), inner, rows).transposed()};
    const auto b = {Matrix::row_major(right.data(), inner, columns),
                    Matrix::row_major(right.data(), columns, inner).transposed()};
    for (const int threads : {1, 2, 3, 4})
      for (const Matrix& of_a : a)
        for (const Matrix& of_b : b) {
          set_thread_count(threads);
          for (int step = 0; step < 2; ++step) {
            std::vector<float> product(rows * columns, NAN);
            multiply(of_a, of_b, product.data());
            EXPECT_EQ(product, product_by_onednn(of_a, of_b, threads))
                << threads << " threads, " << rows << " x " << inner << " x " << columns << ", step " << step;
          }
        }
  }
  set_thread_count(before);
  EXPECT_TRUE(compiled_kernels().contains("matrix product of [64,400] and [400,120]"));
}

TEST(OneDnn, RefusalsNameTheOperation) {
  // 5 columns do not follow from 3 with a 1x1 filter.
  const Convolution wrong = {.input = {1, 3, 3, 1}, .filter = {1, 1, 1, 1}, .output = {1, 3, 5, 1}};
  const std::vector<float> input(9);
  const std::vector<float> filter(1);
  std::vector<float> output(15);
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      convolve(wrong, input.data(), filter.data(), output.data());
      FAIL() << "an impossible output was accepted";
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("convolution of [1,3,3,1] with [1,1,1,1] to [1,3,5,1]"), std::string::npos) << text;
    }
  }
}

#if defined(__x86_64__)

/// Where the stack pointer of the test's thread was when signals came.
std::atomic<int> signals = 0, strays = 0;
std::uintptr_t stack_begin = 0, stack_end = 0;

void note_stack(int /*signal*/, siginfo_t* /*info*/, void* context) {
  const auto place = static_cast<std::uintptr_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RSP]);
  ++signals;
  if (place < stack_begin || place >= stack_end) ++strays;
}

/// Sends the calling thread a signal every 20 microseconds, whose handler runs on a stack of its own: a stray one must
/// not damage the heap of the test.
class ManySignals {
 public:
  ManySignals() : room_(std::size_t{1} << 16) {
    pthread_attr_t attributes;
    void* stack = nullptr;
    std::size_t size = 0;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &stack, &size);
    pthread_attr_destroy(&attributes);
    stack_begin = reinterpret_cast<std::uintptr_t>(stack);
    stack_end = stack_begin + size;
    stack_t own = {};
    own.ss_sp = room_.data();
    own.ss_size = room_.size();
    sigaltstack(&own, &stack_before_);
    struct sigaction action = {};
    action.sa_sigaction = note_stack;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigaction(SIGRTMIN, &action, &before_);
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event._sigev_un._tid = gettid();
    event.sigev_signo = SIGRTMIN;
    timer_create(CLOCK_MONOTONIC, &event, &timer_);
    const itimerspec often = {{0, 20'000}, {0, 20'000}};
    timer_settime(timer_, 0, &often, nullptr);
  }
  ~ManySignals() {
    timer_delete(timer_);
    sigaction(SIGRTMIN, &before_, nullptr);
    sigaltstack(&stack_before_, nullptr);
  }
  ManySignals(const ManySignals&) = delete;
  ManySignals& operator=(const ManySignals&) = delete;

 private:
  std::vector<char> room_;
  stack_t stack_before_ = {};
  struct sigaction before_ = {};
  timer_t timer_ = nullptr;
};

// oneDNN's products keep their stack pointer in the heap meanwhile, and a handler's frame there destroys what lies
// below: once in 250 times a SIGHUP ended a training by "corrupted size vs. prev_size".
TEST(OneDnn, SignalsWaitWhileTheStackPointerIsAstray) {
  using Clock = std::chrono::steady_clock;
  const std::vector<float> a(64 * 512, 0.5f), b(512 * 64, 2.0f);
  std::vector<float> product(64 * 64);
  const auto compute = [&] {
    multiply(Matrix::row_major(a.data(), 64, 512), Matrix::row_major(b.data(), 512, 64), product.data());
  };
  // The first time takes long, and other code.
  compute();
  const ManySignals sent;
  for (const auto end = Clock::now() + std::chrono::seconds(20); signals < 500 && Clock::now() < end;) compute();
  EXPECT_GE(signals, 500);
  EXPECT_EQ(strays, 0);
  EXPECT_EQ(product, std::vector<float>(product.size(), 512.0f));
}

#endif

TEST(OneDnn, ManyShapesDoNotPileUp) {
  std::vector<float> values(1100, 1);
  std::vector<float> product(1);
  for (std::int64_t k = 1; k <= 1100; ++k) {
    multiply(Matrix::row_major(values.data(), 1, k), Matrix::row_major(values.data(), k, 1), product.data());
    ASSERT_EQ(product[0], static_cast<float>(k));
  }
  EXPECT_LE(compiled_kernels().size(), 1024u);
}

}  // namespace
}  // namespace miniqat::onednn::onednn_test
