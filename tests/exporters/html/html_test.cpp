// The text of a page, and what it computes: its JavaScript in Node beside the reference engine.

#include "exporters/html/html.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "core/files/files.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/page.h"
#include "integer/format/model_file.h"
#include "integer/reference/engine.h"
#include "tests/errors.h"
#include "tests/exporters/html/page_models.h"
#include "tests/fewer_cases.h"
#include "tests/integer/random_model.h"
#include "tests/runtimes/judge.h"
#include "tests/source_dir.h"

namespace miniqat::exporters::html_test {
namespace {

using integer::Model;
using testing::error_of;
using testing::expect_complaint;
using testing::judge;
using testing::mentions;
using testing::one_page;
using testing::random_images;
using testing::RandomModel;
using testing::Verdict;

constexpr const char* kPage = "../tests/exporters/html/page.mjs";

/// The data of a page.
nlohmann::json data_of(const std::string& html) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const std::size_t from = html.find(begin) + begin.size();
  return nlohmann::json::parse(html.substr(from, html.find("</script>", from) - from));
}

TEST(Html, HoldsModelsAndPictures) {
  const Model model = testing::random_network(1);
  HtmlPage page = one_page(model);
  page.title = "a <b> & c";
  page.models[0].label = "</script><script>alert(1)</script>";
  page.models[0].accuracy = 0.5;
  Random random(1);
  page.pictures = random_images(random, model, 2);
  page.picture_names = {"<!--", "zwei"};
  const std::string html = exporters::html(page);
  EXPECT_NE(html.find("<title>a &lt;b> &amp; c</title>"), std::string::npos);
  EXPECT_EQ(html.find("alert(1)</script>"), std::string::npos);
  const nlohmann::json data = data_of(html);
  EXPECT_EQ(data["models"][0]["label"], page.models[0].label);
  EXPECT_EQ(data["models"][0]["model"], base64(to_bytes(model)));
  EXPECT_EQ(data["models"][0]["accuracy"], 0.5);
  EXPECT_FALSE(data["models"][0].contains("input_from_byte"));
  EXPECT_EQ(data["pictures"][1]["name"], "zwei");
  const auto* second = static_cast<const char*>(page.pictures.raw()) + page.pictures.bytes() / 2;
  EXPECT_EQ(data["pictures"][1]["bytes"], base64({second, page.pictures.bytes() / 2}));
}

/// What would make a browser load something, or end a script too early.
TEST(Html, LoadsNothing) {
  const std::string html = exporters::html(one_page(testing::random_network(1)));
  for (const char* word : {"http:", "https:", "src=", "@import", "url(", "fetch(", "XMLHttpRequest", "import("})
    EXPECT_EQ(html.find(word), std::string::npos) << word;
  EXPECT_NE(html.find("default-src 'none'"), std::string::npos);
  int scripts = 0;
  for (const auto& file : std::filesystem::directory_iterator(source_dir() / "exporters/html/page")) {
    if (file.path().extension() != ".js") continue;
    const std::string script = read_file(file.path());
    EXPECT_EQ(script.find("</script"), std::string::npos) << file.path();
    EXPECT_NE(html.find(script), std::string::npos) << file.path();
    ++scripts;
  }
  EXPECT_GE(scripts, 9);
}

TEST(Html, RefusesWhatDoesNotFit) {
  const auto refused = [](const HtmlPage& page, const std::vector<std::string>& parts) {
    EXPECT_TRUE(mentions(error_of([&] { html(page); }), parts));
  };
  refused({}, {"needs a model"});
  HtmlPage page = one_page(testing::random_network(1));
  page.models[0].label = "first";
  RandomModel other(1, {4, 4, 1});
  other.fully_connected(5);
  page.models.push_back({.model = other.finish(), .label = "second", .bytes = {}});
  refused(page, {"second", "[4,4,1]", "first"});
  HtmlPage outputs = one_page(other.finish());
  other.fully_connected(3);
  outputs.models.push_back({.model = other.finish(), .label = "third", .bytes = {}});
  refused(outputs, {"third has 3 outputs", "5"});
  outputs.models.pop_back();
  outputs.pictures = Tensor(Shape{2, 4, 4, 3}, DType::kUInt8);
  outputs.picture_names = {"a", "b"};
  refused(outputs, {"[2,4,4,3]", "[4,4,1]"});
  // Pictures are not left out without a word.
  outputs.picture_names.clear();
  refused(outputs, {"0 names for the pictures [2,4,4,3]"});
  outputs.pictures = Tensor();
  outputs.title = "fine";
  outputs.models[0].label = "\xff";
  refused(outputs, {"UTF-8"});
  outputs.models[0].label = "first";
  outputs.models[0].model.task = "multilabel";
  refused(outputs, {"first: a page classifies pictures", "multilabel"});
}

/// All tensors of each model for each picture, as page.mjs writes them.
std::string expected_tensors(const HtmlPage& page, const Tensor& pictures) {
  std::string bytes;
  for (const HtmlModel& entry : page.models) {
    const auto table = integer::input_table(entry.bytes, entry.model.tensor(entry.model.input).grid);
    Tensor images(pictures.shape(), DType::kUInt8);
    std::ranges::transform(pictures.values<std::uint8_t>(), images.data<std::uint8_t>(),
                           [&](std::uint8_t byte) { return table[byte]; });
    const std::vector<Tensor> tensors = integer::reference::run(entry.model, images);
    const std::int64_t n = pictures.shape()[0];
    for (std::int64_t i = 0; i < n; ++i)
      for (const Tensor& tensor : tensors) {
        const std::size_t size = tensor.bytes() / n;
        bytes.append(static_cast<const char*>(tensor.raw()) + i * size, size);
      }
  }
  return bytes;
}

/// Runs the pages and compares every integer of every tensor with the reference engine's.
void expect_reference(const std::vector<HtmlPage>& pages, const std::vector<Tensor>& pictures) {
  std::vector<testing::Case> cases;
  for (std::size_t i = 0; i < pages.size(); ++i) cases.push_back({html(pages[i]), pictures[i]});
  const Verdict verdict = judge(kPage, cases);
  ASSERT_EQ(verdict.status, 0) << verdict.err;
  for (std::size_t i = 0; i < pages.size(); ++i)
    EXPECT_TRUE(verdict.outputs[i] == expected_tensors(pages[i], pictures[i])) << "page " << i;
}

TEST(Html, ComputesTheIntegersOfTheReference) {
  MINIQAT_NEED_NODE();
  std::vector<HtmlPage> pages;
  std::vector<Tensor> pictures;
  std::set<std::string_view> kinds;
  std::set<int> weight_bits;
  Random random(5);
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    RandomModel net(seed, {8, 7, 3});
    for (int i = 0; i < 6; ++i) net.anything();
    if (seed % 2 == 0) net.mul(net.last(), net.last());
    if (seed % 3 == 0) net.gate();
    net.fully_connected(3);
    const Model model = seed < 8 ? testing::random_network(seed) : net.finish();
    pages.push_back(one_page(model));
    pictures.push_back(random_images(random, model, 5));
    for (const integer::Operation& operation : model.operations) {
      kinds.insert(type_name(operation.action));
      if (const auto* layer = std::get_if<integer::Layer>(&operation.action)) weight_bits.insert(layer->weight_bits);
    }
  }
  EXPECT_EQ(kinds,
            (std::set<std::string_view>{"Conv2D", "DepthwiseConv2d", "FullyConnected", "Add", "Mul", "Rescale",
                                        "Concat", "AveragePool", "MaxPool", "Reshape", "Pad", "Lookup", "Slice"}));
  EXPECT_EQ(weight_bits, (std::set<int>{2, 3, 4, 5, 6, 7, 8}));
  expect_reference(pages, pictures);
}

