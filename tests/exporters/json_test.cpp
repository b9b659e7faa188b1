#include "exporters/json.h"

#include <gtest/gtest.h>

#include <array>

#include "core/text/json.h"
#include "core/text/json_text.h"
#include "integer/format/model_file.h"
#include "integer/format/model_json.h"
#include "tests/errors.h"
#include "tests/integer/random_model.h"

namespace miniqat::exporters::json_test {
namespace {

using Json = nlohmann::ordered_json;

/// Reads the lists of an export.
class NumberReader final : public integer::ListReader {
 public:
  std::vector<std::uint8_t> unsigned_list(const Json& list, int /*bits*/) override {
    return list.get<std::vector<std::uint8_t>>();
  }
  std::vector<std::int32_t> int32_list(const Json& list) override { return list.get<std::vector<std::int32_t>>(); }
  std::vector<float> float32_list(const Json& list) override { return list.get<std::vector<float>>(); }
};

TEST(JsonExport, HoldsTheWholeModel) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const integer::Model model = testing::random_network(seed);
    Json json = parse_json(exporters::json(model));
    EXPECT_EQ(json["format"], "miniqat.integer_model");
    EXPECT_EQ(json["version"], 2);
    json.erase("format");
    json.erase("version");
    NumberReader numbers;
    EXPECT_EQ(to_bytes(integer::model_from_json(json, numbers)), to_bytes(model)) << seed;
  }
}

TEST(JsonExport, HasTaskAndStandards) {
  testing::RandomModel net(3, {4, 2});
  net.reshape({8});
  net.fully_connected(1);
  integer::Model model = net.finish();
  model.task = "regress";
  model.input_standard = Standard{.mean = {0.5f, -1}, .deviation = {2, 0.25f}};
  model.output_standard = Standard{.mean = {20}, .deviation = {3}};
  const Json json = parse_json(exporters::json(model));
  EXPECT_EQ(json["task"], "regress");
  EXPECT_EQ(json["input_mean"], (Json{0.5, -1}));
  EXPECT_EQ(json["input_std"], (Json{2, 0.25}));
  EXPECT_EQ(json["output_mean"], Json::array({20}));
  EXPECT_EQ(json["output_std"], Json::array({3}));
}

TEST(JsonExport, MapsBytesToAnInputOfItsOwn) {
  const integer::Grid bytes = {.scale = 1.0f / 64, .zero_point = 128, .bits = 8};
  const integer::Model model = testing::random_network(1);
  const integer::Grid& input = model.tensor(model.input).grid;
  const Json json = parse_json(exporters::json(model, bytes));
  EXPECT_EQ((json["input_from_byte"].get<std::array<std::uint8_t, 256>>()), integer::input_table(bytes, input));
  EXPECT_EQ(exporters::json(model, input), exporters::json(model));
}

TEST(JsonExport, IsReadable) {
  testing::RandomModel net(3, {2, 2, 1}, {.only_bits = 8});
  net.conv2d(100);
  const std::string text = exporters::json(net.finish());
  std::size_t longest = 0;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    longest = std::max(longest, text.find('\n', at) - at);
  EXPECT_LE(longest, 120u);
  EXPECT_GT(longest, 100u);
  EXPECT_NE(text.find("\n    {\"name\": \"input\", \"shape\": [2, 2, 1], \"scale\": "), std::string::npos) << text;
  EXPECT_NE(text.find("\n      \"inputs\": [\"input\"],\n"), std::string::npos) << text;
}

TEST(JsonExport, RefusesWhatIsNoModel) {
  integer::Model model = testing::random_network(1);
  model.name = "\xff";
  EXPECT_TRUE(testing::mentions(testing::error_of([&] { exporters::json(model); }), {"UTF-8"}));
  model.operations.pop_back();
  EXPECT_NE(testing::error_of([&] { exporters::json(model); }), "");
}

}  // namespace
}  // namespace miniqat::exporters::json_test
