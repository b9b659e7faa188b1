#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/engine/session.h"
#include "core/tensors/tensor.h"
#include "datasets/dataset.h"
#include "integer/engine.h"
#include "integer/model.h"
#include "training/figures.h"
#include "training/model_source.h"

namespace miniqat::training {

/// The widths that occur in an integer model.
struct IntegerBits {
  std::set<int> weights;
  /// The widths of what operations give; the input is the data set's bytes.
  std::set<int> activations;
  bool per_channel = false;

  /// "W4A4 per channel"; "W2-8A8" where layers differ.
  std::string label() const;
  /// {"weights": 4, "activations": 4}; a list of widths where layers differ, null where there is none.
  nlohmann::ordered_json json() const;
};

IntegerBits bits_of(const integer::Model& model);

/// How often two lists of integers agree.
struct Agreement {
  std::int64_t count = 0;
  std::int64_t equal = 0;
  /// The largest difference, in steps of the grid.
  int largest = 0;

  /// Both [n, ...] uint8 of one shape; only the first `valid` examples count.
  void add(const Tensor& a, const Tensor& b, std::int64_t valid);
  double share() const { return count == 0 ? 1 : static_cast<double>(equal) / static_cast<double>(count); }
};

/// One operation of the integer model against the evaluation graph.
struct LayerComparison {
  std::string operation;
  std::string type;
  std::string tensor;
  /// Given the evaluation graph's integers as inputs: what this operation does differently.
  Agreement alone;
  /// From the picture on: what has gathered up to here.
  Agreement end_to_end;
};

/// Compares the integer model with the evaluation graph, tensor by tensor.
class LayerComparer {
 public:
  explicit LayerComparer(const integer::Model& model);
  ~LayerComparer();

  /// `simulated` and `integers` hold every tensor of the model, in its order, each [n, ...] uint8: what the evaluation
  /// graph has, as integers, and what the engine made of the same pictures. The first `valid` examples count. One of
  /// the former that the graph does not have (conversion made it, docs/integer-arithmetic.md#coarse-units) is
  /// undefined; what its operation makes of the graph's inputs takes its place.
  void add(std::vector<Tensor> simulated, const std::vector<Tensor>& integers, std::int64_t valid);
  const std::vector<LayerComparison>& layers() const { return layers_; }

 private:
  Tensor run_alone(std::size_t i, const std::vector<Tensor>& simulated);

  const integer::Model& model_;
  /// For each operation with one input, an engine of it alone; null for the others, which the reference loops run.
  std::vector<std::unique_ptr<integer::Engine>> engines_;
  std::vector<LayerComparison> layers_;
};

/// A tensor of numbers on the grid, float32, as their integers.
Tensor integers_of(const Tensor& values, const integer::Grid& grid);

/// The accuracy of one way to run a model; where the task is none of classes, its measure.
struct Score : Hits {
  /// "simulated", "integer", "onnxruntime 1.30.0", ...
  std::string name;
  /// Examples for which it chooses the class that the integer engine chooses; without classes, those with equal
  /// outputs.
  std::int64_t agreeing = 0;
  /// The runtime's outputs beside the integer engine's.
  Agreement outputs = {};

  /// What decides, where there are no classes.
  std::optional<Measure> measure = {};
  /// "98.00%", "R^2 0.9312".
  std::string text() const;
  double agreement() const { return examples == 0 ? 0 : static_cast<double>(agreeing) / static_cast<double>(examples); }
};

/// The evaluation graph with Arithmetic::kInteger.
struct OnIntegers {
  Score score{{}, "on integers"};
  std::vector<LayerComparison> layers;
  /// The nodes that multiplied integers.
  std::set<std::string> multiplying;
};

struct Verification {
  /// The evaluation graph with Arithmetic::kSimulated, and its layers.
  Score simulated{{}, "simulated"};
  std::vector<LayerComparison> layers;
  /// None if no layer of the graph multiplies integers on this machine: its numbers are those of the simulation then.
  std::optional<OnIntegers> on_integers;
  Score integer{{}, "integer"};
  /// Examples on which the fast engine was compared with the reference loops, bit by bit, and whether it was equal.
  std::int64_t reference_examples = 0;
  bool reference_equal = true;
  /// The input's and the output's integers of the whole data set, [n, ...] uint8: what other runtimes are given, and
  /// what they are compared with.
  Tensor images;
  Tensor output;
  /// What the network learned, and its outputs.
  const Task* task = &classification();
  integer::TensorInfo output_info = {};
};

/// Runs the evaluation graph, in both arithmetics with the variables of `session`, and the integer model side by side
/// over a whole data set. `report(done, total)`, if there is one, is called after every batch.
Verification verify(Session& session, const Classifier& classifier, const integer::Model& model,
                    const datasets::Dataset& dataset,
                    const std::function<void(std::int64_t, std::int64_t)>& report = {});

/// The score of outputs [n, ...] uint8, on the grid of the model's, that something else computed for
/// `verification.images`.
Score score_of(const std::string& name, const Tensor& output, const Verification& verification,
               const datasets::Dataset& dataset);

}  // namespace miniqat::training