TEST(Html, ComputesAThousandPictures) {
  MINIQAT_NEED_NODE();
  const Model model = testing::small_digit_model(3);
  Random random(6);
  expect_reference({one_page(model)}, {random_images(random, model, testing::fewer(1000))});
}

/// Models that quantize bytes themselves, each in its way.
TEST(Html, MapsBytesForEachModel) {
  MINIQAT_NEED_NODE();
  HtmlPage page;
  for (const int bits : {8, 4, 2}) {
    RandomModel net(bits, {5, 6, 1}, {.only_bits = bits});
    net.conv2d(3);
    net.fully_connected(4);
    page.models.push_back({.model = net.finish(),
                           .label = std::to_string(bits),
                           .bytes = {.scale = 1.0f / 64, .zero_point = 128, .bits = 8}});
  }
  Tensor bytes(Shape{20, 5, 6, 1}, DType::kUInt8);
  Random random(2);
  for (std::uint8_t& byte : bytes.values<std::uint8_t>()) byte = static_cast<std::uint8_t>(random.below(256));
  expect_reference({page}, {bytes});
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// The judge sees wrong rounding, and steps that explain another integer than the engine's.
TEST(Html, TheJudgeSeesMistakes) {
  MINIQAT_NEED_NODE();
  const Model model = testing::small_digit_model(1);
  Random random(1);
  const Tensor images = random_images(random, model, 1);
  const std::string page = html(one_page(model));
  const auto complaint = [&](const std::string& from, const std::string& to, const std::string& part) {
    expect_complaint(judge(kPage, {{replaced(page, from, to), images}}), part);
  };
  complaint("(a + POWERS[shift - 17])", "(a)", " is ");
  complaint("const carry = Math.floor(lowProduct / 65536)", "const carry = Math.round(lowProduct / 65536)", " is ");
  complaint("const half = 1n << BigInt(shift - 1)", "const half = 0n", "explained as");
  complaint("sums[to + o] += value * units[row + o]", "sums[to + o] += value * units[row]", "explained as");
}

}  // namespace
}  // namespace miniqat::exporters::html_test
