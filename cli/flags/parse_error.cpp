#include "cli/flags/parse_error.h"

#include <cstdlib>
#include <regex>
#include <vector>

#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"

namespace miniqat::cli {
namespace {

/// {"a", "b", "c"} of "a,b,c".
std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> parts(1);
  for (const char c : list) {
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

bool is_number(const std::string& text) {
  static const std::regex kNumber(R"([+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)");
  return std::regex_match(text, kNumber);
}

/// A number that is refused, and yet lies between the ends: 1e6 or 2.5 where whole numbers are asked for.
bool lies_in(const std::string& text, const std::string& low, const std::string& high) {
  return is_number(text) && std::stod(low) <= std::strtod(text.c_str(), nullptr) &&
         std::strtod(text.c_str(), nullptr) <= std::stod(high);
}

}  // namespace

std::string in_plain_words(const std::string& text) {
  // The name comes first in each: "--steps", or "graph" for a positional argument.
  static const std::regex kConversion(R"(Could not convert: (\S+) = ([^]*))");
  static const std::regex kNotAmong(R"((\S+): ([^]*) not in \{([^{}]*)\})");
  static const std::regex kNotInRange(R"((\S+): Value ([^]*) not in range (\S+) to (\S+))");
  static const std::regex kTooMany(R"((\S+): At Most (\d+) required but received (\d+))");
  static const std::regex kTooFew(R"((\S+): At least (\d+) required but received (\d+))");
  static const std::regex kMissing(R"((\S+): \d+ required \S+ missing)");
  std::smatch match;
  if (std::regex_match(text, match, kConversion))
    return concat(match[1].str(), " must be a ", is_number(match[2]) ? "whole number" : "number", ", got ",
                  quote(match[2].str()));
  if (std::regex_match(text, match, kNotAmong)) return wrong_choice(match[1].str(), match[2].str(), parts_of(match[3]));
  if (std::regex_match(text, match, kNotInRange))
    return concat(match[1].str(), " must be ", lies_in(match[2], match[3], match[4]) ? "a whole number in " : "in ",
                  match[3].str(), "..", match[4].str(), ", got ", quote(match[2].str()));
  if (std::regex_match(text, match, kTooMany))
    return concat(match[1].str(), " was given ", match[3].str(), " times, ",
                  match[2].str() == "1" ? "once" : match[2].str() + " times", " is the most");
  if (std::regex_match(text, match, kTooFew))
    return concat(match[1].str(), " needs ", match[2].str(), " values, got ", match[3].str());
  if (std::regex_match(text, match, kMissing)) return match[1].str() + " needs a value";
  return text;
}

}  // namespace miniqat::cli
