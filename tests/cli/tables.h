#pragma once

#include <string>

#include "core/text/error.h"
#include "tests/temp_dir.h"

namespace miniqat::testing {

/// Tables of 120 rows: of two numbers their `sum` (sums.csv), and whether they are above 0, `up` and `right`
/// (flags.csv).
inline void write_tables(const TempDir& place) {
  std::string sums = "a,b,sum\n", flags = "a,b,up,right\n";
  for (int i = 0; i < 120; ++i) {
    const double a = (i * 7 % 31 - 15) / 10.0, b = (i * 11 % 29 - 14) / 10.0;
    sums += concat(a, ",", b, ",", 20 + 3 * a - b, "\n");
    flags += concat(a, ",", b, ",", b > 0 ? 1 : 0, ",", a > 0 ? 1 : 0, "\n");
  }
  place.write("sums.csv", sums);
  place.write("flags.csv", flags);
}

}  // namespace miniqat::testing
