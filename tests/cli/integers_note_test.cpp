// `train` says at its start what keeps a network from integers.

#include <gtest/gtest.h>

#include "tests/cli/tiny_task.h"

namespace miniqat::testing::integers_note_test {
namespace {

const std::string kNote = "note: the network will not become integers: ";

class IntegersNoteTest : public TinyTaskTest {
 protected:
  std::string output_of(const std::string& out, const Arguments& more) const {
    return expect_success(train(out, more)).out;
  }
};

TEST_F(IntegersNoteTest, TheNodeIsNamedBeforeTheFirstStep) {
  const std::string out = output_of("wide", {"--weight-bits", "12"});
  const std::size_t note = out.find(kNote);
  ASSERT_NE(note, std::string::npos) << out;
  EXPECT_LT(note, out.find("epoch  "));
  // The reason is that of the conversion at the end.
  const std::string reason = out.substr(note + kNote.size(), out.find('\n', note) - note - kNote.size());
  expect_error(program("export wide --out wide.c"), 1, {reason});
  EXPECT_EQ(output_of("wide", {"--weight-bits", "12", "--resume", "--steps", "14"}).find(kNote), std::string::npos);
}

TEST_F(IntegersNoteTest, ANetworkThatBecomesIntegersHasNone) {
  for (const Arguments& more : {Arguments{},
                                {"--float"},
                                {"--model", "norm.json", "--per-channel"},
                                {"--ranges", "learned", "--weight-bits", "2"},
                                {"--quant-delay", "5"}}) {
    Arguments line = more;
    line.push_back("--overwrite");
    EXPECT_EQ(output_of("run", line).find(kNote), std::string::npos) << more.size();
  }
}

}  // namespace
}  // namespace miniqat::testing::integers_note_test
