#include "cli/display/verify_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "cli/display/terminal.h"
#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "core/text/utf8.h"

namespace miniqat::cli {

using namespace training;

namespace {

/// Percent with enough digits to tell all from nearly all: 100% means every one.
std::string percentage(double share, int digits) {
  const double scale = std::pow(10.0, digits + 2);
  const double shown = share < 1 ? std::min(share, 1 - 1 / scale) : share;
  return formatted("%.*f%%", digits, 100 * shown);
}

std::string score_row(const Score& score) {
  const std::string result = score.measure ? score.text() : percentage(score.accuracy(), 2);
  return formatted("%-24s %9s %12s %14s %9d\n", score.name.c_str(), result.c_str(),
                   percentage(score.agreement(), 2).c_str(), percentage(score.outputs.share(), 3).c_str(),
                   score.outputs.largest);
}

nlohmann::ordered_json to_json(const Agreement& agreement) {
  return {{"count", agreement.count},
          {"equal", agreement.equal},
          {"share", agreement.share()},
          {"largest_difference", agreement.largest}};
}

nlohmann::ordered_json to_json(const Score& score) {
  nlohmann::ordered_json json = {{"name", score.name}, {"examples", score.examples}};
  if (score.measure) {
    json[score.measure->kind->key] = score.measure->value;
  } else {
    json["correct"] = score.correct;
    json["accuracy"] = score.accuracy();
    json["top1_agreement_with_integer"] = score.agreement();
  }
  json["outputs"] = to_json(score.outputs);
  return json;
}

/// `of`: which arithmetic it is, if it is not the simulation.
void check_steps(const std::vector<LayerComparison>& layers, const std::string& of, BoundCheck& check) {
  for (const LayerComparison& layer : layers) {
    check.value = std::max(*check.value, static_cast<double>(layer.alone.largest));
    if (layer.alone.largest > check.bound)
      check.faults.push_back(
          concat(layer.operation, of, ": ", counted(layer.alone.largest, "step"), " apart, more than ", check.bound));
  }
}

/// Two columns: of operations given equal inputs, and from the input on.
std::string layer_columns(const LayerComparison& layer) {
  return formatted(" %11s %7d %11s %7d", percentage(layer.alone.share(), 4).c_str(), layer.alone.largest,
                   percentage(layer.end_to_end.share(), 4).c_str(), layer.end_to_end.largest);
}

/// `marked`: the operations that get an asterisk.
std::string layer_table(const std::vector<LayerComparison>& layers, const std::string& noun,
                        const std::set<std::string>& marked = {}) {
  constexpr std::size_t kOtherColumns = 58, kFewest = 9;
  const std::size_t most = std::max(text_columns(), kOtherColumns + kFewest) - kOtherColumns;
  std::size_t width = kFewest;
  for (const LayerComparison& layer : layers) width = std::max(width, std::min(layer.operation.size(), most));
  const int w = static_cast<int>(width);
  std::string text = formatted("%-*s %-15s  given equal inputs from the %s on\n", w, "", "", noun.c_str());
  text += formatted("%-*s %-15s %11s %7s %11s %7s\n", w, "operation", "type", "equal", "largest", "equal", "largest");
  for (const LayerComparison& layer : layers)
    text += concat(formatted("%-*s %-15s", w, utf8::fitted(layer.operation, width).c_str(), layer.type.c_str()),
                   layer_columns(layer), marked.contains(layer.operation) ? " *" : "", "\n");
  return text;
}

std::string layer_tables(const Verification& v, const std::string& noun) {
  if (!v.on_integers) return layer_table(v.layers, noun);
  const OnIntegers& other = *v.on_integers;
  return concat("simulated\n", layer_table(v.layers, noun), "\non integers\n",
                layer_table(other.layers, noun, other.multiplying),
                "* multiplies integers with --arithmetic integer, here\n");
}

/// In lines that fit the terminal.
std::string lines_of(const std::string& text) { return joined(wrapped(text, text_columns()), "\n") + "\n"; }

nlohmann::ordered_json to_json(const std::vector<LayerComparison>& layers) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const LayerComparison& layer : layers)
    json.push_back({{"operation", layer.operation},
                    {"type", layer.type},
                    {"tensor", layer.tensor},
                    {"alone", to_json(layer.alone)},
                    {"end_to_end", to_json(layer.end_to_end)}});
  return json;
}

nlohmann::ordered_json to_json(const std::vector<BoundCheck>& checks) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const BoundCheck& check : checks)
    json[check.name] = {{"bound", check.bound},
                        {"value", check.value ? nlohmann::ordered_json(*check.value) : nullptr},
                        {"holds", check.faults.empty()}};
  return json;
}

}  // namespace

std::string VerifyReport::title() const {
  return concat(model, " ", quantization, " on ", dataset, ": ",
                counted(verification.integer.examples, concat("test ", noun)));
}

