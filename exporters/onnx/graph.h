#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/files/safetensors.h"
#include "core/graph/graph.h"
#include "core/tensors/window.h"
#include "exporters/properties.h"
#include "formats/onnx/onnx.pb.h"
#include "integer/arithmetic.h"
#include "integer/model.h"

namespace miniqat::exporters {

// Not for users of the library: what the exporters of ONNX put a file together with. ONNX wants images as
// [n, c, h, w]; ours are [n, h, w, c]. Every tensor of four axes, the batch among them, is taken for images.

using OnnxAttribute = std::pair<std::string, std::variant<std::int64_t, std::vector<std::int64_t>, float>>;

/// An ONNX model while it is written. Tensors are known by their names, each of which is given once.
class OnnxGraph {
 public:
  /// Begins a model of the opset asked for; without one, of the lowest that holds what is written, and of the IR
  /// version that goes with it. Throws Error for an opset that cannot be written.
  OnnxGraph(const std::string& name, std::optional<std::int64_t> opset);

  /// The file's opset so far.
  std::int64_t opset() const { return model_.opset_import(0).version(); }
  /// Whether what came with this opset may be written.
  bool may_hold(std::int64_t opset) const { return !asked_ || *asked_ >= opset; }
  /// What comes next takes this opset. Throws Error, which begins with `what`, where a lower one is asked for.
  void require(std::int64_t opset, const std::string& what);

  /// A tensor's name: `wish`, with a number behind it if that is taken.
  std::string unique(const std::string& wish);

  /// An input or output [batch, extents...], the batch's size left open. Returns its name.
  std::string input(const std::string& wish, pb::ElementType type, std::span<const std::int64_t> extents);
  /// `name` is that of a tensor that is there.
  void output(const std::string& name, pb::ElementType type, std::span<const std::int64_t> extents);

  /// A constant out of little-endian, row-major bytes. Returns its name.
  std::string constant(const std::string& wish, pb::ElementType type, std::span<const std::int64_t> extents,
                       std::string bytes);
  /// Constants of whole elements: a list, and a single one without axes.
  template <class T>
  std::string list(const std::string& wish, pb::ElementType type, std::span<const T> values) {
    const std::int64_t extents[] = {static_cast<std::int64_t>(values.size())};
    return constant(wish, type, extents, bytes_of(values));
  }
  template <class T>
  std::string scalar(const std::string& wish, pb::ElementType type, T value) {
    return constant(wish, type, {}, bytes_of(std::span<const T>(&value, 1)));
  }

  std::string integers(const std::string& wish, const std::vector<std::int64_t>& values) {
    return list<std::int64_t>(wish, pb::INT64, values);
  }

  /// A node with one output, which is called `wish` if possible. Returns the output's name.
  std::string node(const std::string& type, const std::vector<std::string>& inputs, const std::string& wish,
                   const std::vector<OnnxAttribute>& attributes = {});

  std::string transpose(const std::string& x, const std::string& wish, const std::vector<std::int64_t>& axes) {
    return node("Transpose", {x}, wish, {{"perm", axes}});
  }

  /// Remarks in the file: any, and the grid on which a tensor's integers stand ("input_scale", "input_zero_point").
  void property(const std::string& key, const std::string& value);
  void grid(const std::string& tensor, const integer::Grid& grid);
  void add(const Properties& properties);

  /// The file. Throws Error where it would be larger than `most`, the 2 GiB of its format.
  std::string bytes(std::size_t most = std::numeric_limits<std::int32_t>::max()) const;

  template <class T>
  static std::string bytes_of(std::span<const T> values) {
    return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
  }

 private:
  void set_opset(std::int64_t opset);

  std::optional<std::int64_t> asked_;
  pb::Model model_;
  std::set<std::string> names_;
};

inline const std::vector<std::int64_t> kToChannelsFirst = {0, 3, 1, 2};
inline const std::vector<std::int64_t> kToChannelsLast = {0, 2, 3, 1};

/// The place in ONNX's tensor of axis `axis` of ours, of `rank` axes with the batch.
std::int64_t onnx_axis(int rank, std::int64_t axis);

/// What is put before each axis in ONNX's order, and then behind each, for ours with the batch.
std::vector<std::int64_t> onnx_pads(const std::vector<std::array<std::int64_t, 2>>& paddings);

/// The rows, or columns, behind those that the last window sees; negative: how far it reaches over the image.
std::int64_t unread(const WindowAxis& axis);

/// kernel_shape, strides and pads. ONNX derives the number of windows, rounding down: the pads give exactly those that
/// there are, if fewer than a stride of rows and columns is unread.
std::vector<OnnxAttribute> window_attributes(const Window2d& window);

/// The attributes of window_attributes(), and dilations.
std::vector<OnnxAttribute> dilated_window_attributes(const Window2d& window);

/// Whether a tensor is a Variable or a Constant.
bool is_parameter(const Output& tensor);

/// The variables and constants of a float network as ONNX's constants. Each is written once in each form, under its
/// name with '.' for '/', from which the importer makes the name again.
class Parameters {
 public:
  Parameters(OnnxGraph& graph, const NamedTensors& variables) : graph_(graph), variables_(variables) {}

  /// A variable as it is.
  std::string plain(const Output& tensor) { return written(tensor, "", {}); }
  /// A filter [kh, kw, in, out] as [out, in, kh, kw].
  std::string filter(const Output& tensor) { return written(tensor, "filter", {3, 2, 0, 1}); }
  /// A depthwise filter [kh, kw, in, multiplier] as [in * multiplier, 1, kh, kw].
  std::string depthwise_filter(const Output& tensor);
  /// To be combined with a tensor of `rank` axes: for images as [n, c, h, w], or a part of these axes.
  std::string operand(const Output& tensor, int rank);

 private:
  /// With its axes, of which it has as many, in that order (as they are where `axes` is empty), under other extents if
  /// some are given.
  std::string written(const Output& tensor, const std::string& form, const std::vector<std::int64_t>& axes,
                      std::vector<std::int64_t> extents = {});

  OnnxGraph& graph_;
  const NamedTensors& variables_;
  /// Names by node and form.
  std::map<std::pair<const Node*, std::string>, std::string> names_;
};

/// A layer's integers with real = unit scale * (integer - zero point); 4-bit ones are to be taken 2^weight_shift()
/// times.
struct OnnxWeights {
  pb::ElementType type = pb::UINT8;
  /// [out, in / group, kh, kw] of convolutions, [in, out] of fully connected layers.
  std::vector<std::int64_t> extents = {};
  /// Row-major; two integers of 4 bits a byte, the first in the low half.
  std::string bytes = {};
  /// The zero points, integers of 8 bits, one for each weight scale.
  std::string zero_points = {};

  bool packed() const { return type == pb::UINT4 || type == pb::INT4; }
  /// The type of 8 bits that holds the same values.
  pb::ElementType unpacked() const { return type == pb::UINT4 ? pb::UINT8 : type == pb::INT4 ? pb::INT8 : type; }
  /// Where the output channels are.
  std::int64_t channel_axis() const { return extents.size() == 2 ? 1 : 0; }
};

/// Weights of 4 bits and fewer in 4 bits if `packed_4_bits`, others in 8. Signed and without zero point where all fit,
/// for which runtimes have their fastest kernels; with their zero points otherwise.
OnnxWeights onnx_weights(const integer::Layer& layer, bool packed_4_bits);

}  // namespace miniqat::exporters
