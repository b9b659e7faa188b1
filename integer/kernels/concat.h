#pragma once

#include <vector>

#include "integer/kernels/rescale.h"
#include "integer/model.h"
#include "integer/step.h"

namespace miniqat::integer {

/// Inputs one behind another along an axis, each on the output's grid.
class ConcatStep : public Step {
 public:
  ConcatStep(const Model& model, const Operation& operation);
  void run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const override;

 private:
  struct Part {
    /// Contiguous bytes at a time, and where in the output's row they begin.
    std::int64_t size, first;
    RescaleTable table;
  };
  std::vector<Part> parts_;
  /// Rows of an example.
  std::int64_t blocks_ = 1;
  std::int64_t row_ = 0;
};

}  // namespace miniqat::integer
