// Layers one by one, forward and both directions of backward, in the shapes that the models give them; convolutions and
// products of matrices also on bytes (`forward_bytes`); and optimizers.
//
// `roofline` is the share of the machine's limit: the least possible time divided by the time taken. The least time is
// that of the multiply-adds at the speed of oneDNN's 512x512x512 matrix product, or that of the operands at the speed
// of memcpy over as many bytes, whichever is longer. Both limits are measured in turns with the layer, because machines
// drift.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/byte_run.h"
#include "benchmarks/machine.h"
#include "core/graph/losses.h"
#include "core/graph/op_interfaces.h"
#include "core/kernels/onednn_matrix.h"
#include "core/tensors/random.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "layers/layers.h"
#include "optim/adam.h"
#include "optim/sgd.h"

namespace miniqat::benchmarks {
namespace {

using layers::Conv2d;
using layers::Conv2dAttributes;
using layers::DepthwiseConv2d;

/// What is timed: forward (with what backward will need), or backward of one input.
constexpr int kForward = -1;

Tensor drawn(const TensorSpec& spec, std::uint64_t key) {
  Tensor tensor(spec);
  Random random(key);
  if (spec.dtype == DType::kInt32)
    for (auto& value : tensor.values<std::int32_t>()) value = static_cast<std::int32_t>(random.below(10));
  else
    for (float& value : tensor.values<float>()) value = random.uniform(-1, 1);
  return tensor;
}

/// An op outside of a graph, with everything it reads and writes.
class OpRun {
 public:
  OpRun(const Op& op, const std::vector<TensorSpec>& specs, int pass, Backend backend)
      : op_(op), pass_(pass), backend_(backend) {
    for (std::size_t i = 0; i < specs.size(); ++i) inputs_.push_back(drawn(specs[i], i));
    for (const TensorSpec& spec : op.infer(specs)) outputs_.emplace_back(spec);
    if (backend == Backend::kFast)
      for (const TensorSpec& spec : saved_by(op, specs)) saved_.emplace_back(spec);
    for (const Tensor& tensor : inputs_) forward_.inputs.push_back(&tensor);
    for (Tensor& tensor : outputs_) forward_.outputs.push_back(&tensor);
    for (Tensor& tensor : saved_) forward_.saved.push_back(&tensor);
    forward_.training = true;
    forward_.random_key = 1;
    run_forward();
    if (pass == kForward) return;
    d_output_ = drawn(outputs_[0].spec(), 99);
    d_input_ = Tensor(specs[pass]);
    backward_.forward = &forward_;
    backward_.d_outputs = {&d_output_};
    backward_.d_inputs.resize(specs.size());
    backward_.d_inputs[pass] = &d_input_;
  }
  OpRun(const OpRun&) = delete;
  OpRun& operator=(const OpRun&) = delete;

  void run() {
    if (pass_ == kForward) return run_forward();
    backend_ == Backend::kFast ? op_.backward(backward_) : op_.reference_backward(backward_);
  }

  const Tensor& result() const { return pass_ == kForward ? outputs_[0] : d_input_; }

  /// Read and written at least.
  double bytes() const {
    const auto sum = [](const std::vector<Tensor>& tensors) {
      double total = 0;
      for (const Tensor& tensor : tensors) total += static_cast<double>(tensor.bytes());
      return total;
    };
    double total = sum(saved_) + sum({result()}) + sum({pass_ == kForward ? inputs_[0] : d_output_});
    if (pass_ == kForward) return total + sum(inputs_) - static_cast<double>(inputs_[0].bytes());
    for (const int i : op_.traits().backward_inputs)
      if (i != pass_) total += static_cast<double>(inputs_[i].bytes());
    return total;
  }

 private:
  void run_forward() { backend_ == Backend::kFast ? op_.forward(forward_) : op_.reference_forward(forward_); }

