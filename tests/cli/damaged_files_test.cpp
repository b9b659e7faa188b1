// Files of a run that something has damaged: what reads them says so in plain words, with the file and the place, or
// goes on without them; no word of a library's, and no page that cannot be drawn.

#include <gtest/gtest.h>

#include <functional>

#include "core/text/error.h"
#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"
#include "tests/fewer_cases.h"

namespace miniqat::testing::damaged_files_test {
namespace {

using Json = nlohmann::ordered_json;

/// A float run, its integers and its sensitivity, which all tests share and leave as they were.
class DamagedFilesTest : public SharedPlaceTest<DamagedFilesTest> {
 public:
  static void make() {
    make_float_run(*place_, "tiny", "float");
    expect_success(
        program("quantize float --weight-bits 4 --activation-bits 4 --epochs 1 --batches 2 --threads 1 --out run"));
    expect_success(program({"verify", "run", "--no-runtimes", "--examples", "4", "--threads", "1"}));
    expect_success(program("sensitivity float --bits 4,8 --pictures 8 --batches 2 --threads 1 --out widths"));
  }

 protected:
  static Outcome report() {
    return program("report run --sensitivity widths --pictures 0 --examples 1 --threads 1 --out report.html");
  }

  static void expect_plain(const std::string& text, const std::string& what) {
    for (const char* raw : {"json.exception", "type_error", "parse_error", "syntax error"})
      EXPECT_EQ(text.find(raw), std::string::npos) << what << ": " << text.substr(0, 2000);
  }

  /// What `report` and `runs` say of a file with these bytes.
  static void expect_plain_words_for(const std::string& file, const std::string& bytes, const std::string& what) {
    const std::string before = bytes_of(path(file));
    place_->write(file, bytes);
    const Outcome page = report();
    expect_plain(page.err, what);
    if (file == "run/quantize.json" || file == "run/summary.json" || file == "run/config.json") {
      const Outcome list = program({"runs", "run"});
      expect_plain(list.out + list.err, what);
    }
    // 2: settings, which are checked as those of a command line.
    EXPECT_TRUE(page.status >= 0 && page.status <= 2) << what << ": " << page.status;
    if (page.status != 0) {
      expect_text(page.err, {file});
    } else {
      expect_plain(bytes_of(path("report.html")), what);
    }
    place_->write(file, before);
  }
};

/// Calls `visit(copy, place)` for a copy of the JSON with a value of another type at each place in turn. Of a list the
/// first element stands for all.
void with_each_wrong(const Json& json, const std::function<void(const Json&, const std::string&)>& visit) {
  std::vector<Json::json_pointer> places = {Json::json_pointer("")};
  const std::function<void(const Json&, const Json::json_pointer&)> collect = [&](const Json& at,
                                                                                  const Json::json_pointer& place) {
    for (std::size_t i = 0; at.is_array() && i < std::min<std::size_t>(at.size(), 1); ++i) {
      places.push_back(place / i);
      collect(at[i], place / i);
    }
    if (!at.is_object()) return;
    for (const auto& item : at.items()) {
      places.push_back(place / item.key());
      collect(item.value(), place / item.key());
    }
  };
  collect(json, Json::json_pointer(""));
  for (const Json::json_pointer& place : places) {
    Json wrong = json;
    wrong[place] = json[place].is_string() || json[place].is_object() ? Json(5) : Json("x");
    visit(wrong, place.to_string());
  }
}

TEST_F(DamagedFilesTest, AValueOfAnotherTypeIsNamed) {
  OneIn chosen(4);
  for (const std::string file : {"run/quantize.json", "run/summary.json", "run/verify.json", "run/machine.json",
                                 "run/commands.json", "widths/sensitivity.json"}) {
    Json json = Json::parse(bytes_of(path(file)));
    // Settings have checks and tests of their own.
    for (const char* settings : {"training", "calibration"})
      if (file == "run/quantize.json") json[settings] = Json::object();
    if (file == "widths/sensitivity.json") json = {{"quantizers", json["quantizers"]}};
    with_each_wrong(json, [&](const Json& wrong, const std::string& place) {
      if (chosen()) expect_plain_words_for(file, wrong.dump(), concat(file, " ", place));
    });
  }
}

TEST_F(DamagedFilesTest, TextThatIsNoJsonIsNamed) {
  for (const std::string file : {"run/quantize.json", "run/summary.json", "run/verify.json", "run/config.json",
                                 "run/metrics.jsonl", "widths/sensitivity.json"})
    for (const std::string& bytes : {std::string(), std::string("{\"a\": [1,"), std::string("\xff\x00{", 3)})
      expect_plain_words_for(file, bytes, concat(file, " of ", bytes.size(), " bytes"));
}

TEST_F(DamagedFilesTest, TheWordsHaveTheFileAndThePlace) {
  for (const auto& [file, bytes, words] :
       {std::tuple("run/quantize.json", R"({"rows": [{"name": 5}]})", "rows[0].name must be a text, is 5"),
        std::tuple("run/quantize.json", R"({"training": {"task": 5}})", "training.task must be a text, is 5"),
        std::tuple("run/summary.json", R"({"task": 5})", "task must be a text, is 5")}) {
    const std::string before = bytes_of(path(file));
    place_->write(file, bytes);
    const Outcome page = report(), list = program({"runs", "run"});
    place_->write(file, before);
    expect_text(page.out + page.err + list.err, {concat(file, ": ", words)});
    expect_plain(page.err + list.err, words);
  }
}

/// A line of metrics is left out, which is said.
TEST_F(DamagedFilesTest, ADamagedLineOfMetricsIsANote) {
  const std::string file = "run/metrics.jsonl", before = bytes_of(path(file));
  place_->write(file, "{\"step\": \n" + before);
  const Outcome page = report();
  place_->write(file, before);
  EXPECT_EQ(page.status, 0) << page.err;
  expect_text(page.err, {"run/metrics.jsonl: line 1 is damaged and left out"});
}

}  // namespace
}  // namespace miniqat::testing::damaged_files_test
