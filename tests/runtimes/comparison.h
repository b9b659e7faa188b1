#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/tensors/tensor.h"
#include "exporters/onnx/onnx.h"
#include "exporters/tflite/tflite.h"
#include "integer/model.h"
#include "tests/integer/random_model.h"
#include "tests/runtimes/judge.h"

namespace miniqat::testing {

/// How near a runtime's outputs are to the reference engine's, over any number of models and examples.
struct RuntimeAgreement {
  std::int64_t outputs = 0;
  std::int64_t equal = 0;
  /// The largest difference, in steps.
  int largest = 0;
  std::int64_t examples = 0;
  /// Examples whose first largest output is in the same place.
  std::int64_t same_class = 0;

  double share() const { return static_cast<double>(equal) / static_cast<double>(outputs); }
  double same_class_share() const { return static_cast<double>(same_class) / static_cast<double>(examples); }
  /// Counts a model's outputs: expected [n, ...] uint8, and as many integers found. Throws Error when these are not as
  /// many.
  void add(const Tensor& expected, std::span<const int> found);
};

/// A line for people who read the test's output.
void print(const std::string& what, const RuntimeAgreement& agreement);

/// Prints it, and expects such a share of equal integers, and no other farther than `largest` steps.
void expect_near(const std::string& what, const RuntimeAgreement& agreement, double share, int largest = 1);

/// Collects models of several kinds and what the reference makes of them, then runs all at once in LiteRT.
class LiteRtComparison {
 public:
  void add(const std::string& kind, const integer::Model& model, const exporters::TfliteOptions& options);
  /// The model as uint8 and as int8.
  void add_both(const std::string& kind, const integer::Model& model);
  /// By kind.
  std::map<std::string, RuntimeAgreement> run() const;

 private:
  struct Expected {
    std::string kind;
    Tensor output;
    bool int8;
  };

  std::vector<Case> cases_;
  std::vector<Expected> expected_;
};

/// What ONNX Runtime made of models.
struct OnnxComparison {
  RuntimeAgreement agreement = {};
  /// The types of the nodes that the runtime runs.
  std::set<std::string> kernels = {};
};

/// Models to be compared with each other's sums.
struct OnnxGroup {
  std::vector<integer::Model> models;
  exporters::OnnxOptions options = {};
};

/// Runs all models in one process, on n random images each, and compares them group by group.
std::vector<OnnxComparison> compare_in_onnx_runtime(const std::vector<OnnxGroup>& groups, std::int64_t n);

/// So many random models on images of [9, 11, 6].
std::vector<integer::Model> some_models(int count, const std::function<void(RandomModel&)>& build,
                                        const RandomModelOptions& options = {});

}  // namespace miniqat::testing
