#include "cli/print_error.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "cli/with_flags.h"
#include "core/text/quote.h"
#include "distributed/launch.h"

namespace miniqat::cli {

void print_error(const std::string& who, const std::string& text) {
  if (const int rank = distributed::launched_rank(); rank > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2000 + 100 * std::min(rank, 20)));
    std::fprintf(stderr, "rank %d: ", rank);
  }
  std::fprintf(stderr, "%s: %s\n", who.c_str(), printable(with_flags(text)).c_str());
}

}  // namespace miniqat::cli
