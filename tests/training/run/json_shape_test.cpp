#include <gtest/gtest.h>

#include "core/text/json.h"
#include "tests/errors.h"
#include "training/run/run_directory.h"

namespace miniqat::training::json_shape_test {
namespace {

using Json = nlohmann::ordered_json;

std::string refusal(const std::string& json, const std::string& shape) {
  return testing::error_of([&] { require_shape(Json::parse(json), Json::parse(shape), "q/quantize.json"); });
}

TEST(JsonShape, AWrongTypeIsNamedWithItsPlace) {
  const std::string shape = R"({"rows": [{"name": "a text", "seconds?": "a number"}], "complete?": "true or false"})";
  EXPECT_EQ(refusal(R"({"rows": [{"name": "float", "seconds": 1.5}, {"name": ""}], "complete": true})", shape), "");
  EXPECT_EQ(refusal(R"({"rows": [], "other": [1, "x"]})", shape), "");
  EXPECT_EQ(refusal("5", shape), "q/quantize.json: the file must be an object, is 5");
  EXPECT_EQ(refusal("{}", shape), "q/quantize.json: rows is missing");
  EXPECT_EQ(refusal(R"({"rows": "x"})", shape), "q/quantize.json: rows must be a list, is \"x\"");
  EXPECT_EQ(refusal(R"({"rows": [{"name": "a"}, {"name": 5}]})", shape),
            "q/quantize.json: rows[1].name must be a text, is 5");
  EXPECT_EQ(refusal(R"({"rows": [{"name": "a", "seconds": "1"}]})", shape),
            "q/quantize.json: rows[0].seconds must be a number, is \"1\"");
  EXPECT_EQ(refusal(R"({"rows": [7]})", shape), "q/quantize.json: rows[0] must be an object, is 7");
  EXPECT_EQ(refusal(R"({"rows": [], "complete": null})", shape),
            "q/quantize.json: complete must be true or false, is null");
  EXPECT_EQ(refusal("2.5", R"("a whole number")"), "q/quantize.json: the file must be a whole number, is 2.5");
  EXPECT_EQ(refusal("[null]", R"(["anything"])"), "");
  EXPECT_EQ(refusal("[null, 1]", R"(["a number or null"])"), "");
  EXPECT_EQ(refusal("[\"\"]", R"(["a number or null"])"), "q/quantize.json: [0] must be a number or null, is \"\"");
}

TEST(JsonShape, AFileHasTheShapeOfItsName) {
  EXPECT_TRUE(shape_of_file("a/b/quantize.json").contains("rows?"));
  EXPECT_EQ(shape_of_file("a/b/other.json"), "anything");
}

}  // namespace
}  // namespace miniqat::training::json_shape_test
