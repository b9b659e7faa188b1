#pragma once

#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "integer/model.h"
#include "quantize/convert/integer_grid.h"
#include "quantize/convert/integer_layer.h"
#include "quantize/convert/integer_scale_shift.h"

namespace miniqat::quantize {

/// MaxPool, Reshape, Pad or Slice behind an operation that waits for its grid: these do the same to numbers on any.
struct Rearrangement {
  std::string operation;
  /// The operation's output, by the graph's name.
  std::string tensor;
  integer::Action action;
  Shape shape;
};

/// An operation whose result has no grid yet, with what was done to the result since.
struct Pending {
  /// The graph's node.
  std::string operation;
  /// Multipliers and a layer's biases left out.
  integer::Action action;
  std::vector<int> inputs;
  /// The shape of the operation's output, for one example.
  Shape shape;
  /// The graph's tensor of that output, up to the last bias or Relu.
  std::string tensor;
  /// The real biases of a layer, one for each output channel.
  std::vector<double> bias = {};
  /// The real values of a Lookup, one for each integer of the input.
  std::vector<double> values = {};
  /// If the operation only multiplies and adds constants, else empty: the action is made of it when all are known.
  ScaleShift scale_shift = {};
  /// The part of the results that Relu, Relu6 and Clip leave.
  Range<float> range = {-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::infinity()};
  /// In their order. What is done to the range and the biases comes before them.
  std::vector<Rearrangement> rearrangements = {};
  /// For a layer whose pixels are still dealt out to the batch; its window comes with the BatchToSpaceND.
  std::optional<Atrous> atrous = {};

  bool is_clamped() const {
    return range.min > -std::numeric_limits<float>::infinity() || range.max < std::numeric_limits<float>::infinity();
  }
  bool is_layer() const { return std::holds_alternative<integer::Layer>(action); }
  const Shape& last_shape() const { return rearrangements.empty() ? shape : rearrangements.back().shape; }
  /// `name` is the graph's tensor after a bias or a Relu that is now part of the operation. Behind rearrangements it
  /// happens before them, and what lies between has no counterpart in the graph any more.
  void absorb(const std::string& name);
};

/// Puts an integer model together.
class IntegerModelBuilder {
 public:
  explicit IntegerModelBuilder(std::string name) { model_.name = std::move(name); }

  int add_input(const std::string& name, const Shape& shape, const integer::Grid& grid);
  /// The operation with its rearrangements, results on the target's grid; `name` is that of the last tensor. Returns
  /// its index.
  int add(const Pending& pending, const Target& target, const std::string& name);
  /// An operation that keeps its input's grid.
  int add(const Rearrangement& rearrangement, int input);
  /// The tensor's numbers with the other sign, exactly: its integers from the grid's last one downwards, on the
  /// mirrored grid. Multipliers are not negative, so a Sub is an Add of this. Returns its index, the same one for each
  /// reader.
  int negated(int input);

  const integer::TensorInfo& tensor(int i) const { return model_.tensor(i); }
  /// Checked.
  integer::Model finish(int output);

 private:
  int add_scale_shift(Pending pending, const Target& target, const std::string& name);
  int add_layer(Pending pending, const Target& target, const std::string& name);
  int finer(int input, int shift);
  /// The finished action with the rearrangements behind it.
  int append(const Pending& pending, integer::Action action, const Target& within, const std::string& name);
  bool gives_zero(const integer::Action& action, const std::vector<int>& inputs) const;
  int append(const std::string& operation, integer::Action action, std::vector<int> inputs, integer::TensorInfo output,
             const integer::Clamp& clamp);
  void set_scales(integer::Action& action, const Pending& pending, const Target& target) const;
  float scale(int tensor) const { return model_.tensor(tensor).grid.scale; }
  /// scale / output_scale for a tensor; 0, which takes part in no rounding, where all of it is 0.
  float ratio(int tensor, float output_scale) const { return zero_[tensor] ? 0 : scale(tensor) / output_scale; }

  integer::Model model_;
  /// For each tensor: nothing but its zero point is ever in it, so that its scale says nothing.
  std::vector<bool> zero_;
  /// For a tensor of fewer than 8 bits, the same numbers in 8.
  std::map<int, int> finer_;
  /// For a tensor, negated().
  std::map<int, int> negated_;
  std::set<std::string> tensor_names_;
  std::set<std::string> operation_names_;
};

}  // namespace miniqat::quantize
