#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/limit_stages.h"

namespace miniqat::limit {

struct TrainingOptions {
  /// "lenet" or "lenet5", on 28x28x1 pictures of 10 classes.
  std::string model = "lenet";
  std::int64_t batch = 128;
  /// 0 is float.
  int bits = 0;
  bool dropout = true;
  Descent descent = {};
};

/// A variable's values by its name in our models ("conv1/weights"), in the layout that they have there.
using VariableSource = std::function<const float*(const std::string&)>;

/// The training step at the limit, for as many threads as OpenMP has at its construction. Copies the variables.
class Training {
 public:
  static bool knows(const std::string& model) { return model == "lenet" || model == "lenet5"; }

  Training(const TrainingOptions& options, const VariableSource& variables);
  /// images: [batch, 28, 28, 1] and labels: [batch], read in every step. Returns the loss.
  float step(const float* images, const std::int32_t* labels);

 private:
  struct Parts;
  const Flow& last() const { return stages_.empty() ? images_ : stages_.back()->flow(); }

  TrainingOptions options_;
  Flow images_;
  std::vector<std::unique_ptr<Stage>> stages_;
};

}  // namespace miniqat::limit