  const Op& op_;
  int pass_;
  Backend backend_;
  std::vector<Tensor> inputs_, outputs_, saved_;
  Tensor d_output_, d_input_;
  ForwardContext forward_;
  BackwardContext backward_;
};

double largest_magnitude(const Tensor& tensor) {
  double largest = 0;
  for (const float value : tensor.values<float>()) largest = std::max<double>(largest, std::abs(value));
  return largest;
}

/// A batch of two, or of one.
TensorSpec small_batch(TensorSpec spec) {
  std::vector<std::int64_t> extents = spec.shape.to_vector();
  extents[0] = std::min<std::int64_t>(extents[0], 2);
  spec.shape = Shape(extents);
  return spec;
}

/// What is wrong with an op on a batch of two, against the reference loops; "" when nothing is.
std::string fault_of(const Op& op, std::vector<TensorSpec> specs, int pass, bool batched) {
  if (batched)
    for (TensorSpec& spec : specs)
      if (&spec == &specs[0] || loss_inputs(op)) spec = small_batch(spec);
  OpRun fast(op, specs, pass, Backend::kFast), reference(op, specs, pass, Backend::kReference);
  fast.run();
  reference.run();
  const double tolerance = 1e-4 * largest_magnitude(reference.result());
  for (std::int64_t i = 0; i < fast.result().elements(); ++i) {
    const double got = fast.result().data<float>()[i], wanted = reference.result().data<float>()[i];
    if (!(std::abs(got - wanted) <= tolerance)) return concat("element ", i, " is ", got, " instead of ", wanted);
  }
  return "";
}

/// The machine's limits, measured over and over.
class Limits {
 public:
  explicit Limits(double bytes)
      : half_(static_cast<std::int64_t>(bytes / 2) + 64), from_(half_, 'x'), to_(half_), a_(kN * kN, 0.5f), b_(a_) {
    product_.resize(kN * kN);
    measure();
    copy_times_.clear();
    multiply_times_.clear();
  }

  void measure() {
    copy_times_.push_back(seconds_of([this] {
      parallel_for(half_, 65536, [this](std::int64_t begin, std::int64_t end) {
        std::memcpy(to_.data() + begin, from_.data() + begin, static_cast<std::size_t>(end - begin));
      });
    }));
    multiply_times_.push_back(seconds_of([this] {
      onednn::multiply(onednn::Matrix::row_major(a_.data(), kN, kN), onednn::Matrix::row_major(b_.data(), kN, kN),
                       product_.data());
    }));
    benchmark::ClobberMemory();
  }

  double copy_time() { return median(copy_times_); }
  /// Floating-point operations per second.
  double arithmetic() { return 2.0 * kN * kN * kN / median(multiply_times_); }

