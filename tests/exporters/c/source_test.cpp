// The C that is generated, compiled by the system's compiler and compared with the reference engine.

#include "exporters/c/source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "core/files/files.h"
#include "core/tensors/tensor.h"
#include "core/text/error.h"
#include "exporters/c/operation.h"
#include "exporters/c/text.h"
#include "integer/reference/engine.h"
#include "tests/errors.h"
#include "tests/exporters/c/c_project.h"
#include "tests/fewer_cases.h"
#include "tests/integer/random_model.h"

namespace miniqat::exporters::source_test {
namespace {

using integer::Model;
using testing::CProject;
using testing::error_of;
using testing::kStrict;
using testing::mentions;
using testing::random_images;
using testing::RandomModel;

std::string bytes_of(const Tensor& tensor) {
  const auto values = tensor.values<std::uint8_t>();
  return {values.begin(), values.end()};
}

void expect_reference(CProject& project, const std::string& prefix, const Model& model, Random& random) {
  constexpr int kImages = 5;
  const Tensor images = random_images(random, model, kImages);
  const auto [outputs, classes] = project.outputs(prefix, images);
  const std::string expected = bytes_of(integer::reference::run(model, images)[model.output]);
  EXPECT_EQ(outputs, expected) << prefix;
  ASSERT_EQ(classes.size(), std::size_t{kImages});
  const std::size_t each = expected.size() / kImages;
  for (std::size_t i = 0; i < kImages; ++i) {
    const std::span<const unsigned char> y(reinterpret_cast<const unsigned char*>(&expected[i * each]), each);
    EXPECT_EQ(static_cast<unsigned char>(classes[i]), argmax(y) % 256) << prefix << " image " << i;
  }
}

/// A chain of anything.
Model random_chain(std::uint64_t seed) {
  RandomModel net(seed, {8, 7, 3});
  for (int i = 0; i < 6; ++i) net.anything();
  if (seed % 2 == 0) net.mul(net.last(), net.last());
  if (seed % 2 == 1) net.fully_connected(6);
  return net.finish();
}

std::map<std::string, Model> some_models() {
  std::map<std::string, Model> models;
  for (std::uint64_t seed = 0; seed < testing::fewer(3, 3); ++seed)
    models["net" + std::to_string(seed)] = testing::random_network(seed);
  models["full"] = testing::random_network(3, {.full_range_weights = true});
  for (std::uint64_t seed = 0; seed < 5; ++seed) models["chain" + std::to_string(seed)] = random_chain(seed);
  return models;
}

/// Everything that a model can have, in C as the reference has it, and nothing undefined on the way.
TEST(CSource, GivesTheIntegersOfTheReference) {
  const std::map<std::string, Model> models = some_models();
  std::set<std::string_view> kinds;
  std::set<int> weight_bits;
  CProject project;
  Random random(5);
  for (const auto& [prefix, model] : models) {
    project.add(prefix, model, random_images(random, model, 2));
    for (const integer::Operation& operation : model.operations) {
      kinds.insert(type_name(operation.action));
      if (const auto* layer = std::get_if<integer::Layer>(&operation.action)) weight_bits.insert(layer->weight_bits);
    }
  }
  EXPECT_EQ(kinds,
            (std::set<std::string_view>{"Conv2D", "DepthwiseConv2d", "FullyConnected", "Add", "Mul", "Rescale",
                                        "Concat", "AveragePool", "MaxPool", "Reshape", "Pad", "Lookup", "Slice"}));
  EXPECT_EQ(weight_bits, (std::set<int>{2, 3, 4, 5, 6, 7, 8}));

  // Compiling takes nearly all of the time.
  std::vector<std::string> builds = {" -O1 -fsanitize=address,undefined -fno-sanitize-recover=all"};
  if (testing::tries_all_cases()) builds.push_back(" -O2");
  for (const std::string& flags : builds) {
    ASSERT_TRUE(project.compile(kStrict + flags));
    for (const auto& [prefix, model] : models) {
      EXPECT_EQ(project.self_test(prefix), 0) << prefix;
      expect_reference(project, prefix, model, random);
    }
  }
}

TEST(CSource, SelfTestNamesTheOperationThatIsWrong) {
  const Model model = testing::random_network(1);
  Random random(6);
  CProject project;
  for (const char* prefix : {"bias", "weight", "sizes", "expected"})
    project.add(prefix, model, random_images(random, model, 2));
  project.edit("bias", "bias_2[8] = {", "bias_2[8] = {1000000 + ");
  project.edit("weight", "packed[0] - zero_0", "packed[1] - zero_0");
  project.edit("expected", "test_outputs[TESTS][EXPECTED_OUTPUT_SIZE] = {\n{",
               "test_outputs[TESTS][EXPECTED_OUTPUT_SIZE] = {\n{1 ^ ");
  ASSERT_TRUE(project.compile(kStrict));
  EXPECT_EQ(project.self_test("bias"), 2);
  EXPECT_EQ(project.self_test("weight"), 6);  // The first layer of 8 bits.
  EXPECT_EQ(project.self_test("sizes"), 0);
  EXPECT_EQ(project.self_test("expected"), static_cast<int>(model.operations.size()));
}

/// Outputs that no operation writes, or that another reads; names that would end a comment.
TEST(CSource, OddModels) {
  std::map<std::string, Model> models;
  RandomModel nothing(1, {5});
  models["nothing"] = nothing.finish();
  RandomModel only_shape(1, {2, 3});
  only_shape.reshape({6});
  models["only_shape"] = only_shape.finish();
  RandomModel dead(1, {6});
  dead.rescale();
  models["dead"] = dead.finish();
  models["dead"].output = 0;
  RandomModel early(1, {6});
  const int output = early.rescale();
  early.reshape({2, 3});
  early.fully_connected(4);
  models["early"] = early.finish();
  models["early"].output = output;
  RandomModel scalar(1, {});
  scalar.pad();
  scalar.reshape({1, 1, 1});
  scalar.reshape({1});
  scalar.rescale();
  models["scalar"] = scalar.finish();
  RandomModel names(1, {4});
  names.rescale();
  models["names"] = names.finish();
  models["names"].name = "*/ int x; /* ?\?/";
  models["names"].tensors[0].name = "in */ /* \\";
  models["names"].operations[0].name = "a/*/b?\?/";
  models["names"].class_names = {"K\u00e4fer", "*/ /*", "?\?/", "end\\"};

  CProject project;
  Random random(7);
  for (const auto& [prefix, model] : models) {
    model.check();
    project.add(prefix, model, random_images(random, model, 1));
  }
  ASSERT_TRUE(project.compile(std::string(kStrict) + " -O1"));
  for (const auto& [prefix, model] : models) {
    EXPECT_EQ(project.self_test(prefix), 0) << prefix;
    expect_reference(project, prefix, model, random);
  }
}

TEST(CSource, SameModelSameText) {
  const Model model = testing::random_network(3);
  Random random(8);
  const Tensor tests = random_images(random, model, 1);
  const CSource a = c_source(model, "net", "net.h", tests), b = c_source(model, "net", "net.h", tests);
  EXPECT_EQ(a.source, b.source);
  EXPECT_EQ(a.header, b.header);
  EXPECT_NE(a.header.find("int net_run(const uint8_t *input, uint8_t *output);"), std::string::npos);
  EXPECT_NE(a.header.find("#define NET_INPUT_SIZE 297\n"), std::string::npos) << a.header;
  for (const char* word : {"float", "double", "malloc", "net0"})
    EXPECT_EQ(a.source.find(word), std::string::npos) << word;
  std::size_t longest = 0;
  for (std::size_t at = 0; at < a.source.size(); at = a.source.find('\n', at) + 1)
    longest = std::max(longest, a.source.find('\n', at) - at);
  EXPECT_LE(longest, 120u);
}

// A single tap has no next one. The C code multiplies by the dilation all the same, and 32 bits may be too few for
// that.
TEST(CSource, AWindowOfOneTapHasNoDilation) {
  RandomModel net(1, {1, 1, 8});
  net.conv2d(4);
  Model model = net.finish();
  Random random(10);
  const Tensor tests = random_images(random, model, 1);
  const std::string source = c_source(model, "net", "net.h", tests).source;
  auto& [rows, columns] = std::get<integer::Layer>(model.operations[0].action).window;
  ASSERT_TRUE(rows.window == 1 && columns.window == 1);
  rows.dilation = 65536;
  columns.dilation = 3;
  model.check();
  EXPECT_EQ(c_source(model, "net", "net.h", tests).source, source);
}

TEST(CSource, FirstCommentHasVersionAccuracyAndClasses) {
  Model model = testing::random_network(3);
  model.class_names = {"cat", "dog", "*/ int x;", "cow", "hen"};
  Random random(8);
  const Tensor tests = random_images(random, model, 1);
  const CSource c = c_source(model, "net", "net.h", tests, {}, "Accuracy: 90%.\n*/");
  const std::string first = c.header.substr(0, c.header.find("*/"));
  for (const char* part : {"miniqat 0.", "random 3", "\n   Accuracy: 90%.", "0 cat", "1 dog", "2 *_ int x;"})
    EXPECT_NE(first.find(part), std::string::npos) << part << " in\n" << first;
  const std::string comment = c.source.substr(0, c.source.find("*/"));
  EXPECT_NE(comment.find(concat(c.footprint.weights, " bytes of weights")), std::string::npos) << comment;
  EXPECT_NE(comment.find(concat(c.footprint.scratch, " of scratch")), std::string::npos) << comment;
  EXPECT_NE(c.source.find("\nNET_WEIGHTS_SECTION static const uint8_t weights_2["), std::string::npos);
}

TEST(CSource, MapsBytesToAnInputOfItsOwn) {
  const integer::Grid bytes = {.scale = 1.0f / 64, .zero_point = 128, .bits = 8};
  Model model = testing::random_network(3);
  Random random(6);
  CProject project;
  project.add("other", model, random_images(random, model, 1), bytes);
  project.add("same", model, random_images(random, model, 1), model.tensor(model.input).grid);
  ASSERT_TRUE(project.compile(kStrict));
  EXPECT_EQ(project.self_test("other"), 0);
  const std::string source = read_file(project.path("other.c"));
  const std::string head = "\nconst uint8_t other_input_from_byte[256] = ";
  ASSERT_NE(source.find(head), std::string::npos);
  std::string list;
  append_list(list, integer::input_table(bytes, model.tensor(model.input).grid));
  const auto without_spaces = [](std::string text) {
    std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
    return text;
  };
  EXPECT_TRUE(without_spaces(source.substr(source.find(head) + head.size())).starts_with(without_spaces(list)));
  EXPECT_NE(read_file(project.path("other.h")).find("extern const uint8_t other_input_from_byte[256];"),
            std::string::npos);
  for (const char* file : {"same.h", "same.c"})
    EXPECT_EQ(read_file(project.path(file)).find("from_byte"), std::string::npos) << file;
}

/// Packed below 8 bits, as in files.
TEST(CSource, WeightsOfFewerBitsTakeLess) {
  RandomModel net(9, {64}, {.only_bits = 8});
  net.fully_connected(32);
  Model model = net.finish();
  Random random(9);
  const Tensor tests = random_images(random, model, 1);
  auto& layer = std::get<integer::Layer>(model.operations[0].action);
  for (int bits = 8; bits >= 2; --bits) {
    testing::cut_weights(layer, bits);
    const std::string array = "uint8_t weights_1[" + std::to_string(64 * 32 * bits / 8) + "]";
    EXPECT_NE(c_source(model, "net", "net.h", tests).source.find(array), std::string::npos) << array;
  }
}

TEST(CSource, TensorsShareMemory) {
  RandomModel chain(4, {64}, {.only_bits = 8});
  for (int i = 0; i < 10; ++i) chain.rescale();
  EXPECT_EQ(plan_c_memory(chain.finish()).arena_bytes, 128u);
  RandomModel shapes(4, {64}, {.only_bits = 8});
  shapes.rescale();
  shapes.reshape({8, 8, 1});
  shapes.reshape({4, 16, 1});
  shapes.max_pool();
  const CMemory memory = plan_c_memory(shapes.finish());
  EXPECT_EQ(memory.arena_bytes, 64u);
  EXPECT_EQ(memory.pointers, (std::vector<std::string>{"input", "arena + 0", "arena + 0", "arena + 0", "output"}));
}

TEST(CSource, RefusesBadPrefixesHeadersAndImages) {
  const Model model = testing::random_network(3);
  Random random(8);
  const Tensor tests = random_images(random, model, 1);
  const auto complaint = [&](const std::string& prefix, const std::string& header, const Tensor& images) {
    return error_of([&] { c_source(model, prefix, header, images); });
  };
  for (const char* bad : {"", "1net", "my net", "int", "net-1", "n\xc3\xa4t", "two\nlines"})
    EXPECT_TRUE(mentions(complaint(bad, "net.h", tests), {"prefix", "identifier"})) << bad;
  for (const char* bad : {"", "a\"b.h", "two\nlines.h", "back\\slash.h"})
    EXPECT_TRUE(mentions(complaint("net", bad, tests), {"cannot be included"})) << bad;
  EXPECT_TRUE(mentions(complaint("net", "net.h", Tensor({1, 9, 11, 3})), {"float32"}));
  EXPECT_TRUE(mentions(complaint("net", "net.h", Tensor({1, 9, 11, 4}, DType::kUInt8)), {"[1,9,11,4]"}));
  RandomModel two_bits(2, {4});
  Model small = two_bits.finish();
  small.tensors[0].grid = {.scale = 1, .zero_point = 0, .bits = 2};
  const Tensor four = Tensor::from<std::uint8_t>({1, 4}, std::vector<std::uint8_t>{0, 1, 3, 4});
  EXPECT_TRUE(mentions(error_of([&] { c_source(small, "net", "net.h", four); }), {"holds 4", "ends at 3"}));
}

TEST(CText, FloatsAreConstantsOfC) {
  EXPECT_EQ(float_constant(1), "1.0f");
  EXPECT_EQ(float_constant(0.1f), "0.100000001f");
  EXPECT_EQ(float_constant(1e-20f), "9.99999968e-21f");
  EXPECT_EQ(float_constant(3e20f), "3.00000006e+20f");
}

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

}  // namespace miniqat::exporters::source_test
