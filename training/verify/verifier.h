#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/session.h"
#include "datasets/dataset.h"
#include "training/hits.h"
#include "training/model_source.h"
#include "training/verify/layer_comparison.h"

namespace miniqat::training {

/// The accuracy of one way to run a model.
struct Score : Hits {
  /// "simulated", "integer", "onnxruntime 1.30.0", ...
  std::string name;
  /// Examples for which it chooses the class that the integer engine chooses.
  std::int64_t agreeing = 0;
  /// The runtime's outputs beside the integer engine's.
  Agreement outputs = {};

  /// One more example: the class that this way chooses, and the one that the integer engine chooses.
  void count(std::int64_t chosen, std::int64_t label, std::int64_t integer_class) {
    Hits::count(chosen, label);
    agreeing += chosen == integer_class ? 1 : 0;
  }
  double agreement() const { return examples == 0 ? 0 : static_cast<double>(agreeing) / static_cast<double>(examples); }
};

struct Verification {
  Score simulated{{}, "simulated"};
  Score integer{{}, "integer"};
  std::vector<LayerComparison> layers;
  /// Examples on which the fast engine was compared with the reference loops, bit by bit, and whether it was equal.
  std::int64_t reference_examples = 0;
  bool reference_equal = true;
  /// The input's and the output's integers of the whole data set, [n, ...] uint8: what other runtimes are given, and
  /// what they are compared with.
  Tensor images;
  Tensor output;
};

/// Runs the evaluation graph and the integer model side by side over a whole data set. `report(done, total)`, if there
/// is one, is called after every batch.
Verification verify(Session& session, const Classifier& classifier, const integer::Model& model,
                    const datasets::Dataset& dataset,
                    const std::function<void(std::int64_t, std::int64_t)>& report = {});

/// The score of outputs [n, classes] uint8 that something else computed for `verification.images`.
Score score_of(const std::string& name, const Tensor& output, const Verification& verification,
               const datasets::Dataset& dataset);

}  // namespace miniqat::training
