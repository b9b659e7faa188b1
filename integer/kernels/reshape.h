#pragma once

#include "integer/step.h"

namespace miniqat::integer {

/// The same bytes.
class ReshapeStep : public Step {
 public:
  /// `elements` of an example.
  explicit ReshapeStep(std::int64_t elements) : elements_(elements) {}
  void run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const override;

 private:
  std::int64_t elements_;
};

}  // namespace miniqat::integer
