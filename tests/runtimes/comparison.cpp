#include "tests/runtimes/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/tensors/tensor.h"
#include "core/text/error.h"
#include "formats/onnx/onnx.pb.h"
#include "integer/reference/engine.h"
#include "tests/integer/random_model.h"

namespace miniqat::testing {
namespace {

using integer::Model;

constexpr std::int64_t kImages = 4;

/// LiteRT's bytes as our integers.
std::vector<int> integers_of(const std::string& bytes, bool int8) {
  std::vector<int> integers;
  for (const char byte : bytes) integers.push_back(static_cast<std::uint8_t>(byte) ^ (int8 ? 0x80 : 0));
  return integers;
}

/// The numbers' places on the grid; throws Error for a number between two of them.
std::vector<int> integers_of(const std::string& bytes, const integer::Grid& grid) {
  std::vector<float> reals(bytes.size() / sizeof(float));
  std::memcpy(reals.data(), bytes.data(), reals.size() * sizeof(float));
  std::vector<int> integers;
  for (const float real : reals) {
    integers.push_back(static_cast<int>(std::lround(real / grid.scale)) + grid.zero_point);
    if (dequantize(grid, integers.back()) != real) fail(real, " is not on the grid of scale ", grid.scale);
  }
  return integers;
}

void add(const Model& model, const Tensor& images, const std::string& outputs, const std::string& optimized,
         OnnxComparison& result) {
  result.agreement.add(integer::reference::run(model, images)[model.output],
                       integers_of(outputs, model.tensor(model.output).grid));
  pb::Model graph;
  if (!graph.ParseFromString(optimized)) fail("an optimized graph that cannot be read");
  for (const pb::Node& node : graph.graph().node()) result.kernels.insert(node.op_type());
}

}  // namespace

void RuntimeAgreement::add(const Tensor& expected, std::span<const int> found) {
  const auto integers = expected.values<std::uint8_t>();
  if (found.size() != integers.size()) fail(found.size(), " outputs, not ", integers.size());
  outputs += expected.elements();
  for (std::size_t i = 0; i < found.size(); ++i) {
    equal += found[i] == integers[i];
    largest = std::max(largest, std::abs(found[i] - integers[i]));
  }
  const std::int64_t n = expected.shape()[0];
  const std::size_t classes = found.size() / n;
  examples += n;
  for (std::size_t first = 0; first < found.size(); first += classes)
    same_class += argmax(found.subspan(first, classes)) == argmax(integers.subspan(first, classes));
}

void print(const std::string& what, const RuntimeAgreement& agreement) {
  std::printf("  %-30s %8ld outputs, %8.4f%% equal, at most %d apart; same class in %ld of %ld\n", what.c_str(),
              static_cast<long>(agreement.outputs), 100 * agreement.share(), agreement.largest,
              static_cast<long>(agreement.same_class), static_cast<long>(agreement.examples));
}

void expect_near(const std::string& what, const RuntimeAgreement& agreement, double share, int largest) {
  print(what, agreement);
  EXPECT_GE(agreement.share(), share) << what;
  EXPECT_LE(agreement.largest, largest) << what;
}

void LiteRtComparison::add(const std::string& kind, const Model& model, const exporters::TfliteOptions& options) {
  Random random(cases_.size());
  const Tensor images = random_images(random, model, kImages);
  cases_.push_back({.model = exporters::tflite(model, options), .images = images});
  expected_.push_back({.kind = kind,
                       .output = integer::reference::run(model, images)[model.output],
                       .int8 = options.int8 || options.int4});
}

void LiteRtComparison::add_both(const std::string& kind, const Model& model) {
  add(kind, with_scales_per_tensor(model), {});
  add(kind, with_symmetric_weights(model), {.int8 = true});
}

std::map<std::string, RuntimeAgreement> LiteRtComparison::run() const {
  const Verdict verdict = judge(kLiteRt, cases_);
  if (verdict.status != 0) fail("status ", verdict.status, ": ", verdict.err);
  std::map<std::string, RuntimeAgreement> agreements;
  for (std::size_t i = 0; i < expected_.size(); ++i) {
    const Expected& expected = expected_[i];
    agreements[expected.kind].add(expected.output, integers_of(verdict.outputs[i], expected.int8));
  }
  return agreements;
}

std::vector<OnnxComparison> compare_in_onnx_runtime(const std::vector<OnnxGroup>& groups, std::int64_t n) {
  std::vector<Case> cases;
  Random random(7);
  for (const OnnxGroup& group : groups)
    for (const Model& model : group.models)
      cases.push_back({exporters::onnx(model, group.options), random_images(random, model, n)});
  const Verdict verdict = judge(kOnnxRuntime, cases, {}, true);
  if (verdict.status != 0) fail("status ", verdict.status, ": ", verdict.err);
  std::vector<OnnxComparison> results;
  std::size_t i = 0;
  for (const OnnxGroup& group : groups) {
    OnnxComparison& all = results.emplace_back();
    for (const Model& model : group.models) {
      add(model, cases[i].images, verdict.outputs[i], verdict.optimized[i], all);
      ++i;
    }
  }
  return results;
}

std::vector<Model> some_models(int count, const std::function<void(RandomModel&)>& build,
                               const RandomModelOptions& options) {
  std::vector<Model> models;
  for (int seed = 7; seed < 7 + count; ++seed) {
    RandomModel net(static_cast<std::uint64_t>(seed), {9, 11, 6}, options);
    build(net);
    models.push_back(net.finish());
  }
  return models;
}

}  // namespace miniqat::testing
