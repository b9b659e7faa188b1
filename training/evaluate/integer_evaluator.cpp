#include "training/evaluate/integer_evaluator.h"

#include <algorithm>

#include "integer/engine.h"
#include "training/run/integer_source.h"

namespace miniqat::training {
namespace {

constexpr std::int64_t kBatch = 100;

}  // namespace

Evaluation evaluate_integers(const integer::Model& model, const datasets::Dataset& dataset, const OnLogits& on_logits) {
  dataset.check();
  Evaluation result;
  integer::Engine engine(model);
  const integer::TensorInfo& output = model.tensor(model.output);
  std::vector<float> logits(static_cast<std::size_t>(output.shape.elements()));
  for (std::int64_t first = 0; first < dataset.size(); first += kBatch) {
    const std::int64_t count = std::min(kBatch, dataset.size() - first);
    const Tensor& integers = engine.run(input_batch(dataset, model.tensor(model.input).grid, first, count));
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint8_t* row = integers.data<std::uint8_t>() + i * output.shape.elements();
      for (std::size_t k = 0; k < logits.size(); ++k) logits[k] = integer::dequantize(output.grid, row[k]);
      result.count(logits, dataset.labels.values<std::int32_t>()[first + i]);
      if (on_logits) on_logits(first + i, logits);
    }
  }
  result.finish();
  return result;
}

}  // namespace miniqat::training
