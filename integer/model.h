#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/tensors/shape.h"
#include "core/tensors/standard.h"
#include "integer/arithmetic.h"
#include "integer/ops/index_map.h"
#include "integer/ops/layer.h"
#include "integer/ops/lookup.h"
#include "integer/ops/pair.h"
#include "integer/ops/pool.h"

namespace miniqat {
class Tensor;
}

namespace miniqat::integer {

// An integer-only model: what quantize/convert/convert.h makes of a trained run, integer/engine.h runs and the
// exporters write. Plain data. All shapes are of one example; a batch puts its size before them. Images are [h, w, c].

/// A tensor of integers in [0, 2^grid.bits - 1], one byte each.
struct TensorInfo {
  /// The tensor of the evaluation graph that has the same numbers ("conv1/act_quant", "pool1/MaxPool"). Unique;
  /// printable ASCII, as are the names of operations.
  std::string name;
  Shape shape;
  Grid grid;
};

/// integer/ops/ has a file for each, or for several that are alike; action.h there says what they have in common.
using Action = std::variant<Layer, Add, Mul, Rescale, Concat, AveragePool, MaxPool, Reshape, Pad, Lookup, Slice>;

struct Operation {
  /// The evaluation graph's node that it comes from ("conv1/Conv2D_Fold").
  std::string name;
  Action action;
  /// Indices into Model::tensors.
  std::vector<int> inputs;
  int output = 0;
  /// The clamp of the output's integers; that of MaxPool, Reshape, Pad and Slice does nothing.
  Clamp clamp = {};
};

/// "Conv2D", "Add", ... for messages and files.
std::string_view type_name(const Action& action);

/// What Model::task may be, beside "".
inline constexpr std::array<std::string_view, 3> kTasksOfNumbers = {"regress", "reconstruct", "multilabel"};

struct Model {
  /// For messages and comments: UTF-8 without control characters.
  std::string name;
  /// The input first.
  std::vector<TensorInfo> tensors = {};
  /// In an order in which they can run. Every tensor but the input is the output of exactly one.
  std::vector<Operation> operations = {};
  int input = 0;
  int output = 0;
  /// One for each number of the output, where the names of these classes, labels or numbers are known: UTF-8 without
  /// control characters.
  std::vector<std::string> class_names = {};
  /// What the outputs are for, as --task names it, where they do not tell classes apart; otherwise "".
  std::string task = {};
  /// The input is numbers that were standardised, before they came to its grid: for each channel, the last axis.
  std::optional<Standard> input_standard = {};
  /// The outputs of a regression are standardised, as its targets were: for each of them.
  std::optional<Standard> output_standard = {};

  const TensorInfo& tensor(int i) const { return tensors[static_cast<std::size_t>(i)]; }
  const TensorInfo& input_of(const Operation& operation, std::size_t i = 0) const {
    return tensor(operation.inputs[i]);
  }
  const TensorInfo& output_of(const Operation& operation) const { return tensor(operation.output); }

  /// Throws Error naming the operation and the rule if the model breaks a rule of this header or of the operations':
  /// indices, shapes, sizes, ranges of integers, equal grids where a header asks for one. No sum of a layer may leave
  /// 32 bits for any input. Engine, files and exporters rely on it.
  void check() const;

  /// Bytes of all weights packed to their bits (pack()), without biases.
  std::int64_t weight_bytes() const;
  std::int64_t multiply_adds() const;
};

/// [n, shape...]
Shape batch_shape(std::int64_t n, const Shape& example);

/// The n of a batch of `info`'s examples. Throws Error unless it is [n, shape...] uint8 with n >= 1.
std::int64_t batch_size(const Tensor& batch, const TensorInfo& info);

// How weights lie in files.

/// The bytes that `count` integers of `bits` bits take, without gaps: ceil(count * bits / 8).
constexpr std::int64_t packed_size(std::int64_t count, int bits) { return (count * bits + 7) / 8; }

/// Integers of 1..8 bits as a stream. The first has the lowest bits of the first byte. One that crosses a byte's end
/// goes on in the lowest bits of the next. The rest of the last byte is 0. Two of 4 bits make a byte, low half first.
/// Values must fit the bits.
std::vector<std::uint8_t> pack(std::span<const std::uint8_t> values, int bits);

/// `count` integers from such a stream. Throws Error when `bytes` is not of packed_size(count, bits).
std::vector<std::uint8_t> unpack(std::span<const std::uint8_t> bytes, std::int64_t count, int bits);

/// A row-major matrix [rows, columns] as [columns, rows]. `rows` must divide the number of values.
std::vector<std::uint8_t> transpose(std::span<const std::uint8_t> matrix, std::int64_t rows);

}  // namespace miniqat::integer
