// What is said of a network before anything is computed: what keeps it from integers, and layers that reach no output.

#include <gtest/gtest.h>

#include "core/files/safetensors.h"
#include "tests/cli/tiny_task.h"

namespace miniqat::testing::notes_test {
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

constexpr const char* kUnused = "[MatMul \"dead/MatMul\"] reaches no output: ";

/// The classifier of tiny_task.h with a dense layer that nothing reads: 64 x 7 weights.
std::string with_dead_layer() {
  std::string text = tiny_classifier();
  const std::string place = R"(    {"name": "fc/weights")";
  return text.insert(text.find(place),
                     R"(    {"name": "dead/weights", "op": "Variable",
     "attrs": {"shape": [64, 7], "initializer": {"type": "he_normal"}}},
    {"name": "dead/MatMul", "op": "MatMul", "inputs": ["flatten", "dead/weights"]},
)");
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

class UnusedLayers : public TinyTaskTest {
 protected:
  UnusedLayers() { place_.write("dead.json", with_dead_layer()); }

  std::string run(const Arguments& line) {
    const Outcome outcome = program(line);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.out + outcome.err;
  }
};

/// "P parameters, M multiply-adds a picture".
std::string counts_in(const std::string& text) {
  const std::size_t end = text.find(" multiply-adds a picture"), begin = text.rfind(": ", end);
  return text.substr(begin, end - begin);
}

TEST_F(UnusedLayers, AreLeftOutOfCountsAndNamedOnce) {
  for (const Arguments& more : {Arguments("--float"), Arguments{}}) {
    const std::string text = run(train_command("run", "--model dead.json --overwrite" + more)),
                      other = run(train_command("run2", "--overwrite" + more));
    EXPECT_EQ(count(text, kUnused), 1) << text;
    EXPECT_EQ(count(other, "reaches no output"), 0);
    EXPECT_EQ(counts_in(text), counts_in(other));
  }
  const std::string shown = run("inspect dead.json"), other = run("inspect tiny.json");
  EXPECT_EQ(count(shown, kUnused), 1) << shown;
  EXPECT_EQ(count(shown, "  reaches no output\n"), 2) << shown;
  const auto sum = [](const std::string& text) {
    const std::size_t begin = text.find(" quantizers, ");
    return text.substr(begin, text.find(" a run", begin) - begin);
  };
  EXPECT_EQ(sum(shown), sum(other));
  EXPECT_EQ(count(run("rewrite --graph dead.json --out rewritten.json"), kUnused), 1);
  EXPECT_EQ(bytes_of(path("rewritten.json")).find("dead/weights_quant"), std::string::npos);
}

/// They take no part in anything: the run is the one without them.
TEST_F(UnusedLayers, AreNoPartOfARun) {
  run(train_command("with", "--model dead.json"));
  run(train_command("without"));
  const Safetensors with = read_safetensors(path("with") / "checkpoint.safetensors"),
                    without = read_safetensors(path("without") / "checkpoint.safetensors");
  for (const auto& [name, tensor] : without.tensors) {
    ASSERT_TRUE(with.tensors.contains(name)) << name;
    const Tensor& other = with.tensors.at(name);
    EXPECT_EQ(std::string(static_cast<const char*>(tensor.raw()), tensor.bytes()),
              std::string(static_cast<const char*>(other.raw()), other.bytes()))
        << name;
  }
  EXPECT_EQ(with.tensors.size(), without.tensors.size() + 1) << "dead/weights, as they began";
  run("export with --format miniqat --out with.miniqat");
  run("eval with --integer");
  run("report with --out with.html");
}

TEST_F(UnusedLayers, AreNamedOnceByQuantizeAndCalibrate) {
  run(train_command("float", "--model dead.json --float"));
  EXPECT_EQ(count(run("calibrate float --out ptq"), kUnused), 1);
  EXPECT_EQ(count(run("quantize float --out qat --epochs 1 --validation 8"), kUnused), 1);
}

}  // namespace
}  // namespace miniqat::testing::notes_test
