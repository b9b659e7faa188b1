// A report in a browser: headless Chromium draws what the data say, and loads nothing.

#include "tests/browser.h"

#include <gtest/gtest.h>

#include <regex>

#include "core/text/error.h"
#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"
#include "tests/training/report/judged_page.h"

namespace miniqat::training::report_browser_test {
namespace {

using testing::expect_no_complaint;

class ReportBrowserTest : public testing::TinyTaskTest {
 protected:
  std::string report_on(const testing::Arguments& words) const {
    testing::Arguments line = {"report", "--threads", "1", "--out", "report.html"};
    line.insert(line.end(), words.begin(), words.end());
    const testing::Outcome outcome = program(line);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return testing::bytes_of(path("report.html"));
  }

  std::string judged_page(const testing::Arguments& words) const { return testing::judged_page(report_on(words)); }
};

TEST_F(ReportBrowserTest, DrawsRunsInAnyState) {
  MINIQAT_NEED_BROWSER();
  place_.write("two.json", R"({"fc": {"weight_bits": 2, "activation_bits": 2}, "*": 8})");
  testing::expect_success(train("float", {"--float"}));
  testing::expect_success(program({"calibrate", "float", "--batches", "2", "--threads", "1", "--out", "ptq"}));
  testing::expect_success(train(
      "two", {"--bits-config", "two.json", "--quant-delay", "5", "--model", "norm.json", "--freeze-bn-delay", "9"}));
  testing::expect_success(train("four", {"--weight-bits", "4", "--activation-bits", "4", "--per-channel"}));
  testing::expect_success(train("partly", {"--scope", "conv1"}));
  testing::expect_success(program({"verify", "four", "--no-runtimes", "--threads", "1"}));
  testing::expect_success(train("<b>&stopped", {"--stop-at", "3", "--validation", "8"}));
  // A wide window for several runs, a narrow one for the one that has everything.
  const nlohmann::json many =
      expect_no_complaint(testing::visit(judged_page({"float", "ptq", "two", "four", "partly", "<b>&stopped"})));
  EXPECT_EQ(many.value("comparedValidations", 0), 3) << "float, simulation and integers of the stopped run";
  testing::expect_success(program({"sensitivity", "float", "--bits", "2,4", "--pictures", "8", "--batches", "2",
                                   "--threads", "1", "--out", "sens"}));
  // As of a network of very many layers: the accuracy beside a count may be a recorded one, of all pictures.
  expect_no_complaint(
      testing::visit(std::regex_replace(judged_page({"four"}), std::regex("\"part_examples\":"), "$&9")));
  std::string page = judged_page({"four", "--sensitivity", "sens"});
  const nlohmann::json found = expect_no_complaint(testing::visit(page, 500, 900));
  EXPECT_EQ(found.value("narrow", 0), 2) << "tensors of 4 bits in narrow range: the weights of both layers";
  EXPECT_EQ(found.value("comparedLosses", 0), 8) << "2 layers, weights and outputs, 2 widths";
  // The policy refuses a request, and the console shows it.
  page.insert(page.rfind("</body>"), "<img src=\"http://127.0.0.1:9/picture.png\">");
  EXPECT_TRUE(testing::policy_refused(testing::visit(page)));
}

/// Numbers, labels and anomalies of tables, and two classes of series that are lines or, with many channels, maps.
class TasksReportTest : public ReportBrowserTest {
 protected:
  TasksReportTest() {
    std::string sums = "a,b,sum,ratio\n", flags = "a,b,up,right\n", hums = "a,b,c,label\n";
    for (int i = 0; i < 120; ++i) {
      const double a = (i * 7 % 31 - 15) / 10.0, b = (i * 11 % 29 - 14) / 10.0;
      // The last of every six rows become test examples.
      const bool odd = i % 12 == 11;
      sums += concat(a, ",", b, ",", 20 + 3 * a - b, ",", a * b, "\n");
      flags += concat(a, ",", b, ",", b > 0 ? 1 : 0, ",", a > 0 ? 1 : 0, "\n");
      hums += concat(a, ",", b, ",", a + b + (odd ? 4 : 0), ",", odd ? 1 : 0, "\n");
    }
    place_.write("sums.csv", sums);
    place_.write("flags.csv", flags);
    place_.write("hums.csv", hums);
    for (const int channels : {2, 12}) write_series(concat("series", channels), channels);
  }

