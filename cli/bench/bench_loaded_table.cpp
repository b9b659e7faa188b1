#include <cstdio>

#include "benchmarks/suite/steps/bench_loaded.h"
#include "cli/bench/bench_modes.h"
#include "cli/interrupt.h"

namespace miniqat::cli {

void print_loaded(const std::vector<std::string>& models, double seconds_a_model) {
  const InterruptGuard interrupts;
  std::printf("\n%-14s %-14s %10s %10s %8s\n", "training W8A8", "neighbours", "images/s", "1 thread", "of bar");
  for (const std::string& model : models)
    for (const benchmarks::LoadedSpeed& row : benchmarks::bench_loaded(model, seconds_a_model, InterruptGuard::check)) {
      std::printf("%-14s %-14s %10.0f %10.0f", row.model.c_str(), row.neighbours.c_str(), row.all_threads,
                  row.one_thread);
      if (row.of_bar > 0) std::printf(" %8.2f", row.of_bar);
      std::printf("\n");
      std::fflush(stdout);
    }
  std::printf(
      "\nneighbours: an endless loop for each core; the bar: half the speed without them, or one thread beside them,\n"
      "whichever is more\n");
}

}  // namespace miniqat::cli
