#include "labs/lab.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>

namespace lab {
namespace {

/// As many results are shown in one line.
constexpr std::size_t kMost = 8;

bool equal(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  if (tolerance == 0) return a == b && std::signbit(a) == std::signbit(b);
  return a == b || std::abs(a - b) <= tolerance * std::max({1.0, std::abs(a), std::abs(b)});
}

bool equal(const Numbers& a, const Numbers& b, double tolerance) {
  return std::ranges::equal(a, b, [&](double x, double y) { return equal(x, y, tolerance); });
}

bool untouched(const std::vector<Case>& cases) {
  return std::ranges::all_of(
      cases, [](const Case& one) { return std::ranges::all_of(one.got, [](double number) { return number == 0; }); });
}

/// Whether mistake number `mistake` explains the reader's results.
bool explains(const std::vector<Case>& cases, std::size_t mistake, double tolerance) {
  bool is_one = false;
  for (const Case& one : cases) {
    if (!equal(one.got, one.mistaken.at(mistake), tolerance)) return false;
    is_one = is_one || !equal(one.right, one.mistaken[mistake], tolerance);
  }
  return is_one;
}

bool is_shorter_or_longer(const Case& one) { return one.got.size() != one.right.size(); }

/// There is a NaN or an infinity where a number is right.
bool divides_by_zero(const Case& one) {
  return std::ranges::any_of(one.got, [](double number) { return !std::isfinite(number); }) &&
         std::ranges::all_of(one.right, [](double number) { return std::isfinite(number); });
}

std::string hint_for(const std::vector<Case>& cases, const std::vector<std::string>& hints, double tolerance) {
  for (std::size_t mistake = 0; mistake < hints.size(); ++mistake)
    if (explains(cases, mistake, tolerance)) return hints[mistake];
  if (untouched(cases)) return "The function returns only zeros, or nothing. Fill it in; the page has the formulas.";
  if (std::ranges::any_of(cases, is_shorter_or_longer))
    return "Your result has another length than it should have. Make it as long as it must be before the loop, and set each number in the loop.";
  if (std::ranges::any_of(cases, divides_by_zero))
    return "Some of your results are infinite or NaN. Something is divided by 0: look at each divisor.";
  if (std::ranges::any_of(cases, [&](const Case& one) { return equal(one.right, one.got, tolerance); }))
    return "No known mistake gives these results, and some lines are right. What do the wrong ones have that the right ones have not?";
  return "No known mistake gives these results. Take the first wrong line and compute it by hand.";
}

}  // namespace

void Report::print_wrong(const std::string& what, const Case& wrong, double tolerance) {
  out_ << "  wrong  " << wrong.question << ": " << what << " should be " << text(wrong.right);
  if (is_shorter_or_longer(wrong)) {
    out_ << "; yours has " << wrong.got.size() << " numbers instead of " << wrong.right.size() << "\n";
    return;
  }
  out_ << "; yours: " << text(wrong.got) << "\n";
  if (wrong.right.size() <= kMost) return;
  std::size_t i = 0;
  while (equal(wrong.right[i], wrong.got[i], tolerance)) ++i;
  out_ << "         the first wrong one is number " << i + 1 << " of " << wrong.right.size();
  if (!wrong.inputs.empty()) out_ << ", for " << text(wrong.inputs.at(i), "%.9g");
  out_ << ": " << text(wrong.right[i], "%.9g") << "; yours: " << text(wrong.got[i], "%.9g") << "\n";
}

void Report::judge(const std::string& what, const std::vector<Case>& cases, const std::vector<std::string>& hints,
                   double tolerance) {
  const int wrong_before = wrong_;
  for (const Case& one : cases) {
    if (equal(one.right, one.got, tolerance)) {
      ++right_;
      out_ << "  right  " << one.question << ": " << what << " " << text(one.right) << "\n";
    } else {
      ++wrong_;
      print_wrong(what, one, tolerance);
    }
  }
  if (wrong_ > wrong_before) out_ << "Hint: " << hint_for(cases, hints, tolerance) << "\n";
}

std::string text(double number, const char* format) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, number);
  return buffer;
}

std::string text(const Numbers& numbers) {
  if (numbers.size() == 1) return text(numbers[0]);
  std::string result = "(";
  for (std::size_t i = 0; i < std::min(numbers.size(), kMost); ++i) result += (i > 0 ? ", " : "") + text(numbers[i]);
  return result + (numbers.size() > kMost ? ", ...)" : ")");
}

std::vector<float> bell(std::size_t count, unsigned seed) {
  constexpr double kDeviationOfUniform = 0.28867513459481287;  // 1 / sqrt(12)
  std::uint32_t state = seed * 2654435761U + 1;
  std::vector<float> values(count);
  for (float& value : values) {
    double sum = -2;
    for (int i = 0; i < 4; ++i) {
      state = state * 1664525U + 1013904223U;  // Numerical Recipes, section 7.1
      sum += (state >> 8) / double(1 << 24);
    }
    value = static_cast<float>(sum / (2 * kDeviationOfUniform));
  }
  return values;
}

int run(const Lab& lab, const std::vector<std::string>& arguments) {
  if (arguments.size() == 1 && arguments[0] == "--figures") {
    lab.show(std::cout);
    return 0;
  }
  if (arguments.size() == 2 && arguments[0] == "--svg") {
    std::ofstream file(arguments[1]);
    file << lab.figure();
    file.close();
    if (file) return 0;
    std::cerr << "labs: cannot write " << arguments[1] << "\n";
    return 1;
  }
  if (!arguments.empty()) {
    std::cerr << "labs: options are --figures and --svg FILE\n";
    return 2;
  }
  Report report(std::cout);
  lab.check(report);
  if (report.passed())
    std::cout << "Lab " << lab.number << ": all right.\n";
  else
    std::cout << "Lab " << lab.number << ": " << report.wrong() << " of " << report.right() + report.wrong()
              << " are wrong.\n";
  return report.passed() ? 0 : 1;
}

}  // namespace lab
