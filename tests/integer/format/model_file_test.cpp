#include "integer/format/model_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "core/text/json.h"
#include "integer/reference/engine.h"
#include "tests/errors.h"
#include "tests/integer/format/model_file_parts.h"
#include "tests/temp_dir.h"

namespace miniqat::integer::model_file_test {
namespace {

using Json = nlohmann::ordered_json;
using Parts = testing::ModelFileParts;
using testing::complaint_about;
using testing::error_of;
using testing::mentions;
using testing::random_images;
using testing::RandomModel;
using testing::small_model;

void expect_refused(const std::string& bytes, const std::vector<std::string>& parts) {
  EXPECT_TRUE(mentions(complaint_about(bytes), parts));
}

TEST(ModelFile, GivesBackWhatWentIn) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Model model = testing::random_network(seed);
    const std::string bytes = to_bytes(model);
    const Model again = from_bytes(bytes, "bytes");
    EXPECT_EQ(to_bytes(again), bytes) << seed;
    Random random(seed);
    const Tensor images = random_images(random, model, 2);
    const std::vector<Tensor> expected = reference::run(model, images), got = reference::run(again, images);
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(std::ranges::equal(expected[i].values<std::uint8_t>(), got[i].values<std::uint8_t>())) << seed;
  }
}

TEST(ModelFile, KeepsEveryField) {
  const Model model = small_model();
  const Model again = from_bytes(to_bytes(model), "bytes");
  EXPECT_EQ(again.name, model.name);
  EXPECT_EQ(again.output, model.output);
  ASSERT_EQ(again.tensors.size(), model.tensors.size());
  for (std::size_t i = 0; i < model.tensors.size(); ++i) {
    EXPECT_EQ(again.tensors[i].name, model.tensors[i].name);
    EXPECT_EQ(again.tensors[i].shape, model.tensors[i].shape);
    EXPECT_EQ(again.tensors[i].grid, model.tensors[i].grid);
  }
  ASSERT_EQ(again.operations.size(), model.operations.size());
  for (std::size_t i = 0; i < model.operations.size(); ++i) {
    EXPECT_EQ(again.operations[i].name, model.operations[i].name);
    EXPECT_EQ(again.operations[i].inputs, model.operations[i].inputs);
    EXPECT_EQ(again.operations[i].output, model.operations[i].output);
    EXPECT_EQ(again.operations[i].clamp, model.operations[i].clamp);
    EXPECT_EQ(type_name(again.operations[i].action), type_name(model.operations[i].action));
  }
  const auto& layer = std::get<Layer>(model.operations[0].action);
  const auto& read = std::get<Layer>(again.operations[0].action);
  EXPECT_EQ(read.filter, layer.filter);
  EXPECT_EQ(read.weight_bits, layer.weight_bits);
  EXPECT_EQ(read.weights, layer.weights);
  EXPECT_EQ(read.weight_scales, layer.weight_scales);
  EXPECT_EQ(read.weight_zero_points, layer.weight_zero_points);
  EXPECT_EQ(read.bias, layer.bias);
  EXPECT_EQ(read.multipliers, layer.multipliers);
}

/// A network whose layers have weights of so many bits.
Model with_weight_bits(int bits) {
  RandomModel net(11, {8, 8, 4}, {.only_bits = 8});
  net.conv2d(16);
  net.depthwise_conv2d(2);
  net.fully_connected(16);
  Model model = net.finish();
  for (Operation& operation : model.operations)
    if (auto* layer = std::get_if<Layer>(&operation.action)) testing::cut_weights(*layer, bits);
  return model;
}

TEST(ModelFile, KeepsTheNamesOfClasses) {
  Model model = small_model();
  const std::string without = to_bytes(model);
  EXPECT_EQ(without.find("class_names"), std::string::npos);
  EXPECT_TRUE(from_bytes(without, "bytes").class_names.empty());
  model.class_names.assign(static_cast<std::size_t>(model.tensor(model.output).shape.elements()), "gr\xc3\xbcn");
  EXPECT_EQ(from_bytes(to_bytes(model), "bytes").class_names, model.class_names);
  model.class_names.front() = "\xff";
  EXPECT_TRUE(mentions(error_of([&] { to_bytes(model); }), {"of a class", "UTF-8"}));
}

