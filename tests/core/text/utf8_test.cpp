#include "core/text/utf8.h"

#include <gtest/gtest.h>

namespace miniqat::utf8_test {
namespace {

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

}  // namespace
}  // namespace miniqat::utf8_test
