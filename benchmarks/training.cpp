#include "benchmarks/training.h"

#include <algorithm>
#include <cmath>

#include "benchmarks/machine.h"
#include "core/tensors/random.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "layers/layers.h"
#include "models/models.h"

namespace miniqat::benchmarks {
namespace {

/// Delays that no warming up reaches, so that set_quantization_step decides.
constexpr std::int64_t kFreezeDelay = 1'000'000;
constexpr std::int64_t kQuantDelay = 1'000'000;

quantize::RewriteOptions options_of(const Arithmetic& arithmetic) {
  quantize::RewriteOptions options;
  options.weight_bits = options.activation_bits = arithmetic.bits;
  options.bn_fold = arithmetic.bn_fold;
  if (arithmetic.phase == Phase::kObserving) options.quant_delay = kQuantDelay;
  if (arithmetic.phase == Phase::kFrozen) options.freeze_bn_delay = kFreezeDelay;
  return options;
}

Shape image_shape(const models::Model& model, std::int64_t side) {
  return side == 0 ? model.image : Shape{side, side, model.image[2]};
}

std::int64_t classes_of(const models::Model& model, std::int64_t side) {
  constexpr std::int64_t kClassesOfSmallPictures = 10;
  return side == 0 || side == model.image[0] ? model.classes : kClassesOfSmallPictures;
}

}  // namespace

Training::Training(const Workload& workload, const Arithmetic& arithmetic, int threads, Backend backend)
    : optimizer_({.learning_rate = workload.learning_rate, .momentum = 0.9, .weight_decay = 5e-4}),
      phase_(arithmetic.phase),
      threads_(threads) {
  const models::Model& model = models::find_model(workload.model);
  const Shape image = image_shape(model, workload.side);
  const Output images = layers::placeholder(graph_, "images", {workload.batch, image[0], image[1], image[2]});
  const Output labels = layers::placeholder(graph_, "labels", {workload.batch}, DType::kInt32);
  // Moving statistics that follow quickly have caught up when the batch norms freeze after a few steps.
  const Output logits =
      model.build(graph_, images, {.classes = classes_of(model, workload.side), .batch_norm_decay = 0.5});
  loss_ = layers::softmax_cross_entropy(graph_, logits, labels);
  if (phase_ != Phase::kFloat) quantize::create_training_graph(graph_, options_of(arithmetic));
  session_.emplace(graph_, SessionOptions{.backend = backend});

  Random random(1);
  Tensor pixels(images.shape());
  for (float& value : pixels.values<float>()) value = random.uniform(0, 1);
  Tensor classes(labels.shape(), DType::kInt32);
  for (std::int64_t i = 0; i < workload.batch; ++i) classes.data<std::int32_t>()[i] = static_cast<std::int32_t>(i % 10);
  feeds_ = {{images, pixels}, {labels, classes}};
}

float Training::step() {
  set_thread_count(threads_);
  return session_->train_step(loss_, optimizer_, feeds_);
}

double Training::timed_step() {
  set_thread_count(threads_);
  return seconds_of([this] { step(); });
}

std::string Training::warm_up(int steps) {
  const float first = step();
  float last = first;
  for (int i = 0; i < steps; ++i) last = step();
  // Dropout makes single losses noisy; without learning they stay at ln(classes) or rise.
  if (!(last < 0.95f * first)) return concat("the loss does not fall: ", first, " to ", last);
  if (phase_ != Phase::kFrozen) return "";
  session_->set_quantization_step(kFreezeDelay + 1);
  // Frozen statistics lag behind: the loss may begin near where it was at first, but falls from there.
  const float frozen = step();
  for (int i = 0; i < steps; ++i) last = step();
  return last < 0.95f * frozen ? "" : concat("after the freeze the loss does not fall: ", frozen, " to ", last);
}

std::string difference_from_reference(const Workload& workload) {
  Workload small = workload;
  small.batch = 4;
  // The reference loops take seconds over large pictures; these have just the strides of large ones.
  constexpr std::int64_t kLarge = 72;
  small.side = std::min(small.side, kLarge);
  small.learning_rate *= workload.reference_rate;
  const int threads = available_cores();
  Training fast(small, kFloatArithmetic, threads);
  Training reference(small, kFloatArithmetic, threads, Backend::kReference);
  for (int step = 1; step <= 2; ++step) {
    const float actual = fast.step(), expected = reference.step();
    if (!(std::abs(actual - expected) <= 5e-4f * std::abs(expected)))
      return concat("the loss of step ", step, " is ", actual, ", with the reference loops ", expected);
  }
  return "";
}

Training* TrainingPool::find(const Workload& workload, const Arithmetic& arithmetic, int threads, int warm_up_steps) {
  const std::string name = concat(workload.model, "/", workload.side, "/", workload.batch);
  if (name != workload_) {
    trainings_.clear();
    workload_ = name;
    workload_fault_ = difference_from_reference(workload);
  }
  fault_ = workload_fault_;
  if (!fault_.empty()) return nullptr;
  const auto [place, fresh] = trainings_.try_emplace({arithmetic.name, threads}, workload, arithmetic, threads);
  if (fresh) fault_ = place->second.warm_up(warm_up_steps);
  if (fault_.empty()) return &place->second;
  trainings_.erase(place);
  return nullptr;
}

}  // namespace miniqat::benchmarks
