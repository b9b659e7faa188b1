#include "benchmarks/suite/bench_case.h"

#include <algorithm>

#include "core/error.h"

namespace miniqat::benchmarks {

std::string BenchCase::layout() const {
  // By the mask alone: there is one for the tensor.
  if (operation == Operation::kBackward) return "per tensor";
  if (!has_grid()) return "";
  return channels == 1 ? "per tensor" : "per channel";
}

std::string BenchCase::text() const {
  const std::string where = layout();
  std::string text(traits_of(operation).name);
  if (!where.empty()) text += " " + where;
  if (has_grid()) text += concat(", ", bits, " bits");
  return concat(text, ", ", elements, " elements");
}

std::vector<BenchCase> cases_of(const CaseChoice& choice, std::int64_t elements) {
  std::vector<BenchCase> cases = {{Operation::kMemcpy, 8, 1, elements}, {Operation::kRead, 8, 1, elements}};
  std::vector<Operation> without_grid;
  for (const std::int64_t channels : choice.channels)
    for (const int bits : choice.bits)
      for (const Operation operation : choice.operations) {
        const bool has_grid = traits_of(operation).has_grid;
        if (is_limit(operation) || (!has_grid && std::ranges::count(without_grid, operation) != 0)) continue;
        if (!has_grid) without_grid.push_back(operation);
        cases.push_back({operation, has_grid ? bits : 8, has_grid ? channels : 1, elements});
      }
  return cases;
}

}  // namespace miniqat::benchmarks
