#include "cli/verify_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace miniqat::cli {
namespace {

template <class... Arguments>
std::string format(const char* pattern, Arguments... arguments) {
  std::string text(static_cast<std::size_t>(std::snprintf(nullptr, 0, pattern, arguments...)), ' ');
  std::snprintf(text.data(), text.size() + 1, pattern, arguments...);
  return text;
}

/// Percent with enough digits to tell all from nearly all: 100% means every one.
std::string percent(double share, int digits) {
  const double scale = std::pow(10.0, digits + 2);
  const double shown = share < 1 ? std::min(share, 1 - 1 / scale) : share;
  return format("%.*f%%", digits, 100 * shown);
}

std::string score_row(const Score& score) {
  return format("%-24s %9s %12s %14s %9d\n", score.name.c_str(), percent(score.accuracy(), 2).c_str(),
                percent(score.agreement(), 2).c_str(), percent(score.outputs.share(), 3).c_str(),
                score.outputs.largest);
}

nlohmann::ordered_json to_json(const Agreement& agreement) {
  return {{"count", agreement.count},
          {"equal", agreement.equal},
          {"share", agreement.share()},
          {"largest_difference", agreement.largest}};
}

nlohmann::ordered_json to_json(const Score& score) {
  return {{"name", score.name},
          {"examples", score.examples},
          {"correct", score.correct},
          {"accuracy", score.accuracy()},
          {"top1_agreement_with_integer", score.agreement()},
          {"outputs", to_json(score.outputs)}};
}

}  // namespace

std::string VerifyReport::table() const {
  const Verification& v = verification;
  std::string text = title + "\n\n";
  text += format("%-24s %9s %12s %14s %9s\n", "", "accuracy", "same class", "equal outputs", "largest");
  text += score_row(v.simulated);
  text += score_row(v.integer);
  for (const Score& score : runtimes) text += score_row(score);
  for (const std::string& line : left_out) text += line + "\n";
  for (const std::string& line : failed) text += line + "\n";
  text += "same class, equal outputs, largest difference (steps): beside the integer engine\n\n";

  std::size_t width = 9;
  for (const LayerComparison& layer : v.layers) width = std::max(width, layer.operation.size());
  const int w = static_cast<int>(width);
  text += format("%-*s %-15s  %s\n", w, "", "", "given equal inputs   from the picture on");
  text += format("%-*s %-15s %11s %7s %11s %7s\n", w, "operation", "type", "equal", "largest", "equal", "largest");
  for (const LayerComparison& layer : v.layers)
    text += format("%-*s %-15s %11s %7d %11s %7d\n", w, layer.operation.c_str(), layer.type.c_str(),
                   percent(layer.alone.share(), 4).c_str(), layer.alone.largest,
                   percent(layer.end_to_end.share(), 4).c_str(), layer.end_to_end.largest);
  text += format(
      "integers of the simulated graph beside the integer engine's; fast engine and reference loops: %s on %ld "
      "examples\n",
      v.reference_equal ? "equal" : "NOT EQUAL", static_cast<long>(v.reference_examples));
  return text;
}

nlohmann::ordered_json VerifyReport::json() const {
  nlohmann::ordered_json json = {{"title", title},
                                 {"simulated", to_json(verification.simulated)},
                                 {"integer", to_json(verification.integer)},
                                 {"reference_examples", verification.reference_examples},
                                 {"reference_equal", verification.reference_equal},
                                 {"runtimes", nlohmann::ordered_json::array()},
                                 {"left_out", left_out},
                                 {"failed", failed},
                                 {"layers", nlohmann::ordered_json::array()}};
  for (const Score& score : runtimes) json["runtimes"].push_back(to_json(score));
  for (const LayerComparison& layer : verification.layers)
    json["layers"].push_back({{"operation", layer.operation},
                              {"type", layer.type},
                              {"tensor", layer.tensor},
                              {"alone", to_json(layer.alone)},
                              {"end_to_end", to_json(layer.end_to_end)}});
  return json;
}

std::vector<std::string> VerifyReport::broken(const Bounds& bounds) const {
  const Verification& v = verification;
  std::vector<std::string> lines;
  if (!v.reference_equal) lines.push_back("the fast engine and the reference loops differ");
  // Counts of examples, so that a bound of exactly so many points is not broken by rounding.
  const double slack = 1e-9;
  const double difference = 100 * std::abs(v.simulated.accuracy() - v.integer.accuracy());
  if (bounds.accuracy_difference && difference > *bounds.accuracy_difference + slack)
    lines.push_back(format("accuracies differ by %.3f points, more than %g", difference, *bounds.accuracy_difference));
  const auto require_agreement = [&](const Score& score, std::optional<double> bound) {
    if (bound && 100 * score.agreement() < *bound - slack)
      lines.push_back(format("%s and the integer engine choose the same class for %.3f%%, less than %g%%",
                             score.name.c_str(), 100 * score.agreement(), *bound));
  };
  require_agreement(v.simulated, bounds.agreement);
  for (const Score& score : runtimes) require_agreement(score, bounds.runtime_agreement);
  if (bounds.runtime_agreement) lines.insert(lines.end(), failed.begin(), failed.end());
  if (bounds.runtime_agreement && runtimes.empty()) lines.push_back("no other runtime could be asked");
  for (const LayerComparison& layer : v.layers)
    if (bounds.steps && layer.alone.largest > *bounds.steps)
      lines.push_back(
          format("%s: %d steps apart, more than %d", layer.operation.c_str(), layer.alone.largest, *bounds.steps));
  return lines;
}

}  // namespace miniqat::cli
