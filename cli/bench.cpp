#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bench/measure/this_machine.h"
#include "bench/results/result_file.h"
#include "cli/bench/bench_modes.h"
#include "cli/commands.h"
#include "cli/display/terminal.h"
#include "cli/flags/command_line.h"
#include "core/files/files.h"
#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "core/threads/cpu_quota.h"
#include "core/threads/parallel.h"
#include "training/run/run_directory.h"
#include "training/settings/usage_error.h"

namespace miniqat::cli {

using namespace training;

namespace {

using Json = nlohmann::ordered_json;

int thread_number(const std::string& word) {
  int count = -1;
  const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), count);
  if (error != std::errc() || stop != word.data() + word.size() || count < 0 || count > 1024)
    throw UsageError(
        concat("--threads: must be numbers from 0 to 1024, separated by commas, or all; is ", quote(word)));
  return count == 0 ? default_thread_count() : count;
}

/// "all" is 1, 2, 4 and so on up to all cores, or as many as a CPU quota has time for.
std::vector<int> thread_counts(const std::vector<std::string>& words) {
  if (words.empty()) return {default_thread_count()};
  std::vector<int> counts;
  const auto add = [&](int count) {
    if (std::ranges::find(counts, count) == counts.end()) counts.push_back(count);
  };
  for (const std::string& word : words) {
    if (word != "all") {
      add(thread_number(word));
      continue;
    }
    const int all = std::min(available_cores(), cores_of_quota(cpu_quota()));
    for (int count = 1; count < all; count *= 2) add(count);
    add(all);
  }
  return counts;
}

/// The first of equal ones.
template <class Value>
void drop_repeated(std::vector<Value>& values) {
  std::vector<Value> kept;
  for (const Value& value : values)
    if (std::ranges::find(kept, value) == kept.end()) kept.push_back(value);
  values = kept;
}

/// A row that stands there twice is measured twice, and --compare refuses its file.
void drop_repeated_choices(BenchArguments& arguments) {
  drop_repeated(arguments.kernels);
  drop_repeated(arguments.plugins);
  drop_repeated(arguments.bits);
  drop_repeated(arguments.elements);
  drop_repeated(arguments.models);
}

std::vector<BenchMeasurement> measurements_of(const BenchRun& run) {
  if (run.arguments.loaded) return {prepare_loaded(run)};
  std::vector<BenchMeasurement> all;
  if (!run.arguments.steps_only) all.push_back(prepare_kernels(run));
  if (!run.arguments.kernels_only) all.push_back(prepare_steps(run));
  return all;
}

std::filesystem::path resolved(const std::string& file) {
  return std::filesystem::weakly_canonical(std::filesystem::absolute(file));
}

Json unfinished(Json result) {
  result["unfinished"] = true;
  return result;
}

/// Where the tables were not printed.
void print_result(const BenchArguments& arguments, const Json& result) {
  if (arguments.json) print_json(result);
  if (arguments.csv) std::fputs(bench::bench_csv(result).c_str(), stdout);
}

void bench(const BenchArguments& arguments) {
  if (!arguments.compare.empty()) return print_comparison(arguments);
  const bench::PerfCounters counters;
  const BenchRun run{arguments, thread_counts(arguments.threads), counters};
  if (!arguments.plot.empty() && !arguments.out.empty() && resolved(arguments.plot) == resolved(arguments.out))
    throw UsageError(concat("--plot and --out are one file, ", quote(arguments.plot)));
  // What is wrong is found out before a minute of measuring rather than after it.
  const std::vector<BenchMeasurement> measurements = measurements_of(run);
  if (!arguments.out.empty()) require_writable(arguments.out);
  set_thread_count(run.threads.front());
  const bench::Machine machine = bench::this_machine();
  run.print(machine.text() + bench::build_text());
  if (!machine.quiet())
    std::fprintf(stderr, "miniqat bench: this machine is not quiet, or was not a moment ago (load %.1f)\n",
                 machine.load);
  Json result = bench::build_json();
  result["machine"] = machine.json();
  result["thread_counts"] = run.threads;
  try {
    for (const BenchMeasurement& measure : measurements) measure(result);
  } catch (...) {
    print_result(arguments, unfinished(result));
    throw;
  }
  if (!arguments.out.empty()) write_json(arguments.out, result);
  print_result(arguments, result);
}

/// The flags that choose kernels, and with one of which no steps are measured.
std::vector<Flag> add_kernel_flags(Command& command, BenchArguments& arguments) {
  std::vector<Flag> flags;
  flags.push_back(command.option("--kernel", arguments.kernels, kernel_help())
                      .separated_by(',')
                      .value_name("NAME")
                      .shown_default(""));
  flags.push_back(
      command
          .option(
              "--plugin", arguments.plugins,
              "shared libraries, separated by commas, whose kernels are measured beside ours: those that --kernel names, or all (docs/own-kernel.md)")
          .separated_by(',')
          .shown_default("")
          .value_name("FILE.so"));
  flags.push_back(command.option("--bits", arguments.bits, "widths of the grid, separated by commas")
                      .separated_by(',')
                      .in_range(2, 16)
                      .shown_default("8"));
  flags.push_back(command.flag("--per-channel", arguments.per_channel,
                               "kernels per channel, none per tensor but backward, which knows no channels"));
  flags.push_back(command.option("--channels", arguments.channels, "one number: the channels of kernels per channel")
                      .in_range(2, 1 << 20));
  Flag per_tensor = command.flag("--per-tensor", arguments.per_tensor, "kernels per tensor, none per channel");
  for (const Flag& flag : {flags[flags.size() - 2], flags.back()}) per_tensor.excludes(flag);
  flags.push_back(per_tensor);
  flags.push_back(command
                      .option("--plot", arguments.plot,
                              "draw speed against size, with memcpy and the sizes of caches, into this SVG file")
                      .value_name("FILE.svg"));
  return flags;
}