/// small_model(), of a regression from standardised numbers: two channels in, three numbers out.
Model regression_model() {
  Model model = small_model();
  model.task = "regress";
  model.input_standard = Standard{.mean = {0.1f, -3e20f}, .deviation = {1e-30f, 7}};
  model.output_standard = Standard{.mean = {1, 2, 0.3f}, .deviation = {4, 5, 6}};
  return model;
}

TEST(ModelFile, KeepsTaskAndStandards) {
  const Model model = regression_model();
  const std::string bytes = to_bytes(model);
  const Model again = from_bytes(bytes, "bytes");
  EXPECT_EQ(again.task, "regress");
  EXPECT_EQ(again.input_standard, model.input_standard);
  EXPECT_EQ(again.output_standard, model.output_standard);
  EXPECT_EQ(to_bytes(again), bytes);
  const std::string without = to_bytes(small_model());
  for (const char* key : {"\"task\"", "input_mean", "input_std", "output_mean", "output_std"})
    EXPECT_EQ(without.find(key), std::string::npos) << key;
  EXPECT_FALSE(from_bytes(without, "bytes").input_standard);
}

TEST(ModelFile, RefusesMalformedStandards) {
  const auto refuse = [](const std::function<void(Json&)>& spoil, const std::vector<std::string>& parts) {
    Parts file(to_bytes(regression_model()));
    Json header = Json::parse(file.header);
    spoil(header);
    file.header = header.dump();
    expect_refused(file.file(), parts);
  };
  refuse([](Json& h) { h["task"] = 1; }, {"task must be a text, is 1"});
  refuse([](Json& h) { h["task"] = "sort"; }, {"the task \"sort\" is unknown"});
  refuse([](Json& h) { h["task"] = "multilabel"; }, {"output is standardised", "regress"});
  refuse([](Json& h) { h["taks"] = "regress"; }, {"unknown key \"taks\"", "did you mean"});
  refuse([](Json& h) { h.erase("input_std"); }, {"lacks \"input_std\""});
  refuse([](Json& h) { h.erase("output_mean"); }, {"lacks \"output_mean\""});
  refuse([](Json& h) { h["input_mean"] = {0.5, 0.5}; }, {"input_mean: must be an object"});
  refuse([](Json& h) { h["input_mean"]["offset"] = 4; }, {"input_mean: begins at byte 4"});
  refuse([](Json& h) { std::swap(h["input_mean"], h["input_std"]); }, {"input_mean: begins at byte 8"});
  refuse(
      [](Json& h) {
        h["input_mean"]["count"] = 1;
        h["input_std"]["offset"] = 4;
        h["input_std"]["count"] = 3;
      },
      {"input has 1 mean and 3 deviations, not 2 of each"});
  Parts file(to_bytes(regression_model()));
  const float none = 0;
  std::memcpy(file.blob.data() + 8, &none, 4);
  expect_refused(file.file(), {"input has a deviation of 0"});
}

TEST(ModelFile, WeightsOfFewerBitsTakeLess) {
  const Model eight = with_weight_bits(8);
  const std::size_t whole = to_bytes(eight).size();
  for (int bits = 2; bits < 8; ++bits) {
    const Model model = with_weight_bits(bits);
    const std::string bytes = to_bytes(model);
    EXPECT_EQ(8 * model.weight_bytes(), bits * eight.weight_bytes()) << bits;
    EXPECT_EQ(Parts(bytes).blob.size() + eight.weight_bytes(),
              Parts(to_bytes(eight)).blob.size() + model.weight_bytes())
        << bits;
    EXPECT_LT(bytes.size(), whole) << bits;
    const Model again = from_bytes(bytes, "bytes");
    for (std::size_t i = 0; i < model.operations.size(); ++i)
      if (const auto* layer = std::get_if<Layer>(&model.operations[i].action)) {
        EXPECT_EQ(std::get<Layer>(again.operations[i].action).weights, layer->weights) << bits;
      }
  }
  EXPECT_EQ(2 * with_weight_bits(4).weight_bytes(), eight.weight_bytes());
  EXPECT_EQ(4 * with_weight_bits(2).weight_bytes(), eight.weight_bytes());
}

