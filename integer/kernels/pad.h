#pragma once

#include <vector>

#include "integer/model.h"
#include "integer/step.h"

namespace miniqat::integer {

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

}  // namespace miniqat::integer
