#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/files/safetensors.h"
#include "core/graph/graph.h"
#include "core/tensors/window.h"
#include "importers/onnx/imported_model.h"
#include "importers/onnx/literal.h"
#include "importers/onnx/node.h"

namespace miniqat::importers {

// Not for users of the library: what the ops of importers/onnx/ops_*.cpp work on.

/// The order of a matrix's columns where it is not ONNX's: our column of each of ONNX's. Empty if the order is the
/// same. Copies share the list, which may be as long as an image.
class Columns {
 public:
  Columns() = default;
  Columns(std::vector<std::int64_t> list);

  bool empty() const { return list().empty(); }
  const std::vector<std::int64_t>& list() const;
  friend bool operator==(const Columns& a, const Columns& b) { return a.list_ == b.list_ || a.list() == b.list(); }

 private:
  std::shared_ptr<const std::vector<std::int64_t>> list_;
};

/// An image [n, c, h, w] whose channels a Reshape has made [groups, c / groups], and then a Transpose [c / groups,
/// groups]: the first steps of a channel shuffle, which is imported as a whole.
struct SplitChannels {
  std::int64_t groups = 0;
  bool turned = false;
  /// Why the Reshape is refused where anything else follows.
  std::string refusal = {};
};

/// A tensor that the network computes.
struct Activation {
  Output output = {};
  /// In ONNX's order of axes, the batch first: kOpenBatch where the file leaves it open.
  std::vector<std::int64_t> extents = {};
  /// Axis i of ONNX's tensor is axis order[i] of ours; the batch is axis 0 of both. Images: {0, 3, 1, 2}. Sequences
  /// [n, c, steps] are images of width 1 here, [n, steps, 1, c]: {0, 3, 1}.
  std::vector<std::int64_t> order = {};
  Columns columns = {};
  /// Zeros around the image that a convolution shall add: they are in `extents`, not yet in `output`.
  Pads border = {0, 0, 0, 0};
  /// Still to be added, one number a channel: a batch norm, the only reader, takes it off its mean instead. Else empty.
  std::vector<float> bias = {};
  /// Groups of an image's channels that are still to be joined; `output` is then not yet there. Else empty.
  std::vector<Output> parts = {};
  /// Inside a channel shuffle; `output` is then still the image. Nothing but the shuffle's next step may take it.
  std::optional<SplitChannels> split = {};

  /// Calls body(part, group, first) for each part, whose names begin with `group` ("group0/") and whose first channel
  /// is `first`; once for a tensor without parts, with "" and 0.
  void for_each_part(const std::function<void(Output&, const std::string&, std::int64_t)>& body);
};

using Value = std::variant<Literal, Activation>;

/// Images [n, h, w, c] with zeros around them.
Output padded(Graph& graph, const std::string& name, Output images, const Pads& pads);

/// {0, 3, 1, 2}: ONNX's images in our layout.
extern const std::vector<std::int64_t> kImageOrder;
/// {0, 3, 1}: ONNX's sequences in our layout of images.
extern const std::vector<std::int64_t> kSequenceOrder;
/// Whether it is an image or a sequence in our layout.
bool is_spatial(const std::vector<std::int64_t>& order);

/// Whether ONNX's numbers of an example lie in the same order here. Axes of one number may be anywhere.
bool is_in_order(const std::vector<std::int64_t>& extents, const std::vector<std::int64_t>& order);

/// Whether the numbers of an example lie in the same places with either order of axes.
bool same_layout(const std::vector<std::int64_t>& extents, const std::vector<std::int64_t>& a,
                 const std::vector<std::int64_t>& b);

class Translation;

/// Adds to the graph what computes the node, and defines its output.
using Translate = void (*)(Translation&, const OnnxNode&);

struct ImportedOp {
  std::string_view type;
  Translate translate;
};

/// A graph while it grows out of an ONNX model, node by node.
class Translation {
 public:
  Translation(const pb::Model& model, std::int64_t opset, std::filesystem::path folder, const ImportOptions& options);

  // --- Tensors by ONNX's names.

  bool has(const OnnxNode& node, int input) const { return !node.input(input).empty(); }
  /// Throws Error when the input is left out, or nothing before the node makes it.
  const Value& value(const OnnxNode& node, int input) const;
  /// Throws Error when it is computed by the network.
  const Literal& literal(const OnnxNode& node, int input) const;
  /// A literal of integers without or with one axis.
  std::vector<std::int64_t> integers(const OnnxNode& node, int input) const;
  /// With its border, if it has one, as a Pad, and its parts joined. Throws Error when it is known, not computed.
  Activation activation(const OnnxNode& node, int input);
  /// The activation of any tensor, by its name.
  Activation activation(const OnnxNode& node, const std::string& tensor);
  /// Activations whose border stays open.
  const Activation& bordered(const OnnxNode& node, int input);
  const Activation& bordered(const OnnxNode& node, const std::string& tensor);
  /// Null where it is none, or none yet.
  const Literal* find_literal(const std::string& tensor) const;
  /// An activation whose parts stay as they are: for what treats every channel by itself.
  Activation in_parts(const OnnxNode& node, int input);
  /// An activation in parts, of images [n, c, h, w] in the order kImageOrder, or sequences [n, c, steps] in
  /// kSequenceOrder.
  Activation images(const OnnxNode& node, int input);
  /// x in these orders. Throws Error for any other tensor.
  Activation as_images(const OnnxNode& node, Activation x);
  /// Names output 0 of the node. Throws Error when the name is taken.
  void define(const OnnxNode& node, Value value) { define(node.output(0), std::move(value)); }
  void define(const std::string& name, Value value);

