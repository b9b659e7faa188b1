#pragma once

#include <cmath>
#include <string>
#include <vector>

namespace miniqat::datasets {

/// What the numbers of a column lose when they become floats of 32 bits. Floats near 1.7e9, where the seconds of this
/// time lie, are 128 apart, and subtracting the mean afterwards brings nothing back.
class FloatRounding {
 public:
  /// Returns the float.
  float kept(double value) { return kept(value, static_cast<float>(value)); }
  /// The same for integers of 64 bits, whose float is not always that of their double.
  float kept(double value, float as_float);
  /// Takes those of the same column in another table.
  void join(const FloatRounding& other);

  /// `numbers from 1700000000 to 1700000299 are rounded by up to 64 to floats of 32 bits, 21% of their range`; "" up to
  /// a thousandth, and where all numbers are equal but for the last digits of a double.
  std::string loss() const;

 private:
  double least_ = INFINITY, greatest_ = -INFINITY, moved_ = 0;
};

/// Puts a note on the first column with a loss, and on how many others have one, behind `notes`. `kind` is "column",
/// say. Without names the columns are called 0, 1, ...; one alone is not named then.
void note_float_rounding(const std::string& source, const std::string& kind, const std::vector<FloatRounding>& columns,
                         const std::vector<std::string>& names, std::vector<std::string>& notes);

}  // namespace miniqat::datasets