std::string VerifyReport::table() const {
  const Verification& v = verification;
  std::string text = lines_of(printable(title())) + "\n";
  const bool has_classes = !v.integer.measure;
  text += formatted("%-24s %9s %12s %14s %9s\n", "", has_classes ? "accuracy" : "",
                    has_classes ? "same class" : "all equal", "equal outputs", "largest");
  text += score_row(v.simulated);
  if (v.on_integers) text += score_row(v.on_integers->score);
  text += score_row(v.integer);
  for (const Score& score : runtimes) text += score_row(score);
  for (const std::string& line : left_out) text += lines_of(printable(line));
  for (const std::string& line : failed) text += lines_of(printable(line));
  text += lines_of(concat(has_classes ? "same class" : "examples with all outputs equal",
                          ", equal outputs, largest difference (steps): beside the integer engine"));
  text += concat("\n", layer_tables(v, noun));
  text +=
      lines_of(concat("integers of the evaluation graph beside the integer engine's; fast engine and reference loops: ",
                      v.reference_equal ? "equal" : "NOT EQUAL", " on ", counted(v.reference_examples, "example")));
  return text;
}

nlohmann::ordered_json VerifyReport::json() const {
  nlohmann::ordered_json json = {{"title", title()},
                                 {"run", run},
                                 {"model", model},
                                 {"quantization", quantization},
                                 {"bits", bits.json()},
                                 {"dataset", dataset},
                                 {"examples", verification.integer.examples},
                                 {"simulated", to_json(verification.simulated)},
                                 {"integer", to_json(verification.integer)},
                                 {"reference_examples", verification.reference_examples},
                                 {"reference_equal", verification.reference_equal},
                                 {"runtimes", nlohmann::ordered_json::array()},
                                 {"left_out", left_out},
                                 {"failed", failed},
                                 {"bounds", to_json(checks())},
                                 {"passed", broken().empty()},
                                 {"layers", to_json(verification.layers)},
                                 {"on_integers", nullptr}};
  for (const Score& score : runtimes) json["runtimes"].push_back(to_json(score));
  if (const auto& on_integers = verification.on_integers) {
    json["on_integers"] = to_json(on_integers->score);
    json["on_integers"]["multiplying"] = on_integers->multiplying;
    json["on_integers"]["layers"] = to_json(on_integers->layers);
  }
  return json;
}

std::vector<BoundCheck> VerifyReport::checks() const {
  const Verification& v = verification;
  // Counts of examples, so that a bound of exactly so many points is not broken by rounding.
  const double slack = 1e-9;
  std::vector<const Score*> of_graph = {&v.simulated};
  if (v.on_integers) of_graph.push_back(&v.on_integers->score);
  std::vector<BoundCheck> checks;
  if (const std::optional<double> bound = bounds.accuracy_difference) {
    checks.push_back({"max_accuracy_difference", *bound, 0.0});
    for (const Score* score : of_graph) {
      const double difference = 100 * std::abs(score->accuracy() - v.integer.accuracy());
      checks.back().value = std::max(*checks.back().value, difference);
      if (difference > *bound + slack)
        checks.back().faults.push_back(
            formatted("accuracies, %s and of the integer engine, differ by %.3f points, more than %g",
                      score->name.c_str(), difference, *bound));
    }
  }
  const auto require_agreement = [&](const Score& score) {
    BoundCheck& check = checks.back();
    const double share = 100 * score.agreement();
    check.value = std::min(check.value.value_or(share), share);
    if (share < check.bound - slack)
      check.faults.push_back(formatted("%s and the integer engine %s for %.3f%%, less than %g%%", score.name.c_str(),
                                       v.integer.measure ? "have equal outputs" : "choose the same class", share,
                                       check.bound));
  };
  if (bounds.agreement) {
    checks.push_back({"min_agreement", *bounds.agreement, {}});
    for (const Score* score : of_graph) require_agreement(*score);
  }
  if (bounds.runtime_agreement) {
    checks.push_back({"min_runtime_agreement", *bounds.runtime_agreement, {}, failed});
    for (const Score& score : runtimes) require_agreement(score);
    if (runtimes.empty()) checks.back().faults.push_back("no other runtime could run");
  }
  if (bounds.steps) {
    checks.push_back({"max_steps", static_cast<double>(*bounds.steps), 0.0});
    check_steps(v.layers, "", checks.back());
    if (v.on_integers) check_steps(v.on_integers->layers, ", on integers", checks.back());
  }
  return checks;
}

std::vector<std::string> VerifyReport::broken() const {
  std::vector<std::string> lines;
  if (!verification.reference_equal) lines.push_back("the fast engine and the reference loops differ");
  for (const BoundCheck& check : checks()) lines.insert(lines.end(), check.faults.begin(), check.faults.end());
  return lines;
}

}  // namespace miniqat::cli
