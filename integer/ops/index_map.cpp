#include "integer/ops/index_map.h"

#include <cstring>
#include <optional>

#include "core/threads/parallel.h"
#include "integer/kernels/byte_table.h"
#include "integer/ops/operation_check.h"

namespace miniqat::integer {

void Reshape::check(const OperationCheck& rules) const {
  rules.require_inputs(1);
  rules.require_one_grid();
  const Shape &from = rules.input().shape, &to = rules.output().shape;
  rules.require(from.elements() == to.elements(), "makes ", to, " of ", from);
}

void Pad::check(const OperationCheck& rules) const {
  rules.require_inputs(1);
  rules.require_one_grid();
  const Shape& shape = rules.input().shape;
  rules.require(static_cast<int>(paddings.size()) == shape.rank(), "takes one pair of paddings an axis");
  std::vector<std::int64_t> padded = shape.to_vector();
  for (std::size_t axis = 0; axis < padded.size(); ++axis) {
    const auto& [before, after] = paddings[axis];
    rules.require(before >= 0 && before <= kLargestExtent && after >= 0 && after <= kLargestExtent,
                  "has a padding out of 0..", kLargestExtent);
    padded[axis] += before + after;
  }
  rules.require_output_shape(padded);
}

void Slice::check(const OperationCheck& rules) const {
  rules.require_inputs(1);
  rules.require_one_grid();
  const Shape &from = rules.input().shape, &to = rules.output().shape;
  const auto rank = static_cast<std::size_t>(from.rank());
  rules.require(starts.size() == rank && steps.size() == rank, "takes one start and one step an axis");
  rules.require(to.rank() == from.rank(), "makes ", to, " of ", from);
  for (int axis = 0; axis < from.rank(); ++axis) {
    const std::int64_t start = starts[axis], step = steps[axis];
    rules.require(start >= 0 && start < from[axis], "begins at ", start, " of an axis of ", from[axis]);
    rules.require(step >= 1 && step <= kLargestExtent, "has a step of ", step, ", not in 1..", kLargestExtent);
    rules.require(to[axis] - 1 <= (from[axis] - 1 - start) / step, "makes ", to, " of ", from,
                  ", of which it keeps less");
  }
}

void Concat::check(const OperationCheck& rules) const {
  const Shape& to = rules.output().shape;
  rules.require(rules.inputs() > 0, "takes at least one input");
  rules.require(multipliers.size() == rules.inputs(), "takes one multiplier an input");
  rules.require(axis >= 0 && axis < to.rank(), "joins along axis ", axis, " of ", to);
  for (const Multiplier& multiplier : multipliers) rules.require_multiplier(multiplier);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < rules.inputs(); ++i) {
    const Shape& from = rules.input(i).shape;
    bool fits = from.rank() == to.rank();
    for (int other = 0; fits && other < to.rank(); ++other) fits = other == axis || from[other] == to[other];
    rules.require(fits, "joins ", from, " into ", to);
    sum += from[axis];
  }
  rules.require(sum == to[axis], "joins inputs of ", sum, " in all into ", to);
}

namespace {

/// The integers of a part in runs, one behind another, and where each run begins in the whole.
struct Runs {
  std::vector<std::int64_t> starts;
  std::int64_t length = 1;
  /// Between neighbours of a run, in the whole.
  std::int64_t step = 1;
};

/// Index i along an axis of the part is start + i * step in the whole.
Runs runs_of(const Shape& part, const Shape& whole, std::span<const std::int64_t> starts,
             std::span<const std::int64_t> steps) {
  const int rank = part.rank();
  std::vector<std::int64_t> strides(static_cast<std::size_t>(rank), 1);
  for (int axis = rank - 2; axis >= 0; --axis) strides[axis] = strides[axis + 1] * whole[axis + 1];
  const auto step_of = [&](int axis) { return part[axis] == 1 ? 1 : steps[axis]; };
  Runs runs;
  if (rank > 0) runs.step = step_of(rank - 1);
  // Behind a whole axis the next one goes on.
  int outer = rank;
  for (bool goes_on = true; outer > 0 && goes_on && (outer == rank || step_of(outer - 1) == 1);) {
    --outer;
    runs.length *= part[outer];
    goes_on = part[outer] == whole[outer];
  }
  std::int64_t first = 0;
  for (int axis = 0; axis < rank; ++axis) first += starts[axis] * strides[axis];
  runs.starts.push_back(first);
  // Every axis repeats what lies within it.
  for (int axis = outer - 1; axis >= 0; --axis) {
    const std::size_t within = runs.starts.size();
    for (std::int64_t i = 1; i < part[axis]; ++i)
      for (std::size_t k = 0; k < within; ++k) runs.starts.push_back(runs.starts[k] + i * steps[axis] * strides[axis]);
  }
  return runs;
}

struct Part {
  Runs runs;
  ByteTable table;
  /// Elements of the input, of an example.
  std::int64_t size;
};

/// Inputs are parts of the output, or the output is a part of the input (`gathers`).
struct Moves {
  /// All have as many runs.
  std::vector<Part> parts;
  /// Elements of an example.
  std::int64_t output_size;
  bool gathers = false;
  /// What lies between the runs of a single part.
  std::optional<std::uint8_t> border = {};

