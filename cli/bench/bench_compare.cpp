// `bench --compare A.json B.json`.

#include <cstdio>

#include "benchmarks/suite/results/comparison.h"
#include "cli/bench/bench_modes.h"
#include "cli/display/text_table.h"
#include "core/error.h"
#include "core/text/counted.h"
#include "core/text/json.h"
#include "core/text/quote.h"

namespace miniqat::cli {
namespace {

using namespace benchmarks;

std::string microseconds(const Spread& seconds) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2f (%.2f-%.2f)", 1e6 * seconds.median, 1e6 * seconds.low, 1e6 * seconds.high);
  return text;
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

void print_table(const BenchComparison& comparison) {
  const auto count = [&](Verdict verdict) { return static_cast<long>(comparison.count(verdict)); };
  std::vector<TableLine> lines = {{"case", "by", "A us (quartiles)", "B us (quartiles)", "speed B/A", "p", ""}};
  for (const ComparedCase& one : comparison.cases) {
    char speed[32], probability[32];
    std::snprintf(speed, sizeof speed, "%.3f", one.speed);
    std::snprintf(probability, sizeof probability, "%.3f", one.probability);
    lines.push_back({printable(one.what), printable(one.by_a == one.by_b ? one.by_a : one.by_a + " -> " + one.by_b),
                     microseconds(one.a), microseconds(one.b), speed, probability, word_for(one.verdict)});
  }
  std::printf("%s\n", aligned(lines, 2).c_str());
  std::printf("%zu cases: B faster in %ld, slower in %ld, as memcpy in %ld, within noise in %ld, undecided in %ld.\n",
              comparison.cases.size(), count(Verdict::kFaster), count(Verdict::kSlower), count(Verdict::kAsMemcpy),
              count(Verdict::kNoise), count(Verdict::kNotQuiet) + count(Verdict::kTooFewRounds));
  std::printf(
      "Undecided: a side was not quiet, or has fewer than %zu rounds. Beyond noise: medians more than %.0f%% apart,\n"
      "ranges between quartiles apart, rank test p < %.2f.\n",
      kFewestCompared, 100 * kRepeatTolerance, kRankLevel);
  print_left_over("A", comparison.only_a);
  print_left_over("B", comparison.only_b);
}

nlohmann::ordered_json side_json(const std::string& file, const BenchFile& side) {
  return {{"file", file}, {"about", side.about}, {"flags", side.flags}, {"machine", side.machine}};
}

std::string flags_text(const BenchFile& side) { return side.flags.empty() ? "unknown" : printable(side.flags); }

}  // namespace

void print_comparison(const BenchArguments& arguments) {
  const std::string &a = arguments.compare[0], &b = arguments.compare[1];
  const BenchFile file_a = read_bench_file(a), file_b = read_bench_file(b);
  const BenchComparison comparison = compare(file_a, file_b);
  if (comparison.cases.empty()) fail(a, " and ", b, " have no case in common");
  if (arguments.json) {
    nlohmann::ordered_json json = {{"a", side_json(a, file_a)}, {"b", side_json(b, file_b)}};
    json.update(comparison.json());
    print_json(json);
  } else {
    std::printf("A  %s: %s\nB  %s: %s\n", printable(a).c_str(), printable(file_a.about).c_str(), printable(b).c_str(),
                printable(file_b.about).c_str());
    if (file_a.flags != file_b.flags)
      std::printf("Flags of the compiler differ:\nA  %s\nB  %s\n", flags_text(file_a).c_str(),
                  flags_text(file_b).c_str());
    std::printf("\n");
    print_table(comparison);
  }
  std::fflush(stdout);
  const std::int64_t slower = comparison.count(Verdict::kSlower);
  if (arguments.fail_if_slower && slower > 0) fail(b, " is slower than ", a, " in ", counted(slower, "case"));
}

}  // namespace miniqat::cli