TEST(ModelFile, FilesAreRead) {
  const testing::TempDir directory;
  const std::string bytes = to_bytes(small_model());
  EXPECT_EQ(to_bytes(read_model(directory.write("model.miniqat", bytes))), bytes);
  EXPECT_TRUE(mentions(error_of([&] { read_model(directory.path() / "none"); }), {"none", "No such file"}));
  EXPECT_TRUE(mentions(error_of([&] { read_model(directory.write("bad", "miniqat\n")); }), {"bad", "cut short"}));
}

TEST(ModelFile, RefusesToWriteWhatItCouldNotRead) {
  Model model = small_model();
  model.tensors[1].grid.scale = 0;
  EXPECT_TRUE(mentions(error_of([&] { to_bytes(model); }), {"scale of 0"}));
  model = small_model();
  model.name = "\xff";
  EXPECT_TRUE(mentions(error_of([&] { to_bytes(model); }), {"UTF-8"}));
}

TEST(ModelFile, RefusesOtherFiles) {
  const std::string file = to_bytes(small_model());
  expect_refused("", {"cut short"});
  expect_refused("PK\3\4 and more of a zip file, long enough", {"is not a model.miniqat file"});
  std::string other = file;
  other[8] = 1;
  expect_refused(other, {"version 1", "version 2"});
  other = file;
  std::memset(other.data() + 12, 0xff, 4);
  expect_refused(other, {"header of 4294967295 bytes exceeds"});
  other = file;
  std::memset(other.data() + 16, 0xff, 8);
  expect_refused(other, {"cut short", "18446744073709551615"});
  expect_refused(file + "x", {"1 byte behind its end"});
  expect_refused(file.substr(0, file.size() - 1), {"cut short"});
}

/// The JSON of the file's header changed by `spoil`, everything else made to fit.
void expect_header_refused(const std::function<void(Json&)>& spoil, const std::vector<std::string>& parts) {
  Parts file(to_bytes(small_model()));
  Json header = Json::parse(file.header);
  spoil(header);
  file.header = header.dump();
  expect_refused(file.file(), parts);
}

TEST(ModelFile, HeaderOfWrongKeysAndTypes) {
  const Model model = small_model();
  expect_header_refused([](Json& h) { h["extra"] = 1; }, {"unknown key \"extra\""});
  expect_header_refused([](Json& h) { h.erase("tensors"); }, {"lacks \"tensors\""});
  expect_header_refused([](Json& h) { h = Json::array(); }, {"must be an object, is a list of 0"});
  expect_header_refused([](Json& h) { h["name"] = nullptr; }, {"name must be a text, is null"});
  expect_header_refused([](Json& h) { h["output"] = "nowhere"; }, {"no tensor is called \"nowhere\""});
  expect_header_refused([](Json& h) { h["tensors"] = 3; }, {"tensors must be a list, is 3"});
  expect_header_refused([](Json& h) { h["tensors"][1]["scale"] = "1"; }, {"tensor 1: scale must be a number"});
  expect_header_refused([](Json& h) { h["tensors"][1]["scale"] = 1e300; }, {"that a float can hold, is 1e+300"});
  expect_header_refused([](Json& h) { h["tensors"][1]["scale"] = std::nan(""); }, {"is null"});
  expect_header_refused([](Json& h) { h["tensors"][1]["scale"] = 1e-300; }, {"has a scale of 0"});
  expect_header_refused([](Json& h) { h["tensors"][1]["zero_point"] = 1.0; }, {"whole number", "is 1.0"});
  expect_header_refused([](Json& h) { h["tensors"][1]["zero_point"] = UINT64_MAX; }, {"18446744073709551615"});
  expect_header_refused([](Json& h) { h["tensors"][1]["shape"][0] = -1; }, {"in shape each", "is -1"});
  expect_header_refused([](Json& h) { h["tensors"][1]["shape"] = {2147483647, 2147483647}; }, {"elements"});
  expect_header_refused([](Json& h) { h["tensors"][1]["shape"] = std::vector<int>(50, 1); }, {"rank 50"});
  expect_header_refused([](Json& h) { h["tensors"][2]["name"] = "input"; }, {"tensor 2: a second tensor"});
  expect_header_refused([](Json& h) { h["tensors"][1]["nome"] = 1; }, {"unknown key \"nome\"", "did you mean"});
  expect_header_refused([](Json& h) { h["operations"][0]["type"] = "Conv3D"; }, {"operation 0: ", "\"Conv3D\""});
  expect_header_refused([](Json& h) { h["operations"][1]["inputs"] = {"input", 1}; }, {"inputs each", "is 1"});
  expect_header_refused([](Json& h) { h["operations"][1]["inputs"] = Json::array(); }, {"has no inputs"});
  expect_header_refused([](Json& h) { h["operations"][1]["clamp"] = {1, 2, 3}; }, {"clamp must be two"});
  expect_header_refused([](Json& h) { h["operations"][1]["multiplier"]["shift"] = 63; }, {"shift of 63"});
  expect_header_refused([](Json& h) { h["operations"][1]["multiplier"].erase("shift"); }, {"multiplier: lacks"});
  expect_header_refused([](Json& h) { h["operations"][0]["paddings"] = {{1, 2}}; }, {"two pairs, are 1"});
  expect_header_refused([](Json& h) { h["operations"][0]["paddings"][0] = 1; }, {"pairs of numbers, one is 1"});
  expect_header_refused([](Json& h) { h["operations"][0]["strides"] = {0, 1}; }, {"extents are not in 1.."});
  expect_header_refused([](Json& h) { h["tensors"][0]["shape"] = {24}; }, {"operation 0: takes an image"});
  expect_header_refused([](Json& h) { h["operations"][0]["name"] = std::string(1000, '\n'); }, {"an operation"});
}

