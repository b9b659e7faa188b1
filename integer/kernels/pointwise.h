#pragma once

#include <array>
#include <vector>

#include "integer/kernels/requantization.h"
#include "integer/model.h"
#include "integer/step.h"
#include "integer/stretch.h"

namespace miniqat::integer {

/// What becomes of each byte.
using ByteTable = std::array<std::uint8_t, 256>;

/// y[i] = table[x[i]]
void look_up(const ByteTable& table, const std::uint8_t* x, std::int64_t n, std::uint8_t* y);

/// The grids of two inputs and of the output.
struct PairOfInputs {
  PairOfInputs(const Model& model, const Operation& operation);

  /// Elements of an example, of the output.
  std::int64_t size;
  std::array<std::int32_t, 2> zero_points;
  /// The output's.
  std::int32_t zero_point;
  Clamp clamp;
};

class AddStep : public Step {
 public:
  AddStep(const Model& model, const Operation& operation);
  void run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const override;

 private:
  PairOfInputs pair_;
  SharedMultipliers multipliers_;
};

class MulStep : public Step {
 public:
  MulStep(const Model& model, const Operation& operation);
  void run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const override;

 private:
  void run_stretched(std::int64_t n, const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* output) const;

  PairOfInputs pair_;
  RequantizationFactors factors_;
  /// Of inputs that differ in shape; then `swaps_` if the first is the one that is stretched along rows.
  std::int64_t row_ = 0;
  std::vector<StretchedPair::Places> rows_;
  std::array<std::int64_t, 2> sizes_;
  bool swaps_ = false, by_one_ = false;
};

/// Inputs one behind another along an axis, each through a table of its own; one input on its own is Rescale.
class ConcatStep : public Step {
 public:
  ConcatStep(const Model& model, const Operation& operation, std::span<const Multiplier> multipliers, int axis);
  void run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const override;

 private:
  struct Part {
    /// Contiguous bytes at a time, and where in the output's row they begin.
    std::int64_t size, first;
    ByteTable table;
    /// The table changes nothing.
    bool copies;
  };
  std::vector<Part> parts_;
  /// Rows of an example.
  std::int64_t blocks_ = 1;
  std::int64_t row_ = 0;
};

class PadStep : public Step {
 public:
  PadStep(const Model& model, const Operation& operation);
  void run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const override;

 private:
  std::int64_t input_size_, output_size_;
  /// The input's innermost rows, one behind another: where each begins in the output.
  std::vector<std::int64_t> places_;
  std::int64_t row_;
  std::uint8_t zero_point_;
};

/// The same bytes.
class CopyStep : public Step {
 public:
  explicit CopyStep(std::int64_t size) : size_(size) {}
  void run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const override;

 private:
  std::int64_t size_;
};

}  // namespace miniqat::integer