 private:
  static constexpr std::int64_t kN = 512;
  std::int64_t half_;
  std::vector<char> from_, to_;
  std::vector<float> a_, b_, product_;
  std::vector<double> copy_times_, multiply_times_;
};

void time(benchmark::State& state, double operations, double bytes, const std::function<void()>& run) {
  Limits limits(bytes);
  std::vector<double> times;
  for (auto _ : state) {
    limits.measure();
    run();  // Brings its data back into the cache, as the layer before would.
    times.push_back(seconds_of(run));
    state.SetIterationTime(times.back());
  }
  const double taken = median(times);
  if (operations > 0) state.counters["GFLOP/s"] = operations / taken / 1e9;
  state.counters["GB/s"] = bytes / taken / 1e9;
  if (operations > 0) state.counters["sgemm_GFLOP/s"] = limits.arithmetic() / 1e9;
  state.counters["memcpy_GB/s"] = bytes / limits.copy_time() / 1e9;
  state.counters["roofline"] = std::max(operations / limits.arithmetic(), limits.copy_time()) / taken;
}

void add(const std::string& name, const std::function<void(benchmark::State&)>& run) {
  for (const int threads : {1, 2})
    benchmark::RegisterBenchmark(concat(name, "/threads:", threads).c_str(),
                                 [=](benchmark::State& state) {
                                   set_thread_count(threads);
                                   run(state);
                                 })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
}

/// `batched`: a smaller first extent makes a smaller case of the same kind.
void add_op(const std::string& name, const std::shared_ptr<const Op>& op, const std::vector<TensorSpec>& inputs,
            const std::vector<int>& passes, bool batched = true) {
  for (const int pass : passes)
    add(concat(name, pass == kForward ? "/forward"
                     : pass == 0      ? "/backward_input"
                                      : "/backward_filter"),
        [=](benchmark::State& state) {
          if (const std::string fault = fault_of(*op, inputs, pass, batched); !fault.empty())
            return give_up(state, fault);
          OpRun run(*op, inputs, pass, Backend::kFast);
          const double operations = 2.0 * static_cast<double>(multiply_adds_of(*op, inputs));
          time(state, operations, run.bytes(), [&run] { run.run(); });
        });
}

/// The row beside add_op()'s `forward`.
void add_bytes(const std::string& name, const std::shared_ptr<const Op>& op, const std::vector<TensorSpec>& inputs) {
  add(name + "/forward_bytes", [=](benchmark::State& state) {
    if (const std::string fault = ByteRun(*op, {small_batch(inputs[0]), inputs[1]}).fault(); !fault.empty())
      return give_up(state, fault);
    ByteRun run(*op, inputs);
    const double operations = 2.0 * static_cast<double>(multiply_adds_of(*op, inputs));
    time(state, operations, run.bytes(), [&run] { run.run(); });
  });
}

/// Square images and filters.
struct ConvolutionCase {
  const char* model;
  std::int64_t batch;
  std::int64_t image;
  std::int64_t kernel;
  std::int64_t in;
  /// 0: depthwise.
  std::int64_t out;
  std::int64_t stride = 1;
  bool valid = false;
};

constexpr ConvolutionCase kConvolutions[] = {
    {"lenet", 128, 28, 5, 1, 32},           {"lenet", 128, 14, 5, 32, 64},
    {"lenet5", 128, 28, 5, 1, 6},           {"lenet5", 128, 14, 5, 6, 16, 1, true},
    {"resnet20", 128, 32, 3, 3, 16},        {"resnet20", 128, 32, 3, 16, 16},
    {"resnet20", 128, 32, 3, 16, 32, 2},    {"resnet20", 128, 16, 3, 32, 32},
    {"resnet20", 128, 16, 3, 32, 64, 2},    {"resnet20", 128, 8, 3, 64, 64},
    {"mobilenet_v1", 64, 32, 3, 3, 32},     {"mobilenet_v1", 64, 32, 1, 32, 64},
    {"mobilenet_v1", 64, 16, 1, 128, 128},  {"mobilenet_v1", 64, 4, 1, 512, 512},
    {"mobilenet_v1", 64, 2, 1, 1024, 1024}, {"mobilenet_v1", 8, 224, 3, 3, 32, 2},
    {"mobilenet_v1", 8, 112, 1, 32, 64},    {"mobilenet_v1", 64, 32, 3, 32, 0},
    {"mobilenet_v1", 64, 32, 3, 64, 0, 2},  {"mobilenet_v1", 64, 16, 3, 128, 0},
    {"mobilenet_v1", 64, 8, 3, 256, 0},     {"mobilenet_v1", 64, 4, 3, 512, 0},
    {"mobilenet_v1", 64, 2, 3, 1024, 0},    {"mobilenet_v1", 8, 112, 3, 32, 0},
};

void add_convolutions() {
  for (const ConvolutionCase& c : kConvolutions) {
    const Conv2dAttributes attributes = {.strides = {c.stride, c.stride},
                                         .padding = c.valid ? Padding::kValid : Padding::kSame};
    const bool depthwise = c.out == 0;
    const std::vector<TensorSpec> inputs = {{Shape{c.batch, c.image, c.image, c.in}},
                                            {Shape{c.kernel, c.kernel, c.in, depthwise ? 1 : c.out}}};
    std::string name = concat(c.model, depthwise ? "/depthwise/" : "/conv/", c.kernel, "x", c.kernel, "x", c.in);
    if (!depthwise) name += concat("->", c.out);
    name += concat("/stride:", c.stride, "/image:", c.image, "/batch:", c.batch);
    std::shared_ptr<const Op> op = Conv2d::make(attributes);
    if (depthwise) op = DepthwiseConv2d::make(attributes);
    // Nobody asks for the gradient of the images themselves.
    add_op(name, op, inputs, c.in <= 3 ? std::vector<int>{kForward, 1} : std::vector<int>{kForward, 0, 1});
    add_bytes(name, op, inputs);
  }
}

void add_others() {
  const auto dense = [](std::int64_t batch, std::int64_t in, std::int64_t out) {
    const std::string name = concat("dense/", in, "x", out, "/batch:", batch);
    const std::vector<TensorSpec> inputs = {{Shape{batch, in}}, {Shape{in, out}}};
    add_op(name, layers::MatMul::make(), inputs, {kForward, 0, 1});
    add_bytes(name, layers::MatMul::make(), inputs);
  };
  dense(128, 3136, 1024);
  dense(128, 1024, 10);
  dense(128, 400, 120);
  const auto pool = [](const std::string& name, const std::shared_ptr<const Op>& op, const Shape& x) {
    add_op(concat(name, "/", x), op, {{x}}, {kForward, 0});
  };
  const layers::PoolAttributes overlapping = {.window = {3, 3}, .strides = {2, 2}, .padding = Padding::kSame};
  pool("max_pool/2x2", layers::MaxPool::make(), {128, 28, 28, 32});
  pool("max_pool/2x2", layers::MaxPool::make(), {128, 28, 28, 6});
  pool("max_pool/2x2", layers::MaxPool::make(), {128, 14, 14, 64});
  pool("max_pool/3x3/stride:2", layers::MaxPool::make(overlapping), {8, 112, 112, 64});
  pool("avg_pool/2x2", layers::AvgPool::make(), {128, 28, 28, 32});
  pool("avg_pool/3x3/stride:2", layers::AvgPool::make(overlapping), {8, 112, 112, 64});
  pool("mean", layers::Mean::make(layers::MeanAttributes{.axes = {1, 2}}), {64, 2, 2, 1024});
  pool("mean", layers::Mean::make(layers::MeanAttributes{.axes = {1, 2}}), {8, 7, 7, 1024});
  add_op("dropout/128x1024", layers::Dropout::make(), {{Shape{128, 1024}}}, {kForward, 0}, false);
  for (const auto& [rows, classes] : {std::pair<std::int64_t, std::int64_t>{128, 10}, {64, 1000}})
    add_op(concat("softmax_cross_entropy/", rows, "x", classes), layers::SoftmaxCrossEntropy::make(),
           {{Shape{rows, classes}}, {Shape{rows}, DType::kInt32}}, {kForward, 0});
}

void add_optimizer(const std::string& name, const std::shared_ptr<const Optimizer>& optimizer, std::int64_t elements) {
  add(concat(name, "/n:", elements), [=](benchmark::State& state) {
    const TensorSpec spec{Shape{elements, 1}};
    Tensor value = drawn(spec, 1);
    const Tensor gradient = drawn(spec, 2), before = value.clone();
    std::vector<Tensor> slots;
    std::vector<Tensor*> pointers;
    for (std::size_t k = 0; k < optimizer->slot_names().size(); ++k) slots.emplace_back(spec);
    for (Tensor& slot : slots) pointers.push_back(&slot);
    const auto step = [&] {
      optimizer->apply({.name = "w", .value = &value, .gradient = &gradient, .slots = pointers, .step = 1});
    };
    step();
    // The first step of both goes against the gradient everywhere: these rates are too small for more than that.
    for (std::int64_t i = 0; i < elements; ++i) {
      const float moved = value.data<float>()[i] - before.data<float>()[i];
      if (moved * gradient.data<float>()[i] > 0) return give_up(state, "a step goes up the gradient");
    }
    time(state, 0, static_cast<double>(spec.bytes()) * static_cast<double>(3 + 2 * slots.size()), step);
  });
}

void register_all() {
  add_convolutions();
  add_others();
  for (const std::int64_t elements : {10'000, 3'211'264})  // The second is lenet's dense layer.
    for (const auto& [name, optimizer] :
         {std::pair<const char*, std::shared_ptr<const Optimizer>>{
              "sgd", std::make_shared<optim::Sgd>(optim::SgdOptions{.learning_rate = 1e-6})},
          {"sgd_momentum", std::make_shared<optim::Sgd>(optim::SgdOptions{.learning_rate = 1e-6, .momentum = 0.9})},
          {"adam", std::make_shared<optim::Adam>(optim::AdamOptions{.learning_rate = 1e-6})}})
      add_optimizer(name, optimizer, elements);
}

}  // namespace
}  // namespace miniqat::benchmarks

int main(int argc, char** argv) {
  return miniqat::benchmarks::run_benchmarks(argc, argv, miniqat::benchmarks::register_all);
}
