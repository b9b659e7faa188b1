#include "core/text/json_text.h"

#include <gtest/gtest.h>

#include <chrono>

#include "core/text/json.h"
#include "tests/errors.h"

namespace miniqat::json_text_test {
namespace {

using Json = nlohmann::ordered_json;
using testing::error_of;
using testing::mentions;

std::string refusal(const std::string& text) {
  return error_of([&] { parse_json(text); });
}

TEST(JsonText, EveryKindOfValueSurvives) {
  for (const std::string text : {"null", "true", "false", "0", "-1", "18446744073709551615", "-9223372036854775808",
                                 "0.5", "-0.0", "1e300", R"("")", R"("Grüße \u0000 \ud83d\ude00")", "[]", "{}",
                                 R"([1,[2,[3]],{"a":[{}]}])", R"({"b":{"z":1,"a":[0.25,"x",null]},"a":{},"":false})"})
    EXPECT_EQ(parse_json(text), Json::parse(text)) << text;
}

TEST(JsonText, KeysKeepTheirOrder) { EXPECT_EQ(parse_json(R"({"b":1,"c":2,"a":3})").dump(), R"({"b":1,"c":2,"a":3})"); }

TEST(JsonText, KeysThatStandTwiceAreRefused) {
  EXPECT_TRUE(mentions(refusal(R"({"a": {"b": 1}, "b": 2, "a": 3})"), {"the key \"a\" occurs twice"}));
  EXPECT_TRUE(mentions(refusal("{\"\\u001b[31m\": 1, \"\\u001b[31m\": 2}"), {R"(the key "\x1b[31m" occurs twice)"}));
  EXPECT_EQ(refusal(R"({"a": {"a": 1}, "b": {"a": [{"a": 2}, {"a": 3}]}})"), "");
}

TEST(JsonText, NestsAsDeepAsItSays) {
  const auto lists = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(refusal(lists(kDeepestJson)), "");
  EXPECT_TRUE(mentions(refusal(lists(kDeepestJson + 1)), {"deeper than 64"}));
}

/// 200,000 keys take a fraction of a second; looked up one by one they would take minutes.
TEST(JsonText, TimeGrowsWithTheBytesWhateverTheKeys) {
  constexpr int kKeys = 200000;
  std::string text = "{\"k\":0";
  for (int i = 0; i < kKeys; ++i) text += ",\"k" + std::to_string(i) + "\":{\"n\":" + std::to_string(i) + "}";
  const auto started = std::chrono::steady_clock::now();
  const Json json = parse_json(text + "}");
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(20));
  ASSERT_EQ(json.size(), kKeys + 1u);
  EXPECT_EQ(json.back()["n"], kKeys - 1);
}

TEST(JsonText, ShownValuesAreShortAndHarmless) {
  EXPECT_EQ(shown(Json::parse(R"({"a": [1, 2]})")), R"({"a": [1, 2]})");
  EXPECT_EQ(shown(Json("\x1b[31m")), R"("\x1b[31m")");
  EXPECT_LT(shown(Json(std::vector<int>(1000))).size(), 250u);
  EXPECT_LT(shown(Json(std::string(1000, 'x'))).size(), 250u);
}

}  // namespace
}  // namespace miniqat::json_text_test
