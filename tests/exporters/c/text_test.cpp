#include "exporters/c/text.h"

#include <gtest/gtest.h>

namespace miniqat::exporters::text_test {
namespace {

TEST(InComment, NamesStayAsTheyAre) {
  EXPECT_EQ(in_comment("conv1/weights_quant"), "conv1/weights_quant");
  EXPECT_EQ(in_comment("Käfer, 甲虫, a\\b, really?"), "Käfer, 甲虫, a\\b, really?");
}

TEST(InComment, NothingEndsTheCommentOrTheLine) {
  EXPECT_EQ(in_comment("*/ int x; /* y"), "*_ int x; /_ y");
  EXPECT_EQ(in_comment("/*/"), "/_/");
  EXPECT_EQ(in_comment("end ?\?/"), "end ?_/");
  EXPECT_EQ(in_comment("?\?\?"), "?_?");
  EXPECT_EQ(in_comment("end\\"), "end_");
  EXPECT_EQ(in_comment("a\nb\xff\xe2\x80\xae"), "a\\nb\\xff\\u202e");
}

}  // namespace
}  // namespace miniqat::exporters::text_test
