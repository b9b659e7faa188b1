#include "bench/operation.h"

#include <algorithm>

#include "core/text/error.h"

namespace miniqat::bench {
namespace {

// fake_quantize: two comparisons, -, /, +, floor, - (or +), *. Its mask: two comparisons and an "and" more. A learned
// range's gradient: that, y - x, the product with dy, and three sums.
constexpr OperationTraits kOperations[] = {
    {Operation::kMemcpy, false, "memcpy", {.copied_bytes = 8}, "the C library's memcpy, the limit of copying"},
    {Operation::kRead, false, "read", {.read_bytes = 4}, "a pass that only reads"},
    {Operation::kForward, true, "forward", {8, 0, 8, 1}, "y = fake_quantize(x)"},
    {Operation::kForwardInPlace, true, "forward_in_place", {8, 0, 8, 1}, "x = fake_quantize(x)"},
    {Operation::kForwardMask,
     true,
     "forward_mask",
     {8.125, 0, 11, 1},
     "forward, and a mask of where the gradient passes"},
    {Operation::kObserveForward, true, "observe_forward", {8, 4, 10, 1}, "minimum and maximum, then forward"},
    {Operation::kBackward, false, "backward", {8.125, 0, 1, 0}, "dx by the mask"},
    {Operation::kBackwardLearned,
     true,
     "backward_learned",
     {8, 4, 16, 1},
     "dx from x, and the gradients of both ends of a learned range"},
};

}  // namespace

std::span<const OperationTraits> operations() { return kOperations; }

const OperationTraits& traits_of(Operation operation) { return kOperations[static_cast<std::size_t>(operation)]; }

std::optional<Operation> find_operation(std::string_view name) {
  const auto* found = std::ranges::find(kOperations, name, &OperationTraits::name);
  if (found == std::end(kOperations)) return std::nullopt;
  return found->operation;
}

bool can_do(const fake_quant_kernel& kernel, Operation operation) {
  switch (operation) {
    case Operation::kMemcpy:
    case Operation::kRead:
      return false;
    case Operation::kForward:
    case Operation::kForwardInPlace:
      return kernel.forward != nullptr;
    case Operation::kForwardMask:
      return kernel.forward_mask != nullptr;
    case Operation::kObserveForward:
      return kernel.forward != nullptr && kernel.min_max != nullptr;
    case Operation::kBackward:
      return kernel.forward_mask != nullptr && kernel.backward_mask != nullptr;
    case Operation::kBackwardLearned:
      return kernel.backward_learned != nullptr;
  }
  return false;
}

std::string BenchCase::layout() const {
  // The mask alone says it: there is one for the tensor.
  if (operation == Operation::kBackward) return "per tensor";
  if (!has_grid()) return "";
  return channels == 1 ? "per tensor" : "per channel";
}

std::string BenchCase::text() const {
  const std::string where = layout();
  std::string text(traits_of(operation).name);
  if (!where.empty()) text += " " + where;
  if (has_grid()) text += concat(", ", bits, " bits");
  return concat(text, ", ", counted(elements, "element"));
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

}  // namespace miniqat::bench