TEST(ModelFile, HeaderThatIsNoJson) {
  Parts file(to_bytes(small_model()));
  const std::string header = file.header;
  for (const std::string bad : {"", "{", "{}}", "\xff", "[[[["}) {
    file.header = bad;
    expect_refused(file.file(), {"its header: malformed JSON"});
  }
  file.header = std::string(100000, '[');
  expect_refused(file.file(), {"nests deeper"});
  file.header = "{\"name\": \"a\", " + header.substr(1);
  expect_refused(file.file(), {"\"name\" occurs twice"});
}

TEST(ModelFile, ListsMustFitTheBlob) {
  const auto expect = [](const char* key, const Json& value, const std::vector<std::string>& parts) {
    expect_header_refused([&](Json& h) { h["operations"][0]["weights"][key] = value; }, parts);
  };
  expect("count", INT64_MAX, {"weights: 9223372036854775807 numbers", "exceed"});
  expect("count", std::int64_t{1} << 33, {"weights", "exceed"});
  expect("count", -1, {"weights: count must be a whole number"});
  expect("offset", 1, {"weights: begins at byte 1 of the blob, not at 0"});
  expect("type", "int32", {"weights: must be of type uint", "is \"int32\""});
  expect("more", 1, {"unknown key \"more\""});
  expect_header_refused([](Json& h) { h["operations"][0]["weights"]["count"] = 0; }, {"weight_scales: begins at byte"});
  expect_header_refused([](Json& h) { h["operations"][0]["weights"] = {1, 2, 3}; }, {"weights: must be an object"});
  Parts file(to_bytes(small_model()));
  file.blob += '\0';
  expect_refused(file.file(), {"the lists end at byte"});
  file.blob.resize(file.blob.size() - 2);
  expect_refused(file.file(), {"shifts", "exceed the"});
}

TEST(ModelFile, BlobOfWrongNumbers) {
  const auto spoiled = [](const char* key, const std::string& bytes) {
    Parts file(to_bytes(small_model()));
    const Json list = Json::parse(file.header)["operations"][0][key];
    file.blob.replace(list["offset"].get<std::size_t>(), bytes.size(), bytes);
    return file.file();
  };
  const float nan = std::nanf("");
  expect_refused(spoiled("weight_scales", std::string(reinterpret_cast<const char*>(&nan), 4)), {"scale of nan"});
  expect_refused(spoiled("bias", std::string("\xff\xff\xff\x7f", 4)), {"32 bits"});
}

TEST(ModelFile, BitsBehindTheLastNumberAreZero) {
  RandomModel net(11, {3});
  net.fully_connected(3);
  Model model = net.finish();
  testing::cut_weights(std::get<Layer>(model.operations[0].action), 3);
  // 9 weights of 3 bits: 27 of 32.
  Parts file(to_bytes(model));
  EXPECT_EQ(complaint_about(file.file()), "");
  file.blob[3] = static_cast<char>(file.blob[3] | 8);
  expect_refused(file.file(), {"weights: the bits behind the last number are not 0"});
}

}  // namespace
}  // namespace miniqat::integer::model_file_test
