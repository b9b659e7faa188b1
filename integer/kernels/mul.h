#pragma once

#include <array>
#include <vector>

#include "integer/kernels/pair_of_inputs.h"
#include "integer/kernels/requantization.h"
#include "integer/model.h"
#include "integer/step.h"
#include "integer/stretch.h"

namespace miniqat::integer {

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

}  // namespace miniqat::integer
