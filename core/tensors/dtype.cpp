#include "core/tensors/dtype.h"

#include <array>
#include <cmath>
#include <vector>

#include "core/text/error.h"
#include "core/text/suggest.h"

namespace miniqat {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  std::size_t bytes;
};
constexpr std::array<Row, 6> kRows = {{{DType::kFloat32, "float32", 4},
                                       {DType::kFloat64, "float64", 8},
                                       {DType::kInt64, "int64", 8},
                                       {DType::kInt32, "int32", 4},
                                       {DType::kInt8, "int8", 1},
                                       {DType::kUInt8, "uint8", 1}}};

}  // namespace

std::size_t byte_size(DType dtype) { return kRows[static_cast<std::size_t>(dtype)].bytes; }

std::string_view name_of(DType dtype) { return kRows[static_cast<std::size_t>(dtype)].name; }

DType dtype_from_name(std::string_view name) {
  for (const Row& row : kRows)
    if (row.name == name) return row.dtype;
  std::vector<std::string_view> names;
  for (const Row& row : kRows) names.push_back(row.name);
  fail_unknown("dtype", name, names);
}

void require_float32(double value, std::string_view name) {
  // The comparison is false for a NaN.
  if (!(std::abs(value) <= std::numeric_limits<float>::max()))
    fail(name, " must be a finite float32 number, is ", value);
}

}  // namespace miniqat
