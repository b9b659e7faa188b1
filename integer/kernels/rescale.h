#pragma once

#include "integer/kernels/lookup.h"
#include "integer/model.h"
#include "integer/step.h"

namespace miniqat::integer {

/// The integers of one grid on another.
class RescaleTable {
 public:
  RescaleTable(const Grid& from, const Multiplier& multiplier, const Grid& to, const Clamp& clamp);

  void run(const std::uint8_t* x, std::int64_t n, std::uint8_t* y) const;

 private:
  ByteTable table_;
  /// The table changes nothing.
  bool copies_ = true;
};

class RescaleStep : public Step {
 public:
  RescaleStep(const Model& model, const Operation& operation);
  void run(std::int64_t n, std::span<const std::uint8_t* const> inputs, std::uint8_t* output) const override;

 private:
  RescaleTable table_;
  /// Elements of an example.
  std::int64_t size_;
};

}  // namespace miniqat::integer
