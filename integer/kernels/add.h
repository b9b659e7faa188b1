#pragma once

#include "integer/kernels/pair_of_inputs.h"
#include "integer/model.h"
#include "integer/step.h"

namespace miniqat::integer {

class AddStep : public Step {
 public:
  AddStep(const Model& model, const Operation& operation);
  void run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const override;

 private:
  PairOfInputs pair_;
  SharedMultipliers multipliers_;
};

}  // namespace miniqat::integer
