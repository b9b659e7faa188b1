#include "tests/runtimes/agreement.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "core/tensors/argmax.h"
#include "core/text/error.h"

namespace miniqat::testing {

void RuntimeAgreement::add(const Tensor& expected, std::span<const int> found) {
  const auto integers = expected.values<std::uint8_t>();
  if (found.size() != integers.size()) fail(found.size(), " outputs, not ", integers.size());
  outputs += expected.elements();
  for (std::size_t i = 0; i < found.size(); ++i) {
    equal += found[i] == integers[i];
    largest = std::max(largest, std::abs(found[i] - integers[i]));
  }
  const std::int64_t n = expected.shape()[0];
  const std::size_t classes = found.size() / n;
  examples += n;
  for (std::size_t first = 0; first < found.size(); first += classes)
    same_class += argmax(found.subspan(first, classes)) == argmax(integers.subspan(first, classes));
}

void print(const std::string& what, const RuntimeAgreement& agreement) {
  std::printf("  %-30s %8ld outputs, %8.4f%% equal, at most %d apart; same class in %ld of %ld\n", what.c_str(),
              static_cast<long>(agreement.outputs), 100 * agreement.share(), agreement.largest,
              static_cast<long>(agreement.same_class), static_cast<long>(agreement.examples));
}

}  // namespace miniqat::testing
