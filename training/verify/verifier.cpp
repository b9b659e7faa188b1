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

/// Counts what one way to run a model answers.
class ScoreCounter {
 public:
  ScoreCounter(const Task& task, const integer::TensorInfo& output)
      : task_(task), grid_(output.grid), tally_(task, output.shape.elements()) {}

  /// Outputs [n, ...] uint8 of this way and of the integer engine, of which the first `valid` count.
  void add(Score& score, const Tensor& own, const Tensor& of_engine, const datasets::Examples& batch,
           std::int64_t valid) {
    score.outputs.add(own, of_engine, valid);
    if (&task_ == &classification()) return add_classes(score, own, of_engine, batch, valid);
    const std::int64_t outputs = own.elements() / own.shape()[0];
    for (std::int64_t i = 0; i < valid; ++i) {
      const auto row = [&](const Tensor& all) { return all.values<std::uint8_t>().subspan(i * outputs, outputs); };
      score.agreeing += std::ranges::equal(row(own), row(of_engine)) ? 1 : 0;
    }
    score.examples += valid;
    std::vector<float> numbers;
    for (const std::uint8_t q : own.values<std::uint8_t>()) numbers.push_back(integer::dequantize(grid_, q));
    tally_.add(numbers, batch, valid);
  }

  void finish(Score& score, const datasets::Dataset& dataset) const {
    if (&task_ != &classification()) score.measure = tally_.conclude(dataset).main();
  }

 private:
  static void add_classes(Score& score, const Tensor& own, const Tensor& of_engine, const datasets::Examples& batch,
                          std::int64_t valid) {
    for (std::int64_t i = 0; i < valid; ++i) {
      const std::int64_t chosen = class_of(own, i);
      score.count(chosen, batch.labels.values<std::int32_t>()[i]);
      score.agreeing += chosen == class_of(of_engine, i) ? 1 : 0;
    }
  }

  const Task& task_;
  const integer::Grid grid_;
  Tally tally_;
};

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
  GraphSide(Session& variables, Arithmetic arithmetic, const Classifier& network, const integer::Model& model,
            std::vector<ModelFetch> runs)
      : session_(variables.graph(), {.arithmetic = arithmetic}),
        images_(network.images),
        model_(model),
        comparer_(model),
        counter_(*network.task, model.tensor(model.output)),
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
    counter_.add(score, tensors[model_.output], integers[model_.output], batch, batch.valid);
    comparer_.add(std::move(tensors), integers, batch.valid);
  }

  const std::vector<LayerComparison>& layers() const { return comparer_.layers(); }
  void finish(Score& score, const datasets::Dataset& dataset) const { counter_.finish(score, dataset); }

 private:
  Session session_;
  const Output images_;
  const integer::Model& model_;
  LayerComparer comparer_;
  ScoreCounter counter_;
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
        counter_(*classifier.task, model.tensor(model.output)),
        simulated_(variables, Arithmetic::kSimulated, classifier, model, {all_}) {
    result_.task = classifier.task;
    result_.output_info = model.tensor(model.output);
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
    counter_.add(result_.integer, output, output, batch, batch.valid);
    keep(images, batch, result_.images);
    keep(output, batch, result_.output);
  }

  Verification finish() {
    result_.layers = simulated_.layers();
    simulated_.finish(result_.simulated, dataset_);
    counter_.finish(result_.integer, dataset_);
    if (on_integers_) {
      result_.on_integers->layers = on_integers_->layers();
      on_integers_->finish(result_.on_integers->score, dataset_);
    }
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
    on_integers_.emplace(variables_, Arithmetic::kInteger, classifier_, model_,
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
  ScoreCounter counter_;
  GraphSide simulated_;
  /// Not there if no layer multiplies integers.
  std::optional<GraphSide> on_integers_;
  Verification result_;
};

}  // namespace

std::string Score::text() const {
  if (!measure) return percent(accuracy());
  return measure->kind->is_share ? measure->text() : concat(measure->kind->brief, " ", measure->text());
}

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
  ScoreCounter counter(*verification.task, verification.output_info);
  datasets::for_each_batch(dataset, dataset.size(), [&](const datasets::EvaluationBatch& all) {
    counter.add(score, output, verification.output, all, all.valid);
  });
  counter.finish(score, dataset);
  return score;
}

}  // namespace miniqat::training
