// `bench --compare FILE...`.

#include <cstdio>
#include <span>

#include "bench/results/comparison.h"
#include "bench/results/result_file.h"
#include "cli/bench/bench_modes.h"
#include "cli/display/terminal.h"
#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/quote.h"
#include "training/settings/usage_error.h"

namespace miniqat::cli {
namespace {

using namespace bench;

std::string microseconds(const Spread& seconds) {
  return formatted("%.2f (%.2f-%.2f)", 1e6 * seconds.median, 1e6 * seconds.low, 1e6 * seconds.high);
}

std::string word_for(Verdict verdict) {
  if (verdict == Verdict::kNoise) return "";
  const bool is_clear = verdict == Verdict::kFaster || verdict == Verdict::kSlower;
  return concat(is_clear ? "B " : "", name_of(verdict));
}

void print_left_over(const char* file, const std::vector<std::string>& names) {
  if (names.empty()) return;
  std::printf("\nonly in %s:\n", file);
  for (const std::string& name : names) std::printf("  %s\n", printable(name).c_str());
}

std::string chance_text(const ComparedCase& one) {
  if (one.turns == 0) return formatted("%.3f", one.probability);
  return one.interval ? formatted("%.3f-%.3f (%zu)", one.interval->low, one.interval->high, one.turns) : "";
}

void print_table(const BenchComparison& comparison, bool in_turns) {
  const auto count = [&](Verdict verdict) { return static_cast<long>(comparison.count(verdict)); };
  std::vector<TableLine> lines = {
      {"case", "by", "A us (quartiles)", "B us (quartiles)", "speed B/A", in_turns ? "95% interval (turns)" : "p", ""}};
  for (const ComparedCase& one : comparison.cases)
    lines.push_back({printable(one.what), printable(one.by_a == one.by_b ? one.by_a : one.by_a + " -> " + one.by_b),
                     microseconds(one.a), microseconds(one.b), formatted("%.3f", one.speed), chance_text(one),
                     word_for(one.verdict)});
  std::printf("%s\n", aligned(lines, 2).c_str());
  std::printf("%s: B faster in %ld, slower in %ld, as memcpy in %ld, within noise in %ld, undecided in %ld.\n",
              counted(comparison.cases.size(), "case").c_str(), count(Verdict::kFaster), count(Verdict::kSlower),
              count(Verdict::kAsMemcpy), count(Verdict::kNoise),
              count(Verdict::kNotQuiet) + count(Verdict::kTooFewRounds) + count(Verdict::kOpen));
  if (in_turns)
    std::printf(
        "Speed: the median of the turns' ratios. Beyond noise: its whole 95%% interval is more than %.0f%% away from 1.\n"
        "Undecided: the interval has both (open; more turns make it narrower), or there are fewer than six turns.\n",
        100 * kRepeatTolerance);
  else
    std::printf(
        "Undecided: a side was not quiet, or has fewer than %zu rounds. Beyond noise: medians more than %.0f%% apart,\nranges between quartiles apart, rank test p < %.2f.\n",
        kFewestCompared, 100 * kRepeatTolerance, kRankLevel);
  if (count(Verdict::kNotQuiet) > 0)
    std::printf(
        "Where the machine does not become quiet, take turns: two plugins in one run, or several files of each side\n(docs/bench.md).\n");
  print_left_over("A", comparison.only_a);
  print_left_over("B", comparison.only_b);
}

std::string flags_text(const BenchFile& side) { return side.flags.empty() ? "unknown" : printable(side.flags); }

/// The files of one side, one or more.
struct Side {
  std::vector<std::string> paths;
  std::vector<BenchFile> files;

  explicit Side(std::span<const std::string> names) : paths(names.begin(), names.end()) {
    for (const std::string& path : paths) files.push_back(read_bench_file(path));
  }
  const BenchFile& first() const { return files.front(); }
  nlohmann::ordered_json json() const {
    nlohmann::ordered_json json = {{"file", paths.front()}};
    if (paths.size() > 1) json["files"] = paths;
    json.update({{"about", first().about}, {"flags", first().flags}, {"machine", first().machine}});
    return json;
  }
  /// "A  a.json: 0.1, 2026-11-24T08:00:00Z, AMD EPYC, ..."
  std::string text(const char* name) const {
    const std::string more = paths.size() == 1 ? "" : concat(" and ", paths.size() - 1, " more");
    return concat(name, "  ", printable(paths.front()), more, ": ", printable(first().about), "\n");
  }
};

BenchComparison comparison_of(const Side& a, const Side& b, bool in_one_file) {
  if (in_one_file) return compare_kernels(a.first());
  return a.files.size() == 1 ? compare(a.first(), b.first()) : compare_turns(a.files, b.files);
}

void print_tables(const Side& a, const Side& b, const BenchComparison& comparison, bool in_one_file) {
  std::printf("%s", a.text(in_one_file ? "A and B" : "A").c_str());
  if (!in_one_file) std::printf("%s", b.text("B").c_str());
  if (a.first().flags != b.first().flags)
    std::printf("Flags of the compiler differ:\nA  %s\nB  %s\n", flags_text(a.first()).c_str(),
                flags_text(b.first()).c_str());
  std::printf("\n");
  print_table(comparison, in_one_file || a.files.size() > 1);
}

}  // namespace

void print_comparison(const BenchArguments& arguments) {
  const std::span<const std::string> names = arguments.compare;
  const bool in_one_file = names.size() == 1;
  if (!in_one_file && names.size() % 2 != 0)
    throw training::UsageError(concat("--compare takes one file, or as many of A as of B; there are ", names.size()));
  const Side a(names.first(in_one_file ? 1 : names.size() / 2)), b(names.last(a.paths.size()));
  const BenchComparison comparison = comparison_of(a, b, in_one_file);
  if (comparison.cases.empty() && in_one_file) fail(names[0], " has no two kernels of one case");
  if (comparison.cases.empty()) fail(a.paths[0], " and ", b.paths[0], " have no case in common");
  nlohmann::ordered_json json = {{"a", a.json()}, {"b", b.json()}};
  json.update(comparison.json());
  if (arguments.json)
    print_json(json);
  else if (arguments.csv)
    std::printf("%s", bench_csv(json).c_str());
  else
    print_tables(a, b, comparison, in_one_file);
  std::fflush(stdout);
  const std::int64_t slower = comparison.count(Verdict::kSlower);
  if (arguments.fail_if_slower && slower > 0)
    fail(in_one_file ? concat(names[0], ": the second kernel") : b.paths[0], " is slower than ",
         in_one_file ? "the first" : a.paths[0], " in ", counted(slower, "case"));
}

}  // namespace miniqat::cli
