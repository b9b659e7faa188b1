// Our side of experiments/bench-peers: prepares a case, says so, and then runs it on demand, so that it can take turns
// with another program on the same machine. Started by that script.
//
//   peer_steps train MODEL BATCH SIDE float[-bfloat16]|tf|single[-int8|-bfloat16]|w4a4[-int8|-bfloat16] THREADS
//   peer_steps fake_quant forward|backward|learned CHANNELS ELEMENTS THREADS
//
// Talks as experiments/serve.h has it. Exit status 1, and a line on standard error, when something is wrong.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/noise_training.h"
#include "core/kernels/scratch.h"
#include "core/tensors/random.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "experiments/serve.h"
#include "quantize/affine.h"
#include "quantize/kernels/fake_quant_kernels.h"
#include "quantize/range_training.h"
#include "quantize/reference/fake_quant.h"

namespace miniqat::benchmarks {
namespace {

/// "float"; "tf" or "single": 8 bits, batch norms folded so; "w4a4": as "single", but 4 bits and learned ranges.
std::optional<quantize::RewriteOptions> rewrite_of(const std::string& name) {
  if (name == "float") return {};
  if (name == "tf") return quantize::RewriteOptions{.bn_fold = quantize::BnFold::kTf};
  if (name == "single") return quantize::RewriteOptions{.bn_fold = quantize::BnFold::kSingle};
  if (name == "w4a4")
    return quantize::RewriteOptions{.weight_bits = 4,
                                    .activation_bits = 4,
                                    .ranges = quantize::RangeChoice::kLearned,
                                    .bn_fold = quantize::BnFold::kSingle};
  fail("unknown arithmetic \"", name, "\"");
}

/// "-int8" or "-bfloat16" behind the arithmetic: what gradients are rounded to, in float all factors. Takes it away.
FactorRounding take_rounding(std::string& name) {
  const auto takes = [&name](std::string_view ending) {
    if (!name.ends_with(ending)) return false;
    name.resize(name.size() - ending.size());
    return true;
  };
  if (takes("-int8")) return FactorRounding::kGradientsToInt8;
  if (!takes("-bfloat16")) return FactorRounding::kNone;
  return name == "float" ? FactorRounding::kAllToBfloat16 : FactorRounding::kGradientsToBfloat16;
}

constexpr int kWarmUp = 10;

/// Learned ranges start far too wide for four bits: sets them to those that the same network observes while it trains.
void start_ranges(bench::NoiseTraining& training, bench::NoiseWorkload workload) {
  workload.rewrite->ranges = quantize::RangeChoice::kObserved;
  bench::NoiseTraining observing(workload);
  for (int i = 0; i < kWarmUp; ++i) observing.step();
  const NamedTensors observed = observing.session().variables();
  for (const auto& [name, value] : training.session().variables())
    if ((name.ends_with("/min") || name.ends_with("/max")) && observed.contains(name))
      training.session().set_variable(name, observed.at(name));
}

Peer training_peer(const std::vector<std::string>& arguments) {
  std::string arithmetic = arguments.at(3);
  const FactorRounding rounding = take_rounding(arithmetic);
  const bench::NoiseWorkload workload = {.model = arguments.at(0),
                                         .batch = std::stol(arguments.at(1)),
                                         .side = std::stol(arguments.at(2)),
                                         .learning_rate = arguments.at(0).starts_with("lenet") ? 0.005 : 0.02,
                                         .rewrite = rewrite_of(arithmetic),
                                         .arithmetic = Arithmetic::kInteger,
                                         .rounding = rounding};
  set_thread_count(std::stoi(arguments.at(4)));
  const auto training = std::make_shared<bench::NoiseTraining>(workload);
  if (workload.rewrite && workload.rewrite->ranges == quantize::RangeChoice::kLearned)
    start_ranges(*training, workload);
  training->warm_up(kWarmUp);
  return {.items = workload.batch, .repeat = [training] { training->step(); }};
}

constexpr quantize::GridOptions kGrid = {.bits = 8};
constexpr double kDecay = 0.999;

/// The work of FakeQuant on an activation in a training step, on a tensor of its own. Forward observes, moves the
/// average, quantizes to 8 bits out of place, and keeps the mask for backward. Backward works in place, as in a step's
/// plan. With a learned range nothing is observed, and backward also sums up the gradients of both ends, from x.
class FakeQuantStep {
 public:
  /// `elements` is rounded down to whole rows of `channels`, 1 of which means per tensor. Throws Error when the first
  /// results differ from the reference loops.
  FakeQuantStep(std::int64_t elements, std::int64_t channels, bool learned = false);

  void forward();
  void backward();
  std::int64_t elements() const { return elements_; }

 private:
  void verify();
  void observe();

