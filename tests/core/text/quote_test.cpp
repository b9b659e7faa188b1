#include "core/text/quote.h"

#include <gtest/gtest.h>

namespace miniqat::quote_test {
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

}  // namespace
}  // namespace miniqat::quote_test