  void write_series(const std::string& folder, int channels) const {
    std::string labels = "file,label\n";
    for (int i = 0; i < 48; ++i) {
      std::string series;
      for (int step = 0; step < 20; ++step)
        for (int channel = 0; channel < channels; ++channel)
          series += concat((step * (i % 2 + 1) + channel * 3 + i * 5) % 17, channel + 1 == channels ? "\n" : ",");
      place_.write(concat(folder, "/", i, ".csv"), series);
      labels += concat(i, ".csv,", i % 2 == 0 ? "slow" : "fast", "\n");
    }
    place_.write(folder + "/labels.csv", labels);
  }

  void train_on(const std::string& dataset, const std::string& out, const testing::Arguments& more) const {
    const testing::Arguments settings = "--model mlp --width 0.25 --batch-size 10 --epochs 3 --threads 1 --log-every 1";
    const testing::Outcome outcome =
        program(testing::Arguments{"train", "--dataset", dataset, "--out", out} + settings + more);
    // Notes say what became of the columns.
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  }
};

TEST_F(TasksReportTest, DrawsNumbersAnomaliesLabelsAndSeries) {
  MINIQAT_NEED_BROWSER();
  train_on("sums.csv", "regress", {"--target", "sum,ratio"});
  train_on("flags.csv", "labels", {"--target", "up,right"});
  train_on("hums.csv", "anomalies", {"--model", "autoencoder"});
  train_on("./series2", "lines", {});
  train_on("./series12", "maps", {"--float"});
  EXPECT_EQ(program({"verify", "regress", "--no-runtimes", "--threads", "1"}).status, 0);
  const std::string page = judged_page({"regress", "labels", "anomalies", "lines", "maps"});
  const nlohmann::json found = expect_no_complaint(testing::visit(page));
  EXPECT_EQ(found.value("drawnExamples", 0), 3 * 12 + 2 * 8) << "twelve of each, eight test examples of the series";
  expect_no_complaint(testing::visit(page, 400, 900));
  const nlohmann::json layout = testing::look_at_layout(report_on({"regress", "labels", "anomalies", "lines", "maps"}),
                                                        testing::report_script("layout_steps.js"));
  EXPECT_EQ(layout.value("complaints", nlohmann::json()), nlohmann::json::array());
}

TEST_F(ReportBrowserTest, AccuraciesFitAPhoneAndNothingIsCutOff) {
  MINIQAT_NEED_BROWSER();
  testing::expect_success(train("float", {"--float"}));
  const std::string long_name = "tiny_network_4_bits_weights_seed_1";
  testing::expect_success(train(long_name, {"--weight-bits", "4", "--activation-bits", "4", "--ranges", "learned",
                                            "--ends-bits", "8", "--validation", "8", "--stop-at", "3"}));
  testing::expect_success(
      train("four", {"--weight-bits", "4", "--activation-bits", "4", "--ranges", "learned", "--ends-bits", "8"}));
  testing::expect_success(program({"verify", "four", "--no-runtimes", "--threads", "1"}));
  testing::expect_success(program({"sensitivity", "float", "--bits", "2,4", "--pictures", "8", "--batches", "2",
                                   "--threads", "1", "--out", "sens"}));
  const std::string page = report_on({"float", long_name, "four", "--sensitivity", "sens"});
  const nlohmann::json found = testing::look_at_layout(page, testing::report_script("layout_steps.js"));
  EXPECT_EQ(found.value("complaints", nlohmann::json()), nlohmann::json::array());
  EXPECT_EQ(found.value("looks", 0), 9) << "three widths: as it opens, unfolded, scrolled";
  EXPECT_GT(found.value("shades", 0), 10) << "tables and graphs of a phone";
}

}  // namespace
}  // namespace miniqat::training::report_browser_test
