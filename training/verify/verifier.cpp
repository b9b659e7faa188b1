#include "training/verify/verifier.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/tensors/tensor.h"
#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "datasets/loader.h"
#include "integer/reference/engine.h"
#include "training/run/integer_source.h"

namespace miniqat::training {
namespace {

std::string span_of(const std::set<int>& bits) {
  if (bits.empty()) return "-";
  return bits.size() == 1 ? concat(*bits.begin()) : concat(*bits.begin(), "-", *bits.rbegin());
}

nlohmann::ordered_json list_of(const std::set<int>& bits) {
  if (bits.empty()) return nullptr;
  if (bits.size() == 1) return *bits.begin();
  return bits;
}

/// A model of one operation with one input.
integer::Model alone(const integer::Model& model, integer::Operation operation) {
  integer::Model single{.name = operation.name,
                        .tensors = {model.input_of(operation), model.output_of(operation)},
                        .input = 0,
                        .output = 1};
  operation.inputs = {0};
  operation.output = 1;
  single.operations.push_back(std::move(operation));
  return single;
}

/// The reference loops are slow: so many examples say whether the fast engine was built right.
constexpr std::int64_t kReferenceExamples = 4;

std::int64_t class_of(const Tensor& output, std::int64_t i) {
  const std::int64_t classes = output.elements() / output.shape()[0];
  return argmax(output.values<std::uint8_t>().subspan(i * classes, classes));
}

Tensor head(const Tensor& batch, std::int64_t n) {
  const Shape example(batch.shape().extents().subspan(1));
  return batch.slice(0, integer::batch_shape(n, example));
}

/// Names of a graph hold no colons but before the number of an output; conversion gives its own tensors a word there.
bool is_of_graph(const std::string& tensor) {
  const std::size_t colon = tensor.find(':');
  return colon == std::string::npos || is_ascii_digit(tensor[colon + 1]);
}

bool equal(const Tensor& a, const Tensor& b) { return std::memcmp(a.raw(), b.raw(), a.bytes()) == 0; }

/// Goes over the data set batch by batch.
class Sweep {
 public:
  Sweep(Session& session, const Classifier& classifier, const integer::Model& model, const datasets::Dataset& dataset)
      : session_(session), classifier_(classifier), dataset_(dataset), model_(model), engine_(model), comparer_(model) {
    for (std::size_t i = 0; i < model.tensors.size(); ++i)
      if (is_of_graph(model.tensors[i].name)) {
        request_.fetches.push_back(session.graph().output_at(model.tensors[i].name));
        fetched_.push_back(i);
      }
    result_.images = room(model.tensor(model.input), dataset.size());
    result_.output = room(model.tensor(model.output), dataset.size());
  }

  void add(const datasets::EvaluationBatch& batch) {
    const std::vector<Tensor> simulated = simulate(batch);
    // From the bytes on, as whoever uses the model does.
    const Tensor images = input_batch(dataset_, model_.tensor(model_.input).grid, batch.first, batch.valid);
    const std::vector<Tensor> integers = engine_.run_all(images);
    comparer_.add(simulated, integers, batch.valid);
    if (batch.first == 0) compare_with_reference(images, integers, batch.valid);
    const Tensor& expected = simulated[model_.output];
    const Tensor& output = integers[model_.output];
    result_.simulated.outputs.add(expected, output, batch.valid);
    for (std::int64_t i = 0; i < batch.valid; ++i) {
      const std::int64_t label = batch.labels.values<std::int32_t>()[i];
      const std::int64_t simulated_class = class_of(expected, i), integer_class = class_of(output, i);
      result_.simulated.count(simulated_class, label, integer_class);
      result_.integer.count(integer_class, label, integer_class);
    }
    keep(images, batch, result_.images);
    keep(output, batch, result_.output);
  }

  Verification finish() {
    result_.integer.outputs = {.count = result_.output.elements(), .equal = result_.output.elements()};
    result_.layers = comparer_.layers();
    return std::move(result_);
  }

 private:
  static Tensor room(const integer::TensorInfo& info, std::int64_t n) {
    return Tensor(integer::batch_shape(n, info.shape), DType::kUInt8);
  }

  /// Every tensor of the model as the evaluation graph computes it, as integers; undefined where it has no such tensor.
  std::vector<Tensor> simulate(const datasets::EvaluationBatch& batch) {
    const std::vector<Tensor> found = session_.run(request_, {{classifier_.images, batch.images}}).fetched;
    std::vector<Tensor> tensors(model_.tensors.size());
    for (std::size_t k = 0; k < found.size(); ++k)
      tensors[fetched_[k]] = integers_of(found[k], model_.tensors[fetched_[k]].grid);
    return tensors;
  }