  void operator()(std::int64_t n, StepInputs inputs, std::uint8_t* output) const {
    const std::int64_t runs = std::ssize(parts[0].runs.starts);
    parallel_for(n * runs, 4 * kPointwiseGrain * runs / output_size + 1, [&](std::int64_t begin, std::int64_t end) {
      while (begin < end) {
        const std::int64_t image = begin / runs, first = begin % runs, last = std::min(runs, first + end - begin);
        for (std::size_t k = 0; k < parts.size(); ++k)
          move(parts[k], inputs[k] + image * parts[k].size, output + image * output_size, first, last);
        begin += last - first;
      }
    });
  }
  void move(const Part& part, const std::uint8_t* x, std::uint8_t* y, std::int64_t first, std::int64_t last) const {
    const auto& [starts, length, step] = part.runs;
    for (std::int64_t i = first; i < last; ++i) {
      const std::uint8_t* from = x + (gathers ? starts[i] : i * length);
      std::uint8_t* to = y + (gathers ? i * length : starts[i]);
      if (step == 1)
        part.table.run(from, length, to);
      else
        for (std::int64_t k = 0; k < length; ++k) to[k] = from[k * step];
      if (border) fill_around(part.runs, i, y);
    }
  }
  /// From the run to the next one or the end, and before the first.
  void fill_around(const Runs& runs, std::int64_t i, std::uint8_t* y) const {
    const std::int64_t end = runs.starts[i] + runs.length;
    const std::int64_t next = i + 1 < std::ssize(runs.starts) ? runs.starts[i + 1] : output_size;
    if (i == 0) std::memset(y, *border, runs.starts[0]);
    std::memset(y + end, *border, next - end);
  }
};

}  // namespace

Step Reshape::make_step(const Model&, const Operation&) const { return nullptr; }

Step Pad::make_step(const Model& model, const Operation& operation) const {
  const Shape &from = model.input_of(operation).shape, &to = model.output_of(operation).shape;
  std::vector<std::int64_t> before;
  for (const auto& pair : paddings) before.push_back(pair[0]);
  const std::vector<std::int64_t> ones(before.size(), 1);
  return Moves{.parts = {{.runs = runs_of(from, to, before, ones), .table = {}, .size = from.elements()}},
               .output_size = to.elements(),
               .border = static_cast<std::uint8_t>(model.output_of(operation).grid.zero_point)};
}

Step Slice::make_step(const Model& model, const Operation& operation) const {
  const Shape &from = model.input_of(operation).shape, &to = model.output_of(operation).shape;
  return Moves{.parts = {{.runs = runs_of(to, from, starts, steps), .table = {}, .size = from.elements()}},
               .output_size = to.elements(),
               .gathers = true};
}

Step Concat::make_step(const Model& model, const Operation& operation) const {
  const TensorInfo& y = model.output_of(operation);
  std::vector<std::int64_t> first(static_cast<std::size_t>(y.shape.rank()), 0);
  const std::vector<std::int64_t> ones(first.size(), 1);
  Moves moves = {.parts = {}, .output_size = y.shape.elements()};
  for (std::size_t k = 0; k < operation.inputs.size(); ++k) {
    const TensorInfo& x = model.input_of(operation, k);
    moves.parts.push_back({.runs = runs_of(x.shape, y.shape, first, ones),
                           .table = ByteTable(x.grid, multipliers[k], y.grid, operation.clamp),
                           .size = x.shape.elements()});
    first[axis] += x.shape[axis];
  }
  return moves;
}

}  // namespace miniqat::integer
