#include "datasets/hold_out.h"

#include <vector>

#include "core/error.h"
#include "core/text/counted.h"

namespace miniqat::datasets {

Splits hold_out(const Splits& splits, std::int64_t n) {
  const std::int64_t size = splits.train.size();
  if (n < 0 || n >= size)
    fail("cannot hold ", counted(n, "example"), " of ", size, " out of training: 0 to ", size - 1, " can be");
  if (n == 0) return splits;
  std::vector<std::int64_t> held, left;
  for (std::int64_t example = 0; example < size; ++example) {
    const bool is_next = std::ssize(held) < n && example == std::ssize(held) * size / n;
    (is_next ? held : left).push_back(example);
  }
  return {.train = examples_at(splits.train, left), .test = splits.test, .validation = examples_at(splits.train, held)};
}

Splits split_off_test(const Dataset& all) {
  constexpr std::int64_t kEvery = 6;
  std::vector<std::int64_t> seen(all.classes), held, left;
  const auto labels = all.labels.values<std::int32_t>();
  for (std::int64_t example = 0; example < all.size(); ++example)
    (++seen[labels[example]] % kEvery == 0 ? held : left).push_back(example);
  if (held.empty())
    fail("data set ", all.name, ": each class has fewer than ", kEvery,
         " pictures, too few to hold test pictures out; add pictures or a test/ folder");
  return {.train = examples_at(all, left), .test = examples_at(all, held)};
}

}  // namespace miniqat::datasets
