#include "benchmarks/limit_training.h"

#include <algorithm>

namespace miniqat::limit {

/// Puts layers onto the end, by the names of their variables' scopes.
struct Training::Parts {
  Parameters parameters(const std::string& name) const {
    return {.weights = variables(name + "/weights"), .biases = variables(name + "/biases")};
  }
  /// Nobody reads the gradient of the images.
  LayerOptions options(bool relu) const {
    return {.bits = training.options_.bits, .relu = relu, .d_input = !training.stages_.empty()};
  }
  void convolution(const std::string& name, const ConvolutionShape& shape) const {
    training.stages_.push_back(limit::convolution(training.last(), shape, options(true), parameters(name)));
  }
  void dense(const std::string& name, std::int64_t outputs, bool relu) const {
    training.stages_.push_back(limit::dense(training.last(), outputs, options(relu), parameters(name)));
  }

  Training& training;
  const VariableSource& variables;
};

Training::Training(const TrainingOptions& options, const VariableSource& variables)
    : options_(options), images_({.n = options.batch, .h = 28, .w = 28, .c = 1}) {
  const Parts add{*this, variables};
  constexpr std::int64_t kClasses = 10;
  const auto pool = [this] { stages_.push_back(max_pool(last())); };
  if (options.model == "lenet") {
    add.convolution("conv1", {.channels = 32});
    pool();
    add.convolution("conv2", {.channels = 64});
    pool();
    add.dense("fc1", 1024, true);
    if (options.dropout) stages_.push_back(dropout(last()));
    add.dense("fc2", kClasses, false);
  } else {
    add.convolution("conv1", {.channels = 6});
    pool();
    add.convolution("conv2", {.channels = 16, .same = false});
    pool();
    add.dense("fc1", 120, true);
    add.dense("fc2", 84, true);
    add.dense("fc3", kClasses, false);
  }
}

float Training::step(const float* images, const std::int32_t* labels) {
  std::copy_n(images, images_.extents.elements(), images_.y.data());
  for (const auto& stage : stages_) stage->forward();
  const Flow& logits = last();
  const float loss =
      softmax_cross_entropy(logits.y.data(), labels, logits.extents.n, logits.extents.c, logits.d.data());
  for (auto stage = stages_.rbegin(); stage != stages_.rend(); ++stage) (*stage)->backward();
  for (const auto& stage : stages_) stage->update(options_.descent);
  return loss;
}

}  // namespace miniqat::limit
