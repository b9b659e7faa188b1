// What holds of each lab: the blank fails, the solution passes, each mistake fails with the hint that it deserves; the
// page shows what the program prints, and the picture is the one that the program draws. One that cannot be written is
// an error.

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>

#include "labs/tests/trials.h"

namespace lab {
namespace {

namespace fs = std::filesystem;

const fs::path kLabs = fs::path(MINIQAT_SOURCE_DIR) / "labs";

std::vector<Trials>& all_trials() {
  static std::vector<Trials> trials;
  return trials;
}

std::string content(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

int failures = 0;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::cout << "FAILED: " << what << "\n";
  ++failures;
}

struct Outcome {
  bool passed = false;
  std::string printed;
};

Outcome outcome_of(const Trial& trial) {
  std::ostringstream out;
  Report report(out);
  trial.lab.check(report);
  return {report.passed(), out.str()};
}

std::set<std::string> hints_in(const std::string& printed) {
  std::set<std::string> hints;
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("Hint: ")) hints.insert(line.substr(6));
  return hints;
}

void check_trials(const std::vector<Trial>& trials) {
  expect(trials.size() >= 5, "a lab has a blank, a solution and three mistakes");
  const Outcome blank = outcome_of(trials[0]), solution = outcome_of(trials[1]);
  expect(!blank.passed && blank.printed.find("Fill it in") != std::string::npos, "the blank passes");
  expect(solution.passed, "the solution fails:\n" + solution.printed);
  std::set<std::string> seen;
  for (std::size_t i = 2; i < trials.size(); ++i) {
    const Outcome mistake = outcome_of(trials[i]);
    const std::string& title = trials[i].title;
    const std::string& wanted = trials[i].hint;
    expect(!mistake.passed, title + " passes");
    const std::set<std::string> hints = hints_in(mistake.printed);
    bool named = false;
    for (const std::string& hint : hints) named = named || hint.find(wanted) != std::string::npos;
    expect(named, title + " should get the hint \"" + wanted + "\":\n" + mistake.printed);
    expect(seen.insert(wanted).second, title + " has the hint of another mistake");
  }
}

/// The text without its blocks of C++ and shell, and what the blocks of output show.
struct Page {
  std::string prose;
  std::vector<std::string> outputs;
};

Page read_page(const fs::path& path) {
  Page page;
  std::istringstream lines(content(path));
  std::string fence;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      fence = fence.empty() ? line : "";
      if (fence == "```text") page.outputs.emplace_back();
    } else if (fence == "```text") {
      page.outputs.back() += line + "\n";
    } else if (fence.empty()) {
      page.prose += line + "\n";
    }
  }
  return page;
}

/// Every block of output, and every number with a decimal point in the prose, is printed by `--figures`.
void check_page(const std::string& folder, const Lab& lab) {
  std::ostringstream out;
  lab.show(out);
  const std::string shown = out.str();
  const Page page = read_page(kLabs / folder / "README.md");
  expect(!page.outputs.empty(), "the page shows no output");
  for (const std::string& output : page.outputs)
    expect(shown.find(output) != std::string::npos, "the page shows\n" + output + "but --figures prints\n" + shown);
  static const std::regex number(R"(\b\d+\.\d+\b)");
  std::set<std::string> printed;
  for (std::sregex_iterator match(shown.begin(), shown.end(), number); match != std::sregex_iterator(); ++match)
    printed.insert(match->str());
  for (std::sregex_iterator match(page.prose.begin(), page.prose.end(), number); match != std::sregex_iterator();
       ++match)
    expect(printed.contains(match->str()), "the page has " + match->str() + ", which --figures does not print");
  expect(page.prose.find("(figure.svg)") != std::string::npos, "the page does not show its picture");
  expect(content(kLabs / folder / "figure.svg") == lab.figure(),
         "figure.svg is another picture: ./labs/check " + lab.number + " --svg labs/" + folder + "/figure.svg");
}

/// What is written to std::cerr while it lives.
class Complaints {
 public:
  Complaints() : before_(std::cerr.rdbuf(text_.rdbuf())) {}
  Complaints(const Complaints&) = delete;
  Complaints& operator=(const Complaints&) = delete;
  ~Complaints() { std::cerr.rdbuf(before_); }

  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::streambuf* before_;
};

/// A picture that cannot be written is no success.
void check_lost_picture(const Lab& lab) {
  const std::string path = kLabs / "no folder" / "figure.svg";
  const Complaints complaints;
  const int status = run(lab, {"--svg", path});
  expect(status == 1, "--svg to a folder that is not there ends with status " + std::to_string(status));
  expect(complaints.text() == "labs: cannot write " + path + "\n", "--svg says \"" + complaints.text() + "\"");
}

}  // namespace

bool register_trials(const Trials& trials) {
  all_trials().push_back(trials);
  return true;
}

}  // namespace lab

int main(int argc, char** argv) {
  const std::string number = argc == 2 ? argv[1] : "";
  for (const lab::Trials& trials : lab::all_trials()) {
    if (!trials.folder.starts_with(number + "-")) continue;
    lab::check_trials(trials.trials);
    lab::check_page(trials.folder, trials.trials[0].lab);
    lab::check_lost_picture(trials.trials[0].lab);
    std::cout << trials.folder << ": " << lab::failures << " failures\n";
    return lab::failures == 0 ? 0 : 1;
  }
  std::cerr << "labs_test: there is no lab '" << number << "'\n";
  return 2;
}