  void compare_with_reference(const Tensor& images, const std::vector<Tensor>& integers, std::int64_t valid) {
    const std::int64_t n = std::min(valid, kReferenceExamples);
    const std::vector<Tensor> reference = integer::reference::run(model_, head(images, n));
    for (std::size_t i = 0; i < reference.size(); ++i)
      result_.reference_equal = result_.reference_equal && equal(reference[i], head(integers[i], n));
    result_.reference_examples = n;
  }

  static void keep(const Tensor& tensor, const datasets::EvaluationBatch& batch, Tensor& all) {
    const std::int64_t example = tensor.elements() / tensor.shape()[0];
    std::memcpy(all.data<std::uint8_t>() + batch.first * example, tensor.raw(), batch.valid * example);
  }

  Session& session_;
  const Classifier& classifier_;
  const datasets::Dataset& dataset_;
  const integer::Model& model_;
  integer::Engine engine_;
  LayerComparer comparer_;
  RunRequest request_;
  /// The tensors of the model that `request_` fetches, by their numbers.
  std::vector<std::size_t> fetched_;
  Verification result_;
};

}  // namespace

std::string IntegerBits::label() const {
  return concat("W", span_of(weights), "A", span_of(activations), per_channel ? " per channel" : "");
}

nlohmann::ordered_json IntegerBits::json() const {
  return {{"weights", list_of(weights)}, {"activations", list_of(activations)}};
}

IntegerBits bits_of(const integer::Model& model) {
  IntegerBits bits;
  for (const integer::Operation& operation : model.operations) {
    bits.activations.insert(model.output_of(operation).grid.bits);
    if (const auto* layer = std::get_if<integer::Layer>(&operation.action)) {
      bits.weights.insert(layer->weight_bits);
      bits.per_channel = bits.per_channel || layer->per_channel();
    }
  }
  return bits;
}

void Agreement::add(const Tensor& a, const Tensor& b, std::int64_t valid) {
  const std::int64_t elements = a.elements() / a.shape()[0] * valid;
  const std::uint8_t* x = a.data<std::uint8_t>();
  const std::uint8_t* y = b.data<std::uint8_t>();
  for (std::int64_t i = 0; i < elements; ++i) {
    equal += x[i] == y[i] ? 1 : 0;
    largest = std::max(largest, std::abs(x[i] - y[i]));
  }
  count += elements;
}

LayerComparer::LayerComparer(const integer::Model& model) : model_(model) {
  for (const integer::Operation& operation : model.operations) {
    engines_.push_back(operation.inputs.size() == 1 ? std::make_unique<integer::Engine>(alone(model, operation))
                                                    : nullptr);
    layers_.push_back({.operation = operation.name,
                       .type = std::string(type_name(operation.action)),
                       .tensor = model.output_of(operation).name,
                       .alone = {},
                       .end_to_end = {}});
  }
}

LayerComparer::~LayerComparer() = default;

Tensor LayerComparer::run_alone(std::size_t i, const std::vector<Tensor>& simulated) {
  const integer::Operation& operation = model_.operations[i];
  if (engines_[i] != nullptr) return engines_[i]->run(simulated[operation.inputs[0]]);
  std::vector<Tensor> inputs;
  for (const int input : operation.inputs) inputs.push_back(simulated[input]);
  return integer::reference::run_operation(model_, operation, inputs);
}

void LayerComparer::add(std::vector<Tensor> simulated, const std::vector<Tensor>& integers, std::int64_t valid) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const int output = model_.operations[i].output;
    const Tensor made = run_alone(i, simulated);
    if (!simulated[output].defined()) simulated[output] = made;
    layers_[i].alone.add(made, simulated[output], valid);
    layers_[i].end_to_end.add(integers[output], simulated[output], valid);
  }
}

Tensor integers_of(const Tensor& values, const integer::Grid& grid) {
  Tensor integers(values.shape(), DType::kUInt8);
  std::ranges::transform(values.values<float>(), integers.data<std::uint8_t>(),
                         [&grid](float value) { return integer::quantize(grid, value); });
  return integers;
}

Verification verify(Session& session, const Classifier& classifier, const integer::Model& model,
                    const datasets::Dataset& dataset, const std::function<void(std::int64_t, std::int64_t)>& report) {
  Sweep sweep(session, classifier, model, dataset);
  datasets::for_each_batch(dataset, classifier.images.shape()[0], [&](const datasets::EvaluationBatch& batch) {
    sweep.add(batch);
    if (report) report(batch.first + batch.valid, dataset.size());
  });
  return sweep.finish();
}

Score score_of(const std::string& name, const Tensor& output, const Verification& verification,
               const datasets::Dataset& dataset) {
  Score score{{}, name};
  score.outputs.add(output, verification.output, dataset.size());
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    const std::int32_t label = dataset.labels.values<std::int32_t>()[i];
    score.count(class_of(output, i), label, class_of(verification.output, i));
  }
  return score;
}

}  // namespace miniqat::training
