#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "core/graph/graph.h"
#include "integer/model.h"
#include "quantize/convert/integer_model_builder.h"
#include "quantize/convert/static_values.h"

namespace miniqat::quantize {

/// The shape of one example: without the batch, which everything that an integer model can hold keeps.
inline Shape example_of(const Shape& shape) { return Shape(shape.extents().subspan(1)); }

/// Walks through an evaluation graph from its input to its output, and makes an integer model on the way. Each tensor
/// is one of three things: a tensor of the model; one whose pixels SpaceToBatchND has dealt out to the batch; or the
/// real-valued result of an operation. The last waits for a quantizer to give it a grid, and meanwhile absorbs biases
/// and activations.
class GraphWalk {
 public:
  /// The output without the Softmax at the end. The values must be of what it needs. `input` and `name` are as in
  /// ConvertOptions.
  GraphWalk(const StaticValues& values, Output output, const std::optional<integer::Grid>& input,
            const std::string& name);
  integer::Model convert();

 private:
  struct Blocks {
    int tensor = 0;
    Atrous atrous;
  };
  using Value = std::variant<int, Blocks, Pending>;

  void visit(Node& node);
  Value value_of(Node& node);
  Value input(const Node& placeholder);
  const Node* input_quantizer(const Node& placeholder) const;
  Value quantizer(const Node& node);
  Value layer(const Node& node);
  integer::Layer weights(const Node& node);
  Value biased(const Node& node, Output summand, Output bias);
  Value normalised(const Node& node);
  /// The sum of a layer, to whose channels something happens in `node`. Throws Error naming the edge for anything else.
  const Pending& layer_sum(const Node& node, Output sum);
  Value two_operands(const Node& node);
  /// A node whose input `x` moves and whose other one does not.
  Value scaled_and_shifted(const Node& node, int x);
  /// A node that does `own` to its input `x`.
  Value scaled_and_shifted(const Node& node, int x, const ScaleShift& own);
  Value clamped(const Node& node);
  Value joined(const Node& node);
  Value average(const Node& node, const Window2d& window);
  Value mean(const Node& node);
  Value looked_up(const Node& node);
  Value rearranged(const Node& node, integer::Action action);
  Value max_pool(const Node& node);
  Value reshaped(const Node& node);
  Value padded(const Node& node);
  Value cut(const Node& node);
  Value to_batch(const Node& node);
  Value to_space(const Node& node);

  Target target_of(const Node& quantizer) const;
  /// Throws Error naming the tensor if no integer model has it: statistics of a batch norm, say.
  Value& at(Output tensor);
  /// The model's tensor that a consumer reads. An op that only rearranges or clamps integers of one grid stays on it.
  /// Throws Error naming the edge where there is no grid.
  int tensor(Output read, const std::string& reader);
  int input_tensor(const Node& node, int i = 0);
  bool has_grid(const Pending& pending) const;
  bool is_of_plain_picture(Output tensor) const;

  const StaticValues& values_;
  const Output output_;
  const std::optional<integer::Grid> input_grid_;
  IntegerModelBuilder builder_;
  std::map<std::pair<const Node*, int>, Value> made_;
  bool picture_is_quantized_ = false;
};

}  // namespace miniqat::quantize
