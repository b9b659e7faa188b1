// The kernels' part of `bench`.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>

#include "bench/kernel_bench.h"
#include "bench/kernel_check.h"
#include "bench/kernel_registry.h"
#include "bench/operation.h"
#include "bench/results/comparison.h"
#include "bench/results/result_file.h"
#include "bench/results/throughput_plot.h"
#include "cli/bench/bench_modes.h"
#include "cli/flags/setting_flags.h"
#include "core/files/files.h"
#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "core/threads/parallel.h"
#include "training/settings/usage_error.h"

namespace miniqat::cli {

using namespace training;

namespace {

using namespace bench;
using Json = nlohmann::ordered_json;

/// What `--kernel` and `--plugin` choose.
struct KernelChoice {
  std::vector<Operation> operations;
  /// Our own first.
  std::vector<NamedKernel> kernels;
};

[[noreturn]] void refuse_name(const std::string& name, const std::vector<NamedKernel>& known) {
  std::vector<std::string> words;
  for (const OperationTraits& one : operations()) words.emplace_back(one.name);
  for (const NamedKernel& kernel : known) words.push_back(kernel.name);
  throw UsageError(concat("--kernel: ", unknown_name("operation or kernel", name, words)));
}

/// The name is its own, or the one that it has in its plugin.
bool has_name(const NamedKernel& kernel, const std::string& name) {
  return kernel.name == name || (kernel.functions.name != nullptr && kernel.functions.name == name);
}

bool is_in(const std::vector<std::string>& names, const NamedKernel& kernel) {
  return std::ranges::any_of(names, [&](const std::string& name) { return has_name(kernel, name); });
}

/// The kernels of all plugins, under names that neither the others nor `known` have.
std::vector<NamedKernel> kernels_of(const std::vector<std::string>& plugins, const std::vector<NamedKernel>& known) {
  std::vector<NamedKernel> all;
  for (const std::string& plugin : plugins) {
    const auto some = as_usage([&] { return load_plugin(plugin); });
    all.insert(all.end(), some.begin(), some.end());
  }
  const auto stem_of = [](const NamedKernel& kernel) { return std::filesystem::path(kernel.file).stem().string(); };
  for (NamedKernel& kernel : all) {
    const auto has_same = [&](const NamedKernel& other) {
      return &other != &kernel && has_name(other, kernel.functions.name);
    };
    const auto has_same_stem = [&](const NamedKernel& other) {
      return has_same(other) && stem_of(other) == stem_of(kernel);
    };
    if (std::ranges::any_of(all, has_same) || std::ranges::any_of(known, has_same))
      kernel.name += "@" + printable(std::ranges::any_of(all, has_same_stem) ? kernel.file : stem_of(kernel));
  }
  return all;
}

void require_supported(const NamedKernel& kernel) {
  if (!as_usage([&] { return is_supported(kernel); }))
    throw UsageError(concat("the kernel ", quote(kernel.name), " says that this processor cannot run it"));
}

/// Chooses operations and kernels. A name is that of an operation or a kernel: operations are those that are named, all
/// if none is, or, if a kernel is named but no operation, those that one of the kernels can do. Named kernels are
/// measured beside ours. All kernels of plugins are added, or those that are named. Where several files have a kernel
/// of one name, or a plugin has one of the program's, those of plugins become "name@file", and `--kernel name` means
/// all of them. Throws UsageError for an unknown name, a plugin that is none, a kernel that this processor cannot run,
/// and an operation that no kernel is left to do.
KernelChoice choose_kernels(const std::vector<std::string>& names, const std::vector<std::string>& plugins) {
  std::vector<NamedKernel> known = as_usage(registered_kernels), own;
  const std::vector<NamedKernel> of_plugins = kernels_of(plugins, known);
  const bool names_one =
      std::ranges::any_of(of_plugins, [&](const NamedKernel& kernel) { return is_in(names, kernel); });
  for (const NamedKernel& kernel : of_plugins)
    if (!names_one || is_in(names, kernel)) own.push_back(kernel);
  for (const NamedKernel& kernel : known)
    if (is_in(names, kernel)) own.push_back(kernel);
  std::ranges::for_each(own, require_supported);

  known.insert(known.end(), of_plugins.begin(), of_plugins.end());
  KernelChoice choice;
  for (const std::string& name : names) {
    const auto operation = find_operation(name);
    if (operation) choice.operations.push_back(*operation);
    const auto is_named = [&](const NamedKernel& kernel) { return has_name(kernel, name); };
    if (!operation && std::ranges::none_of(known, is_named)) refuse_name(name, known);
  }
  const auto can_be_done = [&](Operation operation) {
    return own.empty() ||
           std::ranges::any_of(own, [&](const NamedKernel& kernel) { return can_do(kernel.functions, operation); });
  };
  if (choice.operations.empty())
    for (const OperationTraits& one : operations())
      if (is_limit(one.operation) || can_be_done(one.operation)) choice.operations.push_back(one.operation);
  choice.kernels.push_back(our_kernel());
  choice.kernels.insert(choice.kernels.end(), own.begin(), own.end());
  return choice;
}

constexpr double kThoroughRow = 0.23, kQuickRow = 0.023;

std::vector<std::int64_t> sizes_of(const BenchArguments& arguments) {
  if (!arguments.elements.empty()) return arguments.elements;
  if (arguments.plot.empty()) return {10'000, 1'000'000, 16'000'000};
  return {1'000, 4'000, 16'000, 64'000, 256'000, 1'000'000, 4'000'000, 16'000'000};
}

std::int64_t largest_of(const BenchArguments& arguments) { return std::ranges::max(sizes_of(arguments)); }

/// What is in the table beside the columns that are always there.
struct Columns {
  /// Kernels beside ours.
  bool others = false;
  bool counts = false;
  /// Whether the roof is one.
  bool is_roof_quiet = true;
  /// Where a terminal would break a line of all columns, there are the first ones and a ratio.
  bool is_narrow = is_terminal_narrow();

  std::string head() const {
    const std::string first =
        formatted("\n%-16s %-11s %4s %7s %10s", "kernel", "layout", "bits", "threads", "elements");
    if (is_narrow) return concat(first, others ? " of miniqat  by\n" : "     GB/s  of memcpy\n");
    const std::string more = formatted(" %8s %12s %10s   %-24s %7s", "GB/s", "elements/ns", "ns/element",
                                       "of memcpy   quartiles", "of roof");
    return concat(first, more, counts ? "  instr/el  misses/el" : "",
                  others ? "  of miniqat quartiles     95% of median by" : "", "\n");
  }
  std::string line(const KernelTime& row) const {
    const std::string bits = row.what.has_grid() ? concat(row.what.bits) : "";
    const Spread& ratio = row.of_memcpy;
    const double gigabytes = row.bytes() / row.seconds() / 1e9;
    std::string line =
        formatted("%-16s %-11s %4s %7d %10ld", std::string(traits_of(row.what.operation).name).c_str(),
                  row.what.layout().c_str(), bits.c_str(), row.threads, static_cast<long>(row.what.elements));
    if (is_narrow) {
      const std::optional<Spread> one = others ? row.of_ours : ratio;
      const std::string cell = one ? formatted("%10.2fx%s", one->median, one->is_wide() ? "~" : "") : "";
      return line + (others ? formatted("%-12s %s\n", cell.c_str(), row.by.c_str())
                            : formatted(" %8.2f%s\n", gigabytes, cell.c_str()));
    }
    line += formatted(" %8.2f %12.3f %10.4f %s %-24s %7s", gigabytes, row.elements_per_nanosecond(),
                      row.nanoseconds_an_element(), is_steady(row.rounds) ? " " : "~",
                      ratio_text(ratio.median, ratio.low, ratio.high, ratio.is_wide()).c_str(),
                      formatted(is_roof_quiet ? "%.2f" : "~%.2f", row.of_roof).c_str());
    if (counts && row.counts) line += formatted("%10.2f%11.4f", row.counts->instructions, row.counts->cache_misses);
    if (!others) return line + "\n";
    const std::string ours =
        row.of_ours ? ratio_text(row.of_ours->median, row.of_ours->low, row.of_ours->high, row.of_ours->is_wide()) : "";
    std::string median;
    if (row.of_ours_interval) median = formatted("%.3f-%.3f", row.of_ours_interval->low, row.of_ours_interval->high);
    return line + formatted("  %-24s %-13s %s\n", ours.c_str(), median.c_str(), row.by.c_str());
  }
};

/// Whoever names both a kernel and an operation expects a row of them.
void say_what_is_left_out(const KernelChoice& chosen, const std::vector<std::string>& names) {
  for (const Operation operation : chosen.operations) {
    const std::string name(traits_of(operation).name);
    if (is_limit(operation) || std::ranges::find(names, name) == names.end()) continue;
    for (const NamedKernel& kernel : chosen.kernels)
      if (!can_do(kernel.functions, operation))
        std::fprintf(stderr, "miniqat bench: no row of %s by %s: the kernel lacks a function for it\n", name.c_str(),
                     kernel.name.c_str());
  }
  if (std::ranges::count(chosen.operations, Operation::kForwardMask) == 0) return;
  for (const NamedKernel& kernel : chosen.kernels)
    if (kernel.functions.forward_mask != nullptr && kernel.functions.backward_mask == nullptr)
      std::fprintf(stderr,
                   "miniqat bench: the mask of forward_mask by %s is not checked: the kernel has no backward_mask\n",
                   kernel.name.c_str());
}

/// What the intervals say of each kernel beside ours; "" without one.
std::string words_on_others(const std::vector<KernelTime>& rows) {
  std::map<std::string, std::map<Verdict, std::int64_t>> counts;
  for (const KernelTime& row : rows)
    if (row.of_ours) ++counts[row.by][verdict_of_ratio(row.of_ours_interval)];
  if (counts.empty()) return "";
  std::string text =
      "\n95% of median: in this interval lies the median of the rounds' ratios, with a confidence of 95%. Kernels take turns,\nso it is of use on a busy machine, too.\n";
  for (auto& [name, of] : counts)
    text += concat(name, " beside ", kOurName, ": faster in ", counted(of[Verdict::kFaster], "case"), ", slower in ",
                   of[Verdict::kSlower], ", less than ", 100 * kRepeatTolerance, "% apart in ", of[Verdict::kNoise],
                   ", undecided in ", of[Verdict::kOpen] + of[Verdict::kTooFewRounds], "\n");
  return text;
}

/// Measures all sizes on thread_count() threads.
void measure_sizes(const BenchRun& run, const BenchPlan& plan, Columns columns, Json& result,
                   std::vector<KernelTime>& all) {
  run.tell("the limits of " + counted(thread_count(), "thread"));
  // The usual sizes stand for all places.
  const Roof roof = measure_roof(run.arguments.elements.empty() ? std::numeric_limits<std::int64_t>::max()
                                                                : 8 * largest_of(run.arguments));
  result["roof"].push_back(roof.json());
  columns.is_roof_quiet = roof.is_quiet();
  run.note_disturbance(roof.disturbance, "the roof", {{"of", "roof"}}, result);
  run.print("\n" + roof.text() + columns.head());
  for (const std::int64_t elements : sizes_of(run.arguments)) {
    run.tell(concat("fake quantization of ", counted(elements, "element")));
    const SizeTimes times = bench_kernels(plan, elements, roof, run.counters);
    for (const KernelTime& row : times.rows) {
      run.print(columns.line(row));
      result["kernels"].push_back(kernel_json(row));
      all.push_back(row);
    }
    run.note_disturbance(times.disturbance, counted(elements, "element"), {{"elements", elements}}, result);
    run.save(result);
  }
}

void measure_kernels(const BenchRun& run, const KernelChoice& chosen, Json& result) {
  const BenchArguments& arguments = run.arguments;
  say_what_is_left_out(chosen, arguments.kernels);
  for (const NamedKernel& kernel : chosen.kernels) {
    run.tell("comparing " + kernel.name + " with the reference");
    require_right(kernel);
  }
  BenchPlan plan{.choice = {.operations = chosen.operations, .bits = {}, .channels = {1, arguments.channels}},
                 .kernels = chosen.kernels,
                 .seconds_a_row = arguments.quick ? kQuickRow : kThoroughRow};
  if (arguments.per_channel) plan.choice.channels = {arguments.channels};
  if (arguments.per_tensor) plan.choice.channels = {1};
  for (const std::int64_t bits : arguments.bits) plan.choice.bits.push_back(static_cast<int>(bits));
  const Columns columns = {.others = chosen.kernels.size() > 1, .counts = run.counters.fault().empty()};
  if (!columns.counts) run.print(concat("no instructions and cache misses: ", run.counters.fault(), "\n"));
  const std::int64_t largest = largest_of(arguments);
  if (arguments.elements.empty())
    run.print(cache_note(this_machine(), concat("x and y of ", counted(largest, "element")), 8 * largest));
  std::vector<KernelTime> rows;
  for (const int threads : run.threads) {
    set_thread_count(threads);
    measure_sizes(run, plan, columns, result, rows);
  }
  if (columns.is_narrow)
    run.print(
        "\n~: the middle half of the rounds gave ratios that differ by more than a tenth.\n"
        "A terminal of 120 columns has room for all columns.\n");
  else
    run.print(
        "\nquartiles: the middle half of the rounds gave these ratios; ~ where they differ by more than a tenth, or where\nthe speed or the roof may not repeat. of roof: the time by memcpy's speed, or by the peak of arithmetic if that is\nlonger, over the measured time, for the threads that share the tensor (up to 32,768 elements, one). In place no line\nis fetched twice: more than 1 is possible there.\n");
  run.print(words_on_others(rows));
  if (arguments.plot.empty()) return;
  const Machine machine = this_machine();
  const Json build = build_json();
  const std::string title =
      concat("Fake quantization: ", machine.cpu, ", ", machine.instruction_set, ", miniqat ",
             version_text(build["version"], build["commit"]), ", ", build["date"].get<std::string>().substr(0, 10));
  write_file_atomically(arguments.plot, throughput_svg(rows, machine.caches, title));
}

}  // namespace

BenchMeasurement prepare_kernels(const BenchRun& run) {
  const auto measurement = [&run, chosen = choose_kernels(run.arguments.kernels, run.arguments.plugins)](Json& result) {
    measure_kernels(run, chosen, result);
  };
  if (run.arguments.plot.empty()) return measurement;
  require_ending("--plot", run.arguments.plot, {".svg"});
  std::vector<std::int64_t> sizes = sizes_of(run.arguments);
  std::ranges::sort(sizes);
  if (sizes.front() == sizes.back()) throw UsageError("--plot needs at least two sizes; --elements gives one");
  require_writable(run.arguments.plot);
  return measurement;
}

std::string kernel_help() {
  std::string text = "operations and kernels beside ours; default: all operations by ours. Operations:\n";
  for (const OperationTraits& one : operations()) text += concat("  ", one.name, ": ", one.help, "\n");
  text += "Kernels: ";
  const std::string list = joined(registered_names());
  return text + (list.empty() ? "none" : list);
}

}  // namespace miniqat::cli