void add_common_flags(Command& command, BenchArguments& arguments, std::vector<Flag>& flags) {
  flags.push_back(
      command
          .option(
              "--threads", arguments.threads,
              "numbers, separated by commas, each at most 1024; 0: OMP_NUM_THREADS if it is set, else all cores; all: 1, 2, 4, ... and all cores (or those of a CPU quota)")
          .separated_by(',')
          .value_name("N")
          .shown_default("0"));
  flags.push_back(
      command.flag("--quick", arguments.quick, "a rough picture in seconds, without mobilenet_v1 unless it is named"));
  flags.push_back(
      command.option("--out", arguments.out, "write machine and figures to this file as JSON, too").value_name("FILE"));
  // The only ones that --compare takes, too.
  const Flag json = command.flag("--json", arguments.json, "print the JSON instead of the tables");
  command.flag("--csv", arguments.csv, "print the rows as CSV instead of the tables").excludes(json);
}

}  // namespace

void BenchRun::print(const std::string& text) const {
  if (arguments.json || arguments.csv) return;
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void print_json(const Json& json) {
  std::printf("%s\n", json.dump(1, ' ', false, nlohmann::detail::error_handler_t::replace).c_str());
}

void BenchRun::save(const Json& result) const {
  if (!arguments.out.empty()) write_json(arguments.out, unfinished(result));
}

void BenchRun::tell(const std::string& what) const {
  if (isatty(STDERR_FILENO) != 0) std::fprintf(stderr, "bench: %s ...\n", what.c_str());
}

void BenchRun::note_disturbance(const bench::Disturbance& disturbance, const std::string& what, const Json& where,
                                Json& result) const {
  Json json = disturbance.json();
  json.update(where);
  json["threads"] = thread_count();
  result["disturbances"].push_back(json);
  const std::string reasons = joined(disturbance.reasons());
  if (!reasons.empty())
    std::fprintf(stderr, "miniqat bench: not quiet while measuring %s on %s: %s\n", what.c_str(),
                 counted(thread_count(), "thread").c_str(), reasons.c_str());
}

std::string ratio_text(double median, double low, double high, bool is_wide) {
  return formatted("%5.2fx %6.2f-%.2f%s", median, low, high, is_wide ? " ~" : "");
}

bool is_terminal_narrow() {
  constexpr std::size_t kAllColumns = 120;
  return terminal_columns(stdout).value_or(kAllColumns) < kAllColumns;
}

void add_bench(CommandLine& program) {
  Command command = program.command(
      "bench", "Measure this machine: fake quantization beside memcpy, training steps in float and with QAT");
  const auto arguments = std::make_shared<BenchArguments>();
  std::vector<Flag> flags;
  add_common_flags(command, *arguments, flags);
  Flag kernels = command.flag("--kernels-only", arguments->kernels_only, "no training steps");
  Flag steps = command.flag("--steps-only", arguments->steps_only, "training steps only");
  steps.excludes(kernels);
  Flag loaded = command.flag(
      "--loaded", arguments->loaded,
      "measure instead: training beside a busy process for each core, which bench starts, and without them");
  loaded.excludes(kernels).excludes(steps);
  Flag models = command.option(
      "--models", arguments->models,
      "names from `miniqat models`, separated by commas; default: lenet,lenet5,mobilenet_v1, of --loaded lenet5");
  models.separated_by(',').value_name("NAME").excludes(kernels).shown_default("");
  Flag batch = command.option("--batch-size", arguments->batch_size,
                              "pictures a step; 0: 128, or 64 for models with batch norm");
  batch.in_range(0, 65536).excludes(kernels);
  const std::vector<Flag> kernel_flags = add_kernel_flags(command, *arguments);
  Flag elements =
      command.option("--elements", arguments->elements, "sizes of the tensors to quantize, separated by commas");
  elements.separated_by(',')
      .in_range(std::int64_t{1}, std::int64_t{1} << 28)
      .excludes(steps)
      .shown_default("10000,1000000,16000000, of --plot eight from 1000 to 16000000");
  for (const Flag& flag : kernel_flags)
    steps.excludes(flag), models.excludes(flag), batch.excludes(flag), loaded.excludes(flag);
  loaded.excludes(batch).excludes(elements);
  Flag compare = command.option(
      "--compare", arguments->compare,
      "two files of --out: which cases differ beyond noise; one: its kernels beside one another; more, written in turns: all of A, then as many of B (docs/bench.md)");
  compare.takes(1, 1000).value_name("A.json B.json").shown_default("");
  command
      .flag("--fail-if-slower", arguments->fail_if_slower,
            "with --compare: exit status 1 if B is slower in a case; without it, 0")
      .needs(compare);
  flags.insert(flags.end(), kernel_flags.begin(), kernel_flags.end());
  flags.insert(flags.end(), {kernels, steps, loaded, models, batch, elements});
  for (const Flag& flag : flags) compare.excludes(flag);
  command.action([arguments, kernel_flags] {
    if (std::ranges::any_of(kernel_flags, &Flag::was_given)) arguments->kernels_only = true;
    drop_repeated_choices(*arguments);
    bench(*arguments);
  });
}

}  // namespace miniqat::cli