  // --- Neighbours.

  int readers(const std::string& tensor) const;
  /// Whether the output that is wanted is computed from the tensor; true where all are wanted.
  bool is_needed(const std::string& tensor) const { return !needed_ || needed_->contains(tensor); }
  /// Whether no node reads the tensor; if it is needed, others may that are not.
  bool is_end(const std::string& tensor) const;
  bool is_output(const std::string& tensor) const { return outputs_.contains(tensor); }
  /// The only reader of the node's first output, which is no output of the graph; null if there is none such.
  const pb::Node* only_reader(const OnnxNode& node) const;
  /// The input of a HardSwish that several nodes make, by the output of the last one.
  std::map<std::string, std::string>& hard_swishes() { return hard_swishes_; }
  /// The node that makes the tensor is not to be translated: another one does its work.
  void leave_out(const std::string& tensor, const std::string& becomes) { left_out_[tensor] = becomes; }

  // --- The graph.

  Graph& graph() { return graph_; }
  /// A free name for what the node becomes: in the scope of its parameters ("layer1/0/conv1" for
  /// "layer1.0.conv1.weight") or of its own name, with `op` behind.
  std::string scope_of(const OnnxNode& node, int parameter = -1) const;
  std::string name(const std::string& scope, const std::string& op);
  /// A variable that starts with these numbers, all finite. A trainable parameter of several nodes, in the same form,
  /// is one variable.
  Output variable(const std::string& scope, const std::string& suffix, const std::string& source, const Shape& shape,
                  std::vector<float> numbers, bool trainable = true);
  /// Our batch for ONNX's extent.
  std::int64_t batch() const { return batch_; }
  const std::filesystem::path& folder() const { return folder_; }
  const ImportOptions& options() const { return options_; }
  /// The shape of our tensor with these extents and order; sequences are images of width 1.
  Shape shape_of(const std::vector<std::int64_t>& extents, const std::vector<std::int64_t>& order) const;

  void note(const std::string& text) { notes_.push_back(text); }
  /// Instead of the names of the new nodes.
  void becomes(const std::string& text) { becomes_ = text; }

  // --- The whole model, in this order.

  void add_inputs();
  /// All nodes, whose types `table` has, and the outputs.
  void add_nodes(std::span<const ImportedOp> table);
  ImportedModel finish();

 private:
  void add_input(const pb::Value& input);
  std::vector<std::int64_t> extents_of_input(const pb::Value& input, const std::string& who, bool channels_last) const;
  bool is_of_miniqat() const { return model_.producer_name() == "miniqat"; }
  /// Whether its axes are [n, h, w, c], [n, steps, c] or [n, features].
  bool has_our_order(const pb::Value& input) const;
  /// Whether all that read a tensor first turn it from our order of axes to ONNX's. `extents`: 0 for open ones.
  bool is_turned(const std::string& tensor, const std::vector<std::int64_t>& extents) const;
  /// The integers of a constant, an initializer or a Constant node that is still to be translated. Empty for any other
  /// tensor.
  std::vector<std::int64_t> integers_to_come(const std::string& tensor) const;
  /// Whether the node is a Reshape of [n, ..., 1] to [n, 1, ...]: exporters write a Transpose of one channel so.
  bool moves_one_channel(const pb::Node& node, const std::vector<std::int64_t>& extents) const;
  ImportedNode translate(const OnnxNode& node, Translate op);
  void set_outputs();
  /// Whether an output is [n, steps, c] here. An output of one step keeps the file's [n, c, 1]; where channels are last
  /// in the file, [n, 1, m] has one step, too.
  bool is_sequence(const Activation& x) const;
  Activation output_of(const std::string& tensor, const std::string& who);
  Activation without_border(Activation x, const std::string& scope);
  const Value& named(const std::string& tensor, const std::string& who) const;
  /// Null for what is known. Throws Error for what is inside a channel shuffle.
  Activation* computed(const std::string& tensor, const std::string& who);
  void join(Activation& x);

  const pb::Model& model_;
  std::int64_t opset_;
  std::filesystem::path folder_;
  std::int64_t batch_ = 0;
  std::int64_t onnx_batch_ = 0;
  bool has_batch_ = false;
  /// Whether an input is [n, h, w, c] or [n, steps, c].
  bool channels_last_ = false;
  ImportOptions options_;
  Graph graph_;
  std::map<std::string, Value> values_;
  std::map<std::string, std::vector<const pb::Node*>> readers_;
  std::map<std::string, int> outputs_;
  /// What ImportOptions::output is computed from, and itself. None: all are wanted.
  std::optional<std::set<std::string>> needed_;
  std::map<std::string, std::string> hard_swishes_;
  std::map<std::string, std::string> left_out_;
  std::map<std::pair<std::string, std::string>, Output> shared_;
  NamedTensors variables_;
  /// In the file's order.
  std::vector<ImportedNode> nodes_;
  std::vector<std::string> notes_;
  std::string becomes_;
  /// Names given since the last node of the file.
  std::vector<std::string> names_;
};

}  // namespace miniqat::importers
