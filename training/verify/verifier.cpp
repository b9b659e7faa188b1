#include "training/verify/verifier.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/engine/profile.h"
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

void count_classes(Score& score, const Tensor& chosen, const Tensor& of_integers,
                   const datasets::EvaluationBatch& batch) {
  score.outputs.add(chosen, of_integers, batch.valid);
  for (std::int64_t i = 0; i < batch.valid; ++i)
    score.count(class_of(chosen, i), batch.labels.values<std::int32_t>()[i], class_of(of_integers, i));
}

void copy_variables(Session& from, Session& to) {
  for (const auto& [name, value] : from.variables()) to.set_variable(name, value);
}

/// The names of the nodes that multiply integers where these tensors are fetched.
std::set<std::string> multiplying_nodes(Session& variables, const std::vector<Output>& fetches, const Feeds& feeds) {
  // A session of its own, whose plan goes with it.
  Session session(variables.graph(), {.arithmetic = Arithmetic::kInteger});
  copy_variables(variables, session);
  Profile profile;
  session.set_profile(&profile);
  const Profile::Time begin = Profile::Clock::now();
  session.run({.fetches = fetches}, feeds);
  profile.end_step(1, begin, Profile::Clock::now());
  std::set<std::string> names;
  for (const Profile::Part& part : profile.parts())
    if (part.type.ends_with(kOfIntegers)) names.insert(part.name);
  return names;
}

/// Fetches tensors of a model out of the graph, by their numbers in the model.
struct ModelFetch {
  RunRequest request;
  std::vector<std::size_t> numbers;

  void add(std::size_t number, const Output& output) {
    request.fetches.push_back(output);
    numbers.push_back(number);
  }
};

/// All tensors of the model that the graph has.
ModelFetch fetch_all(const integer::Model& model, const Graph& graph) {
  ModelFetch all;
  for (std::size_t i = 0; i < model.tensors.size(); ++i)
    if (is_of_graph(model.tensors[i].name)) all.add(i, graph.output_at(model.tensors[i].name));
  return all;
}

/// The same in several runs. A fetched tensor ends the chain of operations that it is in, and behind it a layer may not
/// multiply integers that does without the fetch: such a tensor has a run of its own.
std::vector<ModelFetch> fetch_apart(ModelFetch all, const std::set<std::string>& multiplying, Session& variables,
                                    const Output& logits, const Feeds& feeds) {
  if (multiplying_nodes(variables, all.request.fetches, feeds) == multiplying) return {std::move(all)};
  std::vector<ModelFetch> runs(1);
  for (std::size_t i = 0; i < all.numbers.size(); ++i) {
    const Output& output = all.request.fetches[i];
    const bool alone = multiplying_nodes(variables, {logits, output}, feeds) != multiplying;
    (alone ? runs.emplace_back() : runs.front()).add(all.numbers[i], output);
  }
  return runs;
}

/// The evaluation graph in one arithmetic, beside the integer engine.
class GraphSide {
 public:
  GraphSide(Session& variables, Arithmetic arithmetic, Output images, const integer::Model& model,
            std::vector<ModelFetch> runs)
      : session_(variables.graph(), {.arithmetic = arithmetic}),
        images_(images),
        model_(model),
        comparer_(model),
        runs_(std::move(runs)) {
    copy_variables(variables, session_);
  }

  /// `integers` as LayerComparer::add() has them.
  void add(const datasets::EvaluationBatch& batch, const std::vector<Tensor>& integers, Score& score) {
    // Undefined where the graph has no such tensor.
    std::vector<Tensor> tensors(model_.tensors.size());
    for (const ModelFetch& run : runs_) {
      const std::vector<Tensor> found = session_.run(run.request, {{images_, batch.images}}).fetched;
      for (std::size_t k = 0; k < found.size(); ++k)
        tensors[run.numbers[k]] = integers_of(found[k], model_.tensors[run.numbers[k]].grid);
    }
    count_classes(score, tensors[model_.output], integers[model_.output], batch);
    comparer_.add(std::move(tensors), integers, batch.valid);
  }

  const std::vector<LayerComparison>& layers() const { return comparer_.layers(); }

 private:
  Session session_;
  const Output images_;
  const integer::Model& model_;
  LayerComparer comparer_;
  std::vector<ModelFetch> runs_;
};

/// Goes over the data set batch by batch.
class Sweep {
 public:
  Sweep(Session& variables, const Classifier& classifier, const integer::Model& model, const datasets::Dataset& dataset)
      : variables_(variables),
        classifier_(classifier),
        dataset_(dataset),
        model_(model),
        engine_(model),
        all_(fetch_all(model, variables.graph())),
        simulated_(variables, Arithmetic::kSimulated, classifier.images, model, {all_}) {
    result_.images = room(model.tensor(model.input), dataset.size());
    result_.output = room(model.tensor(model.output), dataset.size());
  }

  void add(const datasets::EvaluationBatch& batch) {
    // From the bytes on, as whoever uses the model does.
    const Tensor images = input_batch(dataset_, model_.tensor(model_.input).grid, batch.first, batch.valid);
    const std::vector<Tensor> integers = engine_.run_all(images);
    const Tensor& output = integers[model_.output];
    if (batch.first == 0) {
      compare_with_reference(images, integers, batch.valid);
      begin_on_integers({{classifier_.images, batch.images}});
    }
    simulated_.add(batch, integers, result_.simulated);
    if (on_integers_) on_integers_->add(batch, integers, result_.on_integers->score);
    count_classes(result_.integer, output, output, batch);
    keep(images, batch, result_.images);
    keep(output, batch, result_.output);
  }

  Verification finish() {
    result_.layers = simulated_.layers();
    if (on_integers_) result_.on_integers->layers = on_integers_->layers();
    return std::move(result_);
  }

 private:
  static Tensor room(const integer::TensorInfo& info, std::int64_t n) {
    return Tensor(integer::batch_shape(n, info.shape), DType::kUInt8);
  }

  void begin_on_integers(const Feeds& feeds) {
    const std::set<std::string> multiplying = multiplying_nodes(variables_, {classifier_.logits}, feeds);
    if (multiplying.empty()) return;
    result_.on_integers.emplace().multiplying = multiplying;
    on_integers_.emplace(variables_, Arithmetic::kInteger, classifier_.images, model_,
                         fetch_apart(all_, multiplying, variables_, classifier_.logits, feeds));
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

  Session& variables_;
  const Classifier& classifier_;
  const datasets::Dataset& dataset_;
  const integer::Model& model_;
  integer::Engine engine_;
  ModelFetch all_;
  GraphSide simulated_;
  /// Not there if no layer multiplies integers.
  std::optional<GraphSide> on_integers_;
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