  bool learned_;
  std::int64_t elements_;
  std::vector<float> x_, y_, gradient_, min_, max_;
  std::vector<quantize::Range<float>> ranges_;
  std::vector<quantize::Affine<float>> grids_;
  std::vector<std::uint32_t> mask_;
  std::vector<quantize::RangeSums> sums_;
  std::int64_t updates_ = 0;
};

FakeQuantStep::FakeQuantStep(std::int64_t elements, std::int64_t channels, bool learned)
    : learned_(learned),
      elements_(elements / channels * channels),
      x_(elements_),
      y_(elements_),
      gradient_(elements_),
      min_(channels),
      max_(channels),
      ranges_(channels),
      grids_(channels),
      mask_(quantize::mask_words(elements_)),
      sums_(channels) {
  Random random(1);
  for (float& value : x_) value = random.uniform(-1, 1);
  for (float& value : gradient_) value = random.uniform(-1, 1);
  // Some lie outside.
  for (quantize::Range<float>& range : ranges_) range = {-0.8f, 0.8f};
  verify();
}

void FakeQuantStep::observe() {
  if (quantize::column_ranges(x_.data(), elements_, std::ssize(min_), min_.data(), max_.data()))
    fail("the tensor holds a NaN");
  const double weight = quantize::debiased_weight(kDecay, ++updates_);
  for (std::size_t c = 0; c < ranges_.size(); ++c) {
    quantize::Range<float>& range = ranges_[c];
    const quantize::Range<float> seen = quantize::widen_to_zero<float>({min_[c], max_[c]});
    range = {quantize::move_towards(range.min, seen.min, weight), quantize::move_towards(range.max, seen.max, weight)};
  }
}

void FakeQuantStep::forward() {
  if (!learned_) observe();
  for (std::size_t c = 0; c < ranges_.size(); ++c) grids_[c] = quantize::grid_of(ranges_[c], kGrid);
  quantize::fake_quant_forward(x_.data(), y_.data(), elements_, grids_, learned_ ? nullptr : mask_.data());
}

void FakeQuantStep::backward() {
  if (learned_) {
    ScratchScope scope;
    quantize::fake_quant_backward(x_.data(), gradient_.data(), elements_, quantize::channel_grids(grids_, scope),
                                  gradient_.data(), sums_, true);
    quantize::range_gradients({.range = quantize::RangeKind::kLearned}, ranges_, sums_, min_.data(), max_.data());
    return;
  }
  quantize::fake_quant_backward(gradient_.data(), gradient_.data(), elements_, mask_.data());
}

void FakeQuantStep::verify() {
  const std::vector<float> d_y = gradient_;
  forward();
  backward();
  std::vector<float> y(elements_), d_x(elements_);
  quantize::reference::fake_quant_forward<float>(x_, grids_, y.data());
  quantize::reference::fake_quant_backward<float>(x_, d_y.data(), grids_, d_x.data(), nullptr, nullptr);
  if (y != y_ || d_x != gradient_) fail("the quantizer differs from the reference loops");
  if (!learned_) return;
  std::vector<float> d_min(grids_.size()), d_max(grids_.size());
  quantize::reference::add_learned_gradients<float>(x_, d_y.data(), grids_, false, d_min.data(), d_max.data());
  const double rounding = 1e-5 * static_cast<double>(elements_);
  for (std::size_t c = 0; c < grids_.size(); ++c)
    if (std::abs(d_min[c] - min_[c]) > rounding || std::abs(d_max[c] - max_[c]) > rounding)
      fail("the gradients of a learned range differ from the reference loops");
}

Peer fake_quant_peer(const std::vector<std::string>& arguments) {
  set_thread_count(std::stoi(arguments.at(3)));
  const auto work = std::make_shared<FakeQuantStep>(std::stol(arguments.at(2)), std::stol(arguments.at(1)),
                                                    arguments.at(0) == "learned");
  if (arguments.at(0) == "forward") return {.items = work->elements(), .repeat = [work] { work->forward(); }};
  return {.items = work->elements(), .repeat = [work] {
            work->forward();
            work->backward();
          }};
}

int run(const std::vector<std::string>& arguments) {
  const std::vector<std::string> rest(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end());
  if (rest.size() == 5 && arguments[0] == "train") return serve(training_peer(rest));
  if (rest.size() == 4 && arguments[0] == "fake_quant") return serve(fake_quant_peer(rest));
  std::fprintf(
      stderr,
      "usage: peer_steps train MODEL BATCH SIDE float[-bfloat16]|tf|single[-int8|-bfloat16]|w4a4[-int8|-bfloat16] THREADS\n"
      "       peer_steps fake_quant forward|backward|learned CHANNELS ELEMENTS THREADS\n");
  return 2;
}

}  // namespace
}  // namespace miniqat::benchmarks

int main(int argc, char** argv) {
  return miniqat::benchmarks::run_peer("peer_steps", argc, argv, miniqat::benchmarks::run);
}
