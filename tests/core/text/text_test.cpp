#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <limits>

#include "core/tensors/shape.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/page.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "core/text/utf8.h"

namespace miniqat::text_test {
namespace {

TEST(Quote, PlainTextStaysAsItIs) {
  EXPECT_EQ(quote("conv1/Conv2D"), "\"conv1/Conv2D\"");
  EXPECT_EQ(quote(""), "\"\"");
  EXPECT_EQ(quote("Grüße, 数字, \U0001f600"), "\"Grüße, 数字, \U0001f600\"");
  EXPECT_EQ(printable("say \"yes\" \\ no"), "say \"yes\" \\ no");
}

TEST(Quote, QuotesAndBackslashesAreEscaped) { EXPECT_EQ(quote("a\"b\\c"), R"("a\"b\\c")"); }

TEST(Quote, WhatATerminalWouldObeyIsEscaped) {
  EXPECT_EQ(quote("\x1b[31mred\x07"), R"("\x1b[31mred\x07")");
  EXPECT_EQ(quote(std::string_view("a\nb\r\t\0\x7f", 7)), R"("a\nb\r\t\x00\x7f")");
  // The control sequence introducer of Unicode, a mark that turns the direction, a line separator.
  EXPECT_EQ(printable("\xc2\x9b|\xe2\x80\xae|\xe2\x80\xa8"), R"(\u009b|\u202e|\u2028)");
}

TEST(Quote, BytesThatAreNoUtf8AreEscaped) {
  EXPECT_EQ(printable("\xff|\xc3|\x80"), R"(\xff|\xc3|\x80)");
  // Too long for '/', half of a pair of UTF-16, beyond Unicode, cut off.
  EXPECT_EQ(printable("\xc0\xaf|\xed\xa0\x80|\xf4\x90\x80\x80"), R"(\xc0\xaf|\xed\xa0\x80|\xf4\x90\x80\x80)");
  EXPECT_EQ(printable("\xf0\x9f\x98"), R"(\xf0\x9f\x98)");
}

TEST(Quote, LongTextsAreShortened) {
  EXPECT_EQ(quote(std::string(200, 'x')), '"' + std::string(200, 'x') + '"');
  const std::string text = quote("begin" + std::string(5000, 'x') + "end");
  EXPECT_LT(text.size(), 230u);
  EXPECT_TRUE(text.starts_with("\"begin")) << text;
  EXPECT_TRUE(text.ends_with("end\" (5008 bytes)")) << text;
}

TEST(Quote, CutsBetweenCharacters) {
  for (int shift = 0; shift < 4; ++shift) {
    std::string text(static_cast<std::size_t>(shift), 'x');
    for (int i = 0; i < 100; ++i) text += "\U0001f600";
    EXPECT_EQ(quote(text).find("\\x"), std::string::npos) << quote(text);
  }
  EXPECT_LT(quote(std::string(5000, '\x80')).size(), 1000u);
}

using Names = std::vector<std::string>;

TEST(Suggest, TheNearestNameIsAskedFor) {
  const Names names = {"lenet", "lenet5", "mobilenet_v1", "resnet20"};
  EXPECT_EQ(did_you_mean("lnet", names), "; did you mean \"lenet\"?");
  EXPECT_EQ(did_you_mean("mobilenet", names), "; did you mean \"mobilenet_v1\"?");
  EXPECT_EQ(did_you_mean("vgg", names), "");
  EXPECT_EQ(did_you_mean("", names), "");
  EXPECT_EQ(did_you_mean("lenet", {}), "");
  // Two are equally far away: the first, or the one that the word is the beginning of.
  EXPECT_EQ(did_you_mean("lenet6", Names{"lenet4", "lenet5"}), "; did you mean \"lenet4\"?");
  EXPECT_EQ(did_you_mean("resnet", names), "; did you mean \"resnet20\"?");
  // Short names are two changes away from anything short.
  for (const char* word : {"", "-1", "7", "no"}) EXPECT_EQ(did_you_mean(word, Names{"a", "b2"}), "") << word;
  EXPECT_EQ(did_you_mean("a3", Names{"b", "a"}), "; did you mean \"a\"?");
  EXPECT_EQ(did_you_mean("ba", Names{"ab"}), "; did you mean \"ab\"?");
}

TEST(Suggest, UpperAndLowerCaseAreTheSame) {
  EXPECT_EQ(did_you_mean("LENET5", Names{"lenet", "lenet5"}), "; did you mean \"lenet5\"?");
  EXPECT_EQ(did_you_mean("conv1/relu", Names{"conv1/Relu", "fc1/Relu"}), "; did you mean \"conv1/Relu\"?");
}

TEST(Utf8, TextsOfOtherEncodings) {
  for (const char* text : {"", "plain", "Grüße", "数字\n"}) EXPECT_TRUE(utf8::is_valid(text)) << text;
  for (const char* text : {"Gr\xfc\xdf"
                           "e",
                           "\xff", "a\xc3"})
    EXPECT_FALSE(utf8::is_valid(text)) << printable(text);
}

TEST(Utf8, ColumnsOfATerminal) {
  EXPECT_EQ(utf8::columns(""), 0u);
  EXPECT_EQ(utf8::columns("plain"), 5u);
  EXPECT_EQ(utf8::columns("Grüße"), 5u);
  EXPECT_EQ(utf8::columns("数字"), 4u);
  EXPECT_EQ(utf8::columns("한글"), 4u);
  EXPECT_EQ(utf8::columns("かな"), 4u);
  EXPECT_EQ(utf8::columns("\U0001f600!"), 3u);
  EXPECT_EQ(utf8::columns("u\u0308"), 1u) << "a mark sits on its letter";
  EXPECT_EQ(utf8::columns("Ω→ж"), 3u);
  EXPECT_EQ(utf8::columns("\xff\xc3"), 2u) << "bytes that are no UTF-8";
}

TEST(Utf8, LongTextsLoseTheirMiddle) {
  EXPECT_EQ(utf8::fitted("0123456789", 10), "0123456789");
  EXPECT_EQ(utf8::fitted("0123456789", 9), "012...789");
  EXPECT_EQ(utf8::fitted("0123456789", 8), "012...89");
  EXPECT_EQ(utf8::fitted("äöüßäöüß", 7), "äö...üß");
  EXPECT_EQ(utf8::fitted("a\u0308bcdefgu\u0308", 5), "a\u0308...u\u0308") << "marks stay with their letters";
  for (std::size_t most = 5; most < 20; ++most) {
    const std::string text = utf8::fitted("猫猫x猫猫猫猫y猫猫z猫猫", most);
    EXPECT_LE(utf8::columns(text), most) << text;
    EXPECT_GE(utf8::columns(text) + 2, most) << text;
  }
}

TEST(Base64, IsThatOfRfc4648) {
  // The examples of its section 10.
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xff\xfe\xfb"), "//77");
}

TEST(Page, IsFilledOnce) {
  const auto part = [](std::string_view name) { return "<" + std::string(name) + "@x@>"; };
  EXPECT_EQ(fill_page("a @one@ b@two@", part), "a <one@x@> b<two@x@>") << "marks in a part stay";
  EXPECT_EQ(fill_page("nothing", part), "nothing");
}

TEST(Page, KeepsTextsFromBeingMarkup) {
  EXPECT_EQ(html_text("a <b> & c"), "a &lt;b> &amp; c");
  const nlohmann::ordered_json json = {{"key", "</script><!--"}};
  const std::string text = script_json(json);
  EXPECT_EQ(text.find('<'), std::string::npos);
  EXPECT_EQ(nlohmann::ordered_json::parse(text), json);
}

}  // namespace

using namespace std::string_literals;

TEST(Concat, WritesTextsAsTheyAre) {
  const std::string text = "a\0b"s;
  const char letters[] = {'l', 'i', 't', '\0', 'x'};
  char writable[] = "w";
  EXPECT_EQ(concat(text, std::string_view("view").substr(1, 2), "", 'c', letters, writable), "a\0bieclitw"s);
  EXPECT_EQ(concat(), "");
}

TEST(Concat, WritesNumbersAsAStreamDoes) {
  EXPECT_EQ(concat(-3, " ", std::size_t{18446744073709551615u}, " ", std::numeric_limits<std::int64_t>::min()),
            "-3 18446744073709551615 -9223372036854775808");
  EXPECT_EQ(concat(0.1f, " ", 1e-7, " ", 1234567.0, " ", 2.0, " ", std::numeric_limits<double>::infinity(), " ", true),
            "0.1 1e-07 1.23457e+06 2 inf 1");
}

TEST(Concat, WritesWhatHasAnOperator) {
  EXPECT_EQ(concat(Shape{2, 3}, " in ", std::filesystem::path("a \"b\"")), R"([2,3] in "a \"b\"")");
}

TEST(Counted, KnowsOneFromMany) {
  EXPECT_EQ(counted(1, "step"), "1 step");
  EXPECT_EQ(counted(std::int64_t{0}, "step"), "0 steps");
  EXPECT_EQ(counted(2, "batch") + counted(3, "class") + counted(4, "axis") + counted(5, "epoch"),
            "2 batches3 classes4 axes5 epochs");
  EXPECT_EQ(counted(1.0, "core") + counted(1.5, "core") + counted("1", "core"), "1 core1.5 cores1 core");
}

TEST(Concat, TemporariesLiveAsLongAsTheCall) {
  EXPECT_EQ(concat(std::string(100, 'x').substr(0, 3), std::to_string(7)), "xxx7");
}

TEST(Fail, ThrowsTheJoinedParts) {
  try {
    fail("node ", 3, ": ", Shape{1});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "node 3: [1]");
  }
}

}  // namespace miniqat::text_test
