#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "exporters/onnx/onnx.h"
#include "exporters/tflite/tflite.h"
#include "integer/model.h"
#include "tests/integer/random_model.h"
#include "tests/runtimes/agreement.h"
#include "tests/runtimes/judge.h"

namespace miniqat::testing {

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
