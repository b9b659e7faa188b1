#include "core/text/json_text.h"

#include <gtest/gtest.h>

#include <chrono>
#include <utility>

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

/// In words for the user of a damaged file; the library's are for its programmer.
TEST(JsonText, DamageHasItsPlaceAndPlainWords) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "line 1, column 1: unexpected end of input"},
      {"{\n  \"a\": [1,", "line 2, column 10: unexpected end of input"},
      {"{\"a\" 1}", "line 1, column 6: unexpected \"1\""},
      {"{} {}", "line 1, column 4: unexpected \"{\""},
      {"[1, nan]", "line 1, column 6: unexpected \"na\""},
      {"[\"abc", "line 1, column 5: a text lacks its closing quote"},
      {"[\"\xff\"]", "line 1, column 3: bytes that are not UTF-8"},
      {"[\"a\nb\"]", "a control character in a text"},
      {R"(["\x"])", "a text has an escape that JSON does not have"},
      {R"(["\u12"])", "a text has an escape that is not complete"},
      {R"(["\ud83d"])", "a text has an escape that is not complete"},
      {"[1e]", "a number is not complete"},
      {"[-]", "a number is not complete"},
      {"[1e999]", "the number 1e999 is larger than any that can be kept"},
      {R"({"a" "b c"})", R"(unexpected "\"b c\"")"}};
  for (const auto& [text, words] : cases) {
    const std::string message = refusal(text);
    EXPECT_TRUE(mentions(message, {"malformed JSON at line", words})) << message;
    for (const char* raw : {"json.exception", "syntax error", "while parsing", "last read", "invalid"})
      EXPECT_EQ(message.find(raw), std::string::npos) << message;
  }
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
