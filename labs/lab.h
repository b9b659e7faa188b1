#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

// What the checks of the labs share. A lab is a folder with a page (README.md), the declaration of one function
// (lab.h), a file to fill in that has the function's name, and a check (check.cpp) whose right results come from
// miniqat itself. CONTRIBUTING.md says how to add one.
namespace lab {

using Numbers = std::vector<double>;

/// One question to the function, with the results of everybody.
struct Case {
  /// The question in words: "range [-1, 2] at 4 bits".
  std::string question;
  Numbers right;
  /// The reader's results.
  Numbers got;
  /// The results of each known mistake, in the order of the hints.
  std::vector<Numbers> mistaken;
  /// The input of each result, if each has one: a difference is shown with its input.
  Numbers inputs = {};
};

/// Says in plain words which results are right and which are wrong.
class Report {
 public:
  explicit Report(std::ostream& out) : out_(out) {}

  /// A line for each case. If one is wrong, also the hint of the first mistake that has the reader's results in every
  /// case, and other results than the right ones in at least one; without such a mistake a general hint. `what` names
  /// the results ("scale and zero point"). Of more than eight results the first wrong one has a line of its own.
  /// Two numbers are equal within `tolerance`, relative to the larger one above 1; with 0 if they are the same, and -0
  /// is not 0 then. NaN equals NaN.
  void judge(const std::string& what, const std::vector<Case>& cases, const std::vector<std::string>& hints,
             double tolerance = 1e-5);

  /// There was at least one case, and all were right.
  bool passed() const { return right_ > 0 && wrong_ == 0; }
  int right() const { return right_; }
  int wrong() const { return wrong_; }

 private:
  void print_wrong(const std::string& what, const Case& wrong, double tolerance);

  std::ostream& out_;
  int right_ = 0;
  int wrong_ = 0;
};

/// The hints of a table of mistakes, in its order.
template <class Mistake, std::size_t kCount>
std::vector<std::string> hints_of(const Mistake (&mistakes)[kCount]) {
  std::vector<std::string> hints;
  for (const Mistake& mistake : mistakes) hints.push_back(mistake.hint);
  return hints;
}

/// "%.6g", or what `format` says.
std::string text(double number, const char* format = "%.6g");
/// "(1, 2, 3)", the first eight.
std::string text(const Numbers& numbers);
/// The numbers as double.
template <class T>
Numbers numbers(const std::vector<T>& values) {
  return Numbers(values.begin(), values.end());
}

/// Numbers like those of weights: sums of four uniform ones, with mean 0 and standard deviation 1. The same on every
/// machine.
std::vector<float> bell(std::size_t count, unsigned seed);

/// A lab as its program and its test see it.
struct Lab {
  /// "01"
  std::string number;
  std::function<void(Report&)> check;
  /// Prints the figures of the page.
  std::function<void(std::ostream&)> show;
  /// The page's picture, as SVG.
  std::function<std::string()> figure;
};

/// main() of a lab: without arguments the check; `--figures` prints those of the page, `--svg FILE` writes its picture.
/// Returns 0 if all is right, else 1; 2 for other arguments.
int run(const Lab& lab, const std::vector<std::string>& arguments);

}  // namespace lab
