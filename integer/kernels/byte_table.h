#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "integer/arithmetic.h"

namespace miniqat::integer {

/// What becomes of each byte.
class ByteTable {
 public:
  /// Each stays what it is.
  ByteTable();
  /// results[x]; of bytes behind them the last again.
  explicit ByteTable(std::span<const std::uint8_t> results);
  /// The integers of one grid on another.
  ByteTable(const Grid& from, const Multiplier& multiplier, const Grid& to, const Clamp& clamp);

  /// y[i] = table[x[i]]
  void run(const std::uint8_t* x, std::int64_t n, std::uint8_t* y) const;

 private:
  bool changes_nothing() const;

  std::array<std::uint8_t, 256> results_;
  bool copies_;
};

}  // namespace miniqat::integer
