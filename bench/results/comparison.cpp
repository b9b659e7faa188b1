#include "bench/results/comparison.h"

#include <algorithm>
#include <iterator>

#include "core/text/error.h"
#include "core/text/json.h"

namespace miniqat::bench {
namespace {

using RecordPointers = std::vector<const BenchRecord*>;

ComparedCase sides(const BenchRecord& a, const BenchRecord& b) {
  ComparedCase result{.what = a.what, .by_a = a.by, .by_b = b.by, .a = spread_of(a.rounds), .b = spread_of(b.rounds)};
  result.keys = a.keys;
  return result;
}

ComparedCase compared(const BenchRecord& a, const BenchRecord& b) {
  ComparedCase result = sides(a, b);
  result.speed = result.a.median / result.b.median;
  result.probability = rank_test(a.rounds, b.rounds);
  result.verdict = verdict_of(a, b);
  return result;
}

/// The word on sides that took turns, from the ratio of each turn.
void judge_turns(const std::vector<double>& speeds, ComparedCase& both) {
  both.speed = spread_of(speeds).median;
  both.turns = speeds.size();
  both.interval = median_interval(speeds, kConfidence);
  both.verdict = verdict_of_ratio(both.interval);
}

/// The first record of the list that fits, taken out of it; null if none does.
template <class Fits>
const BenchRecord* take_record(RecordPointers& records, const Fits& fits) {
  const auto found = std::ranges::find_if(records, [&](const BenchRecord* one) { return fits(*one); });
  if (found == records.end()) return nullptr;
  const BenchRecord* record = *found;
  records.erase(found);
  return record;
}

std::int64_t count_of_case(const RecordPointers& records, const std::string& what) {
  return std::ranges::count_if(records, [&](const BenchRecord* one) { return one->what == what; });
}

RecordPointers pointers_to(const BenchFile& file) {
  RecordPointers records;
  for (const BenchRecord& record : file.records) records.push_back(&record);
  return records;
}

/// memcpy's seconds on the same elements and threads; 0 where it was not measured.
double copy_seconds(const BenchFile& file, const std::string& size) {
  for (const BenchRecord& record : file.records)
    if (record.is_memcpy && record.size == size) return spread_of(record.rounds).median;
  return 0;
}

/// Whether a difference is no larger than memcpy's: guests of one host share its memory, and no system tells them.
bool is_as_memcpy(const BenchFile& a, const BenchFile& b, const BenchRecord& one, double speed) {
  const double copy_a = copy_seconds(a, one.size), copy_b = copy_seconds(b, one.size);
  if (a.cpu != b.cpu || one.is_memcpy || copy_a == 0 || copy_b == 0) return false;
  const double of_memcpy = speed / (copy_a / copy_b);
  return speed > 1 ? of_memcpy <= 1 + kRepeatTolerance : 1 / of_memcpy <= 1 + kRepeatTolerance;
}

nlohmann::ordered_json side_json(const std::string& by, const Spread& seconds) {
  return {{"by", by}, {"seconds", seconds.median}, {"seconds_quartiles", {seconds.low, seconds.high}}};
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  constexpr std::string_view kNames[] = {"faster",    "slower",         "noise", "as memcpy",
                                         "not quiet", "too few rounds", "open"};
  return kNames[static_cast<std::size_t>(verdict)];
}

std::int64_t BenchComparison::count(Verdict verdict) const {
  return std::ranges::count(cases, verdict, &ComparedCase::verdict);
}

nlohmann::ordered_json BenchComparison::json() const {
  nlohmann::ordered_json result = {{"cases", nlohmann::ordered_json::array()}};
  for (const ComparedCase& one : cases) {
    nlohmann::ordered_json json = {{"case", one.what}};
    if (one.keys.is_object()) json.update(one.keys);
    json.update({{"a", side_json(one.by_a, one.a)}, {"b", side_json(one.by_b, one.b)}, {"speed", one.speed}});
    if (one.turns == 0) {
      json["p"] = one.probability;
    } else {
      json["turns"] = one.turns;
      if (one.interval) json["speed_interval"] = {one.interval->low, one.interval->high};
    }
    json["b_is"] = name_of(one.verdict);
    result["cases"].push_back(json);
  }
  result["only_a"] = only_a;
  result["only_b"] = only_b;
  return result;
}

Verdict verdict_of(const BenchRecord& a, const BenchRecord& b) {
  if (!a.quiet || !b.quiet) return Verdict::kNotQuiet;
  if (std::min(a.rounds.size(), b.rounds.size()) < kFewestCompared) return Verdict::kTooFewRounds;
  const Spread of_a = spread_of(a.rounds), of_b = spread_of(b.rounds);
  const double ratio = of_a.median / of_b.median;
  const bool is_large = std::max(ratio, 1 / ratio) > 1 + kRepeatTolerance;
  const bool are_apart = of_a.high < of_b.low || of_b.high < of_a.low;
  if (!is_large || !are_apart || rank_test(a.rounds, b.rounds) >= kRankLevel) return Verdict::kNoise;
  return ratio > 1 ? Verdict::kFaster : Verdict::kSlower;
}

Verdict verdict_of_ratio(const std::optional<Interval>& speed) {
  constexpr double kMost = 1 + kRepeatTolerance;
  if (!speed) return Verdict::kTooFewRounds;
  if (speed->low > kMost) return Verdict::kFaster;
  if (speed->high < 1 / kMost) return Verdict::kSlower;
  return speed->low >= 1 / kMost && speed->high <= kMost ? Verdict::kNoise : Verdict::kOpen;
}

BenchComparison compare(const BenchFile& a, const BenchFile& b) {
  BenchComparison result;
  RecordPointers left_b = pointers_to(b), left_a;
  std::vector<std::pair<const BenchRecord*, const BenchRecord*>> pairs;
  for (const BenchRecord* one : pointers_to(a)) {
    const BenchRecord* other = take_record(
        left_b, [&](const BenchRecord& record) { return record.what == one->what && record.by == one->by; });
    pairs.emplace_back(one, other);
    if (other == nullptr) left_a.push_back(one);
  }
  for (auto& [one, other] : pairs) {
    if (other != nullptr) continue;
    const std::string& what = one->what;
    if (count_of_case(left_a, what) == 1 && count_of_case(left_b, what) == 1)
      other = take_record(left_b, [&](const BenchRecord& record) { return record.what == what; });
    if (other == nullptr) result.only_a.push_back(concat(what, " by ", one->by));
  }
  for (const auto& [one, other] : pairs)
    if (other != nullptr) {
      ComparedCase both = compared(*one, *other);
      const bool differs = both.verdict == Verdict::kFaster || both.verdict == Verdict::kSlower;
      if (differs && is_as_memcpy(a, b, *one, both.speed)) both.verdict = Verdict::kAsMemcpy;
      result.cases.push_back(std::move(both));
    }
  for (const BenchRecord* one : left_b) result.only_b.push_back(concat(one->what, " by ", one->by));
  return result;
}

BenchComparison compare_kernels(const BenchFile& file) {
  BenchComparison result;
  for (auto a = file.records.begin(); a != file.records.end(); ++a)
    for (auto b = std::next(a); b != file.records.end(); ++b) {
      if (a->what != b->what || a->rounds.size() != b->rounds.size()) continue;
      ComparedCase both = sides(*a, *b);
      judge_turns(ratios_of(a->rounds, b->rounds), both);
      result.cases.push_back(std::move(both));
    }
  return result;
}

BenchComparison compare_turns(const std::vector<BenchFile>& a, const std::vector<BenchFile>& b) {
  std::vector<BenchComparison> turns;
  for (std::size_t i = 0; i < a.size(); ++i) turns.push_back(compare(a[i], b[i]));
  const auto are_same = [](const ComparedCase& one, const ComparedCase& other) {
    return other.what == one.what && other.by_a == one.by_a && other.by_b == one.by_b;
  };
  BenchComparison result;
  // A file may be unfinished: a case of any turn counts.
  for (const BenchComparison& turn : turns) {
    for (const ComparedCase& one : turn.cases)
      if (std::ranges::none_of(result.cases, [&](const ComparedCase& known) { return are_same(known, one); }))
        result.cases.push_back(one);
    const auto add_new = [](const std::vector<std::string>& from, std::vector<std::string>& to) {
      for (const std::string& name : from)
        if (std::ranges::find(to, name) == to.end()) to.push_back(name);
    };
    add_new(turn.only_a, result.only_a);
    add_new(turn.only_b, result.only_b);
  }
  for (const ComparedCase& one : result.cases) {
    std::erase(result.only_a, concat(one.what, " by ", one.by_a));
    std::erase(result.only_b, concat(one.what, " by ", one.by_b));
  }
  for (ComparedCase& one : result.cases) {
    std::vector<double> of_a, of_b;
    for (const BenchComparison& turn : turns)
      for (const ComparedCase& other : turn.cases)
        if (are_same(one, other)) {
          of_a.push_back(other.a.median);
          of_b.push_back(other.b.median);
        }
    one.a = spread_of(of_a);
    one.b = spread_of(of_b);
    one.probability = 1;
    judge_turns(ratios_of(of_a, of_b), one);
  }
  return result;
}

}  // namespace miniqat::bench
