// `miniqat export --format html`: runs and test pictures on a page.

#include <gtest/gtest.h>

#include "core/text/json.h"
#include "tests/cli/program.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::export_html_test {
namespace {

using Json = nlohmann::json;

class ExportHtmlTest : public TinyTaskTest {
 protected:
  void SetUp() override {
    expect_success(train("run", "--weight-bits 8"));
    expect_success(train("small", "--weight-bits 4 --activation-bits 4 --quantize-input"));
  }

  Json data_of(const std::string& page) const {
    const std::string html = bytes_of(path(page)), begin = "id=\"data\">";
    const std::size_t from = html.find(begin) + begin.size();
    return Json::parse(html.substr(from, html.find("</script>", from) - from));
  }
};

TEST_F(ExportHtmlTest, PutsRunsAndPicturesOnAPage) {
  const Outcome outcome = expect_success(program("export run --compare small,run --out page.html"));
  EXPECT_EQ(outcome.out.find("page.html: tiny.json W8A8, "), 0u) << outcome.out;
  expect_text(outcome.out, {"of 3 models; 10 test pictures\nopen the file in a browser"});
  const Json data = data_of("page.html");
  ASSERT_EQ(data["models"].size(), 3u);
  EXPECT_EQ(data["models"][0]["label"], "tiny W8A8");
  EXPECT_EQ(data["models"][1]["label"].get<std::string>().find("tiny W4A4"), 0u);
  EXPECT_EQ(data["models"][2], data["models"][0]);
  EXPECT_FALSE(data["models"][0].contains("input_from_byte"));
  EXPECT_EQ(data["models"][1]["input_from_byte"].size(), 256u);
  const Json summary = Json::parse(bytes_of(path("run/summary.json")));
  EXPECT_EQ(data["models"][0]["accuracy"], summary["test_accuracy"]);
  // One of each class, in their order.
  ASSERT_EQ(data["pictures"].size(), 10u);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(data["pictures"][i]["name"], std::to_string(i));
  expect_success(program("export run --out page.html --test-vectors 12"));
  const Json more = data_of("page.html");
  ASSERT_EQ(more["pictures"].size(), 12u);
  EXPECT_EQ(more["pictures"][10]["name"], "0");
  EXPECT_NE(more["pictures"][10]["bytes"], more["pictures"][0]["bytes"]);
}

TEST_F(ExportHtmlTest, DoesWithoutTheDataSet) {
  std::filesystem::rename(path("digits"), path("moved"));
  const Outcome outcome = program("export run --out page.html");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err.find("miniqat export: no test pictures on the page ("), 0u) << outcome.err;
  expect_text(outcome.out, {"; 0 test pictures\n"});
  EXPECT_TRUE(data_of("page.html")["pictures"].empty());
  expect_success(program("export run --data-dir moved --out page.html"));
  EXPECT_EQ(data_of("page.html")["pictures"].size(), 10u);
}

TEST_F(ExportHtmlTest, RefusesWhatIsNoneOfItsMatters) {
  expect_error(program("export run --compare small,none --out page.html"), 1, {"none"});
  std::string settings = bytes_of(path("small/config.json"));
  const std::string classes = "\"task\": \"classify\"";
  ASSERT_NE(settings.find(classes), std::string::npos) << settings;
  place_.write("small/config.json",
               settings.replace(settings.find(classes), classes.size(), "\"task\": \"multilabel\""));
  expect_error(program("export run --compare small --out page.html"), 1, {"small", "this run's task is multilabel"});
  EXPECT_FALSE(std::filesystem::exists(path("page.html")));
}

}  // namespace
}  // namespace miniqat::testing::export_html_test
