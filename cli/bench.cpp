#include <unistd.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/bench_kernels.h"
#include "cli/bench_loaded.h"
#include "cli/bench_machine.h"
#include "cli/bench_steps.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "core/error.h"
#include "core/files.h"
#include "core/parallel.h"
#include "models/models.h"
#include "training/model_source.h"
#include "training/run_directory.h"
#include "training/threads_help.h"
#include "training/usage_error.h"

namespace miniqat::cli {

using namespace training;

namespace {

using Json = nlohmann::ordered_json;

struct BenchArguments {
  int threads = 0;
  bool quick = false;
  bool kernels_only = false;
  bool steps_only = false;
  bool loaded = false;
  std::vector<std::string> models;
  std::vector<std::int64_t> elements = {10'000, 1'000'000, 16'000'000};
  std::int64_t batch_size = 0;
  std::string out;
};

/// What a default run takes in all is the sum of these for every size and, shared by the models, for the steps.
struct Budget {
  double seconds_a_size;
  double seconds_for_steps;
};
constexpr Budget kThorough = {.seconds_a_size = 3, .seconds_for_steps = 55};
constexpr Budget kQuick = {.seconds_a_size = 0.3, .seconds_for_steps = 5};

/// For whoever waits in front of a terminal.
void tell(const std::string& what) {
  if (isatty(STDERR_FILENO) != 0) std::fprintf(stderr, "bench: %s ...\n", what.c_str());
}

/// "1.03x  1.01-1.06", median and quartiles, with a ~ behind where these are far apart.
std::string ratio_text(const Spread& ratio) {
  char text[48];
  std::snprintf(text, sizeof text, "%5.2fx %6.2f-%.2f%s", ratio.median, ratio.low, ratio.high,
                ratio.is_wide() ? " ~" : "");
  return text;
}

Json quartiles(const Spread& ratio) { return {ratio.low, ratio.high}; }

Json run_kernels(const BenchArguments& arguments, const Budget& budget) {
  Json rows = Json::array();
  std::printf("\n%-18s %-12s %10s %9s %12s  %s\n", "fake quantization", "", "elements", "GB/s", "elements/ns",
              "of memcpy   quartiles");
  for (const std::int64_t elements : arguments.elements) {
    tell(concat("fake quantization of ", elements, " elements"));
    for (const KernelTime& row : bench_kernels(elements, budget.seconds_a_size)) {
      const double speed = row.bytes / row.seconds / 1e9;
      const double per_nanosecond = static_cast<double>(row.elements) / row.seconds / 1e9;
      const char* layout = row.kernel == "memcpy" ? "" : row.per_channel ? "per channel" : "per tensor";
      std::printf("%-18s %-12s %10ld %9.2f %12.3f     %s\n", row.kernel.c_str(), layout,
                  static_cast<long>(row.elements), speed, per_nanosecond, ratio_text(row.of_memcpy).c_str());
      rows.push_back({{"kernel", row.kernel},
                      {"layout", layout},
                      {"elements", row.elements},
                      {"seconds", row.seconds},
                      {"gigabytes_per_second", speed},
                      {"elements_per_nanosecond", per_nanosecond},
                      {"of_memcpy", row.of_memcpy.median},
                      {"of_memcpy_quartiles", quartiles(row.of_memcpy)}});
    }
    std::fflush(stdout);
  }
  return rows;
}

Json run_steps(const BenchArguments& arguments, const Budget& budget) {
  Json rows = Json::array();
  std::printf("\n%-14s %-26s %6s %10s %10s %10s  %s\n", "training step", "", "batch", "ms", "images/s", "arena MB",
              "x float   quartiles");
  for (const std::string& model : arguments.models) {
    tell("training steps of " + model);
    const double seconds = budget.seconds_for_steps / static_cast<double>(arguments.models.size());
    const std::vector<StepTime> times = bench_steps(model, arguments.batch_size, seconds);
    if (times.front().batch < arguments.batch_size)
      std::fprintf(stderr, "miniqat bench: batches of %ld would take too long; %s is measured with %ld\n",
                   static_cast<long>(arguments.batch_size), model.c_str(), static_cast<long>(times.front().batch));
    for (const StepTime& row : times) {
      const double images_per_second = static_cast<double>(row.batch) / row.seconds;
      std::printf("%-14s %-26s %6ld %10.3f %10.0f %10.1f   %s\n", row.model.c_str(), row.what.c_str(),
                  static_cast<long>(row.batch), 1e3 * row.seconds, images_per_second,
                  static_cast<double>(row.arena) / 1e6, ratio_text(row.over_float).c_str());
      rows.push_back({{"model", row.model},
                      {"what", row.what},
                      {"batch", row.batch},
                      {"seconds", row.seconds},
                      {"images_per_second", images_per_second},
                      {"over_float", row.over_float.median},
                      {"over_float_quartiles", quartiles(row.over_float)},
                      {"arena_bytes", row.arena}});
    }
    std::fflush(stdout);
  }
  return rows;
}

void require_model(const std::string& name) {
  std::string known;
  for (const models::Model& model : models::model_table()) {
    if (model.name == name) return;
    known += (known.empty() ? "" : ", ") + std::string(model.name);
  }
  throw UsageError(concat("--models: there is no model \"", name, "\"; there are ", known));
}

void bench(BenchArguments arguments) {
  if (arguments.models.empty() && arguments.loaded) arguments.models = {"lenet5"};
  if (arguments.models.empty()) {
    arguments.models = {"lenet", "lenet5"};
    if (!arguments.quick) arguments.models.push_back("mobilenet_v1");
  }
  for (const std::string& model : arguments.models) require_model(model);
  // Found out before a minute of measuring rather than after it.
  if (!arguments.out.empty()) require_writable(arguments.out);
  set_thread_count(arguments.threads == 0 ? default_thread_count() : arguments.threads);
  const Budget budget = arguments.quick ? kQuick : kThorough;
  const Machine machine = this_machine();
  std::printf("%s", machine.text().c_str());
  if (!machine.quiet())
    std::fprintf(
        stderr, "miniqat bench: this machine is not quiet (load %.1f): trust the ratios only, and not those marked ~\n",
        machine.load);
  if (arguments.loaded) return print_loaded(arguments.models, arguments.quick ? 6 : 60);
  Json result = {{"machine", machine.json()}};
  if (!arguments.steps_only) result["kernels"] = run_kernels(arguments, budget);
  if (!arguments.kernels_only) result["steps"] = run_steps(arguments, budget);
  std::printf(
      "\nquartiles: the middle half of the turns gave these ratios; ~ where they differ by more than a tenth\n");
  if (!arguments.out.empty()) write_json(arguments.out, result);
}

}  // namespace

void add_bench(CommandLine& program) {
  Command command = program.command(
      "bench", "Measure this machine: fake quantization beside memcpy, training steps in float and with QAT");
  const auto arguments = std::make_shared<BenchArguments>();
  command.option("--threads", arguments->threads, kThreadsHelp).in_range(0, 1024);
  command.flag("--quick", arguments->quick, "a rough picture in seconds, without mobilenet_v1 unless it is named");
  const Flag kernels = command.flag("--kernels-only", arguments->kernels_only, "no training steps");
  Flag steps = command.flag("--steps-only", arguments->steps_only, "training steps only");
  steps.excludes(kernels);
  Flag loaded = command.flag("--loaded", arguments->loaded,
                             "instead: training beside a busy process a core, which it starts, and without");
  loaded.excludes(kernels).excludes(steps);
  command
      .option("--models", arguments->models,
              "names from `miniqat models`, separated by commas; default: lenet,lenet5,mobilenet_v1")
      .separated_by(',')
      .excludes(kernels)
      .shown_default("");
  command.option("--elements", arguments->elements, "sizes of the tensors to quantize, separated by commas")
      .separated_by(',')
      .in_range(std::int64_t{1}, std::int64_t{1} << 28)
      .excludes(steps)
      .excludes(loaded)
      .shown_default("10000,1000000,16000000");
  command.option("--batch-size", arguments->batch_size, "pictures a step; 0: 128, or 64 for models with batch norm")
      .in_range(0, 65536)
      .excludes(kernels)
      .excludes(loaded);
  command.option("--out", arguments->out, "write machine and figures to this file as JSON, too")
      .value_name("FILE")
      .excludes(loaded);
  command.action([arguments] { bench(*arguments); });
}

}  // namespace miniqat::cli
