// `bench --loaded`: training beside busy processes.

#include <cstdio>

#include "benchmarks/suite/results/bench_json.h"
#include "cli/bench/bench_modes.h"
#include "cli/interrupt.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/text/json.h"
#include "training/settings/usage_error.h"

namespace miniqat::cli {

using namespace training;

namespace {

using Json = nlohmann::ordered_json;

constexpr double kThoroughModel = 60, kQuickModel = 6;

std::vector<std::string> loaded_models(const BenchArguments& arguments) {
  return arguments.models.empty() ? std::vector<std::string>{"lenet5"} : arguments.models;
}

void measure_loaded(const BenchRun& run, Json& result) {
  const InterruptGuard interrupts;
  char line[120];
  std::snprintf(line, sizeof line, "\n%-14s %-14s %7s %10s %10s %8s\n", "training W8A8", "neighbours", "threads",
                "images/s", "1 thread", "of bar");
  run.print(line);
  for (const std::string& model : loaded_models(run.arguments)) {
    run.tell("training steps of " + model + " beside busy processes");
    for (const benchmarks::LoadedSpeed& row :
         benchmarks::bench_loaded(model, run.arguments.quick ? kQuickModel : kThoroughModel, InterruptGuard::check)) {
      const Json json = benchmarks::loaded_json(row);
      std::snprintf(line, sizeof line, "%-14s %-14s %7d %10.0f %10.0f", row.model.c_str(), row.neighbours.c_str(),
                    row.threads, json["images_per_second"].get<double>(), json["one_thread"].get<double>());
      run.print(line);
      std::snprintf(line, sizeof line, " %8.2f", json.value("of_bar", 0.0));
      run.print(concat(json.contains("of_bar") ? line : "", "\n"));
      result["loaded"].push_back(json);
      run.note_disturbance(row.disturbance, concat("training steps of ", model, ", neighbours: ", row.neighbours),
                           {{"model", model}, {"neighbours", row.neighbours}}, result);
      run.save(result);
    }
  }
  run.print(
      "\nneighbours: an endless loop for each core; the bar: half the speed without them, or one thread beside them,\n"
      "whichever is more\n");
}

}  // namespace

BenchMeasurement prepare_loaded(const BenchRun& run) {
  require_models(loaded_models(run.arguments));
  if (run.threads.size() != 1 || run.threads.front() < 2)
    throw UsageError(concat("--threads: --loaded compares several threads with one, so it takes one number above 1",
                            run.arguments.threads.empty() ? "; by default there would be 1" : ""));
  return [&run](Json& result) { measure_loaded(run, result); };
}

}  // namespace miniqat::cli
