// The training steps' part of `bench`: alone, and with --loaded beside busy processes.

#include <algorithm>
#include <cstdio>

#include "bench/results/result_file.h"
#include "bench/training_steps.h"
#include "cli/bench/bench_modes.h"
#include "cli/process.h"
#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/suggest.h"
#include "core/threads/parallel.h"
#include "models/models.h"
#include "training/settings/usage_error.h"

namespace miniqat::cli {

using namespace training;

namespace {

using Json = nlohmann::ordered_json;

/// Throws UsageError for an unknown one among the names of --models.
void require_models(const std::vector<std::string>& names) {
  const std::vector<std::string> known = models::model_names();
  for (const std::string& name : names)
    if (std::ranges::find(known, name) == known.end())
      throw UsageError(concat("--models: ", unknown_name("model", name, known)));
}

constexpr double kThoroughSteps = 55, kQuickSteps = 5;

std::vector<std::string> models_of(const BenchArguments& arguments) {
  if (!arguments.models.empty()) return arguments.models;
  if (arguments.quick) return {"lenet", "lenet5"};
  return {"lenet", "lenet5", "mobilenet_v1"};
}

void measure_model(const BenchRun& run, const std::string& model, double seconds, Json& result) {
  run.tell("training steps of " + model);
  const std::int64_t batch_size = run.arguments.batch_size;
  const bench::ModelTimes times = bench::bench_steps(model, batch_size, seconds);
  const std::int64_t batch = times.rows.front().batch;
  if (batch < batch_size)
    std::fprintf(stderr, "miniqat bench: batches of %ld would take too long; %s is measured with %ld\n",
                 static_cast<long>(batch_size), model.c_str(), static_cast<long>(batch));
  for (const bench::StepTime& row : times.rows) {
    const bench::Spread& ratio = row.over_float;
    const std::string first = formatted("%-14s %-26s %6ld %7d", row.model.c_str(), row.what.c_str(),
                                        static_cast<long>(row.batch), row.threads);
    run.print(first +
              (is_terminal_narrow()
                   ? formatted(" %10.0f  %6.2fx%s\n", row.images_per_second(), ratio.median, ratio.is_wide() ? "~" : "")
                   : formatted(" %10.3f %10.0f %10.1f   %s\n", 1e3 * bench::spread_of(row.rounds).median,
                               row.images_per_second(), static_cast<double>(row.arena) / 1e6,
                               ratio_text(ratio.median, ratio.low, ratio.high, ratio.is_wide()).c_str())));
    result["steps"].push_back(bench::step_json(row, times.disturbance));
  }
  run.note_disturbance(times.disturbance, "training steps of " + model, {{"model", model}, {"batch", batch}}, result);
  run.save(result);
}

void measure_steps(const BenchRun& run, Json& result) {
  const bool is_narrow = is_terminal_narrow();
  run.print(formatted("\n%-14s %-26s %6s %7s", "training step", "", "batch", "threads") +
            (is_narrow ? "   images/s  x float\n"
                       : formatted(" %10s %10s %10s  %s\n", "ms", "images/s", "arena MB", "x float   quartiles")));
  const std::vector<std::string> models = models_of(run.arguments);
  const double seconds = (run.arguments.quick ? kQuickSteps : kThoroughSteps) / static_cast<double>(models.size());
  for (const int threads : run.threads) {
    set_thread_count(threads);
    for (const std::string& model : models) measure_model(run, model, seconds, result);
  }
  run.print(
      is_narrow
          ? "\n~: the middle half of the turns gave ratios that differ by more than a tenth\n"
          : "\nquartiles: the middle half of the turns gave these ratios; ~ where they differ by more than a tenth\n");
}

constexpr double kThoroughModel = 60, kQuickModel = 6;

std::vector<std::string> loaded_models(const BenchArguments& arguments) {
  return arguments.models.empty() ? std::vector<std::string>{"lenet5"} : arguments.models;
}

void measure_loaded(const BenchRun& run, Json& result) {
  const InterruptGuard interrupts;
  run.print(formatted("\n%-14s %-14s %7s %10s %10s %8s\n", "training W8A8", "neighbours", "threads", "images/s",
                      "1 thread", "of bar"));
  for (const std::string& model : loaded_models(run.arguments)) {
    run.tell("training steps of " + model + " beside busy processes");
    for (const bench::LoadedSpeed& row :
         bench::bench_loaded(model, run.arguments.quick ? kQuickModel : kThoroughModel, InterruptGuard::check)) {
      const Json json = bench::loaded_json(row);
      run.print(formatted("%-14s %-14s %7d %10.0f %10.0f", row.model.c_str(), row.neighbours.c_str(), row.threads,
                          json["images_per_second"].get<double>(), json["one_thread"].get<double>()));
      run.print((json.contains("of_bar") ? formatted(" %8.2f", json["of_bar"].get<double>()) : "") + "\n");
      result["loaded"].push_back(json);
      run.note_disturbance(row.disturbance, concat("training steps of ", model, ", neighbours: ", row.neighbours),
                           {{"model", model}, {"neighbours", row.neighbours}}, result);
      run.save(result);
    }
  }
  run.print(
      "\nneighbours: an endless loop for each core; the bar: half the speed without them, or one thread beside them,\nwhichever is more\n");
}

}  // namespace

BenchMeasurement prepare_steps(const BenchRun& run) {
  require_models(models_of(run.arguments));
  return [&run](Json& result) { measure_steps(run, result); };
}

BenchMeasurement prepare_loaded(const BenchRun& run) {
  require_models(loaded_models(run.arguments));
  if (run.threads.size() != 1 || run.threads.front() < 2)
    throw UsageError(concat("--threads: --loaded compares several threads with one, so it takes one number above 1",
                            run.arguments.threads.empty() ? "; by default there would be 1" : ""));
  return [&run](Json& result) { measure_loaded(run, result); };
}

}  // namespace miniqat::cli
