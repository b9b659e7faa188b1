#include "quantize/rewrite/layer_bits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

#include "core/tensors/random.h"
#include "core/text/json.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/errors.h"

namespace miniqat::quantize::layer_bits_test {
namespace {

using testing::error_of;
using testing::mentions;

std::vector<LayerBits> parse(const std::string& text) { return layer_bits_from_json(text, "bits.json"); }

TEST(LayerBits, FileKeepsItsOrder) {
  const std::vector<LayerBits> expected = {
      {.pattern = "conv1", .weight_bits = 8, .activation_bits = 16},
      {.pattern = "block*/depthwise", .weight_bits = 2, .ema_decay = 0, .symmetric = true, .per_channel = false},
      {.pattern = "a?", .ema_decay = 0.9},
      {.pattern = "b", .symmetric = false, .symmetric_weights = true},
      {.pattern = "c", .activation_bits = 4, .sums_bits = 8},
      {.pattern = "*", .weight_bits = 4, .activation_bits = 4}};
  EXPECT_EQ(parse(R"({"conv1": {"weight_bits": 8, "activation_bits": 16},
                      "block*/depthwise": {"per_channel": false, "weight_bits": 2, "symmetric": true, "ema_decay": 0},
                      "a?": {"ema_decay": 0.9},
                      "b": {"symmetric_weights": true, "symmetric": false},
                      "c": {"sums_bits": 8, "activation_bits": 4},
                      "*": 4})"),
            expected);
  EXPECT_EQ(layer_bits_from_json(layer_bits_to_json(expected).dump(), "again"), expected);
}

TEST(LayerBits, MalformedFilesAreRefusedInOneLine) {
  const auto refuses = [](const std::string& text, std::vector<std::string> parts) {
    SCOPED_TRACE(text);
    parts.push_back("bits.json: ");
    EXPECT_TRUE(mentions(error_of([&] { parse(text); }), parts));
  };
  refuses("", {"malformed"});
  refuses("{\"conv1\": 8,", {"line 1"});
  refuses("[8]", {"object", "patterns"});
  refuses("8", {"object"});
  refuses("{}", {"empty"});
  refuses(R"({"": 8})", {"pattern \"\"", "empty"});
  refuses(R"({"conv1": {}})", {"\"conv1\"", "sets nothing"});
  refuses(R"({"conv1": {"weight_bit": 8}})", {"\"conv1\"", "\"weight_bit\"", "did you mean \"weight_bits\""});
  refuses(R"({"conv1": {"bits": 8}})", {"\"conv1\"", "\"bits\"", "known are weight_bits, activation_bits, ema_decay"});
  refuses(R"({"conv1": 8, "conv1": 4})", {"\"conv1\"", "twice"});
  refuses(R"({"conv1": {"weight_bits": 8, "weight_bits": 4}})", {"\"weight_bits\"", "twice"});
  refuses(R"({"line\nbreak": "8"})", {R"("line\nbreak")"});
  for (const std::string bits : {"1", "17", "-4", "0", "4.5", "4.0", "99999999999", "18446744073709551615", "1e9"}) {
    refuses(R"({"conv1": )" + bits + "}", {"\"conv1\"", "bits must be a whole number from 2 to 16"});
    for (const std::string key : {"weight_bits", "activation_bits", "sums_bits"})
      refuses(R"({"conv1": {")" + key + "\": " + bits + "}}", {"\"conv1\"", key, "whole number from 2 to 16"});
  }
  for (const std::string decay : {"1", "1.0", "-0.1", "2", "\"0.9\"", "null", "true"})
    refuses(R"({"conv1": {"ema_decay": )" + decay + "}}", {"\"conv1\"", "ema_decay", "[0, 1)", "not " + decay});
  for (const std::string flag : {"1", "\"true\"", "null", "[true]"})
    for (const std::string key : {"symmetric", "symmetric_weights", "per_channel"})
      refuses(R"({"conv1": {")" + key + "\": " + flag + "}}", {"\"conv1\"", key, "true or false", "not " + flag});
  for (const std::string value : {"\"8\"", "null", "true", "[8, 8]"})
    refuses(R"({"conv1": )" + value + "}", {"\"conv1\"", "a number of bits or an object", "not " + value});
  refuses(R"({"conv1": {"weight_bits": "8"}})", {"\"conv1\"", "weight_bits", "not \"8\""});
  refuses(R"({"conv1": {"weight_bits": {"a": 8}}})", {"\"conv1\"", "weight_bits"});
}

TEST(LayerBits, APatternBehindOneThatTakesEverythingIsRefused) {
  EXPECT_TRUE(mentions(error_of([] { parse(R"({"a": 8, "*": 4, "conv1": 8})"); }),
                       {"bits.json: ", "\"conv1\"", "overlaps", "\"*\" before it"}));
  EXPECT_TRUE(mentions(error_of([] { parse(R"({"**": 4, "*": 8})"); }), {"\"*\"", "overlaps", "\"**\" before it"}));
  EXPECT_EQ(parse(R"({"conv1": 8, "conv*": 6, "*": 4})").size(), 3u);
}

TEST(LayerBits, OptionsAreCheckedLikeFiles) {
  const auto message = [](std::vector<LayerBits> list) {
    return error_of([&] { RewriteOptions{.layer_bits = list}.check(); });
  };
  EXPECT_EQ(message({{.pattern = "a", .weight_bits = 2, .activation_bits = 16, .ema_decay = 0}}), "");
  EXPECT_TRUE(
      mentions(message({{.pattern = "a", .weight_bits = 1}}), {"bits_config", "\"a\"", "weight_bits", "not 1"}));
  EXPECT_TRUE(mentions(message({{.pattern = "a", .activation_bits = 17}}), {"\"a\"", "activation_bits", "not 17"}));
  EXPECT_TRUE(mentions(message({{.pattern = "a", .ema_decay = 1}}), {"\"a\"", "ema_decay"}));
  EXPECT_TRUE(mentions(message({{.pattern = "a", .ema_decay = std::nan("")}}), {"\"a\"", "ema_decay"}));
  EXPECT_TRUE(mentions(message({{.pattern = "a"}}), {"\"a\"", "sets nothing"}));
  EXPECT_TRUE(mentions(message({{.weight_bits = 8}}), {"empty pattern"}));
  EXPECT_TRUE(mentions(message({{.pattern = "a", .weight_bits = 8}, {.pattern = "a", .weight_bits = 4}}),
                       {"\"a\"", "overlaps", "the same pattern"}));
  EXPECT_TRUE(mentions(message({{.pattern = "\xff", .weight_bits = 1}}), {"weight_bits"})) << "not UTF-8";
}

TEST(LayerBits, SymmetricIncludesTheWeightsAlsoHere) {
  const auto message = [](bool symmetric, const LayerBits& bits) {
    return error_of([&] { RewriteOptions{.symmetric = symmetric, .layer_bits = {bits}}.check(); });
  };
  const std::vector<std::string> parts = {"bits_config", "\"a\"", "symmetric_weights cannot be false"};
  EXPECT_TRUE(mentions(message(true, {.pattern = "a", .symmetric_weights = false}), parts));
  EXPECT_TRUE(mentions(message(false, {.pattern = "a", .symmetric = true, .symmetric_weights = false}), parts));
  EXPECT_EQ(message(true, {.pattern = "a", .symmetric = false, .symmetric_weights = false}), "");
  EXPECT_EQ(message(true, {.pattern = "a", .symmetric_weights = true}), "");
  EXPECT_EQ(message(false, {.pattern = "a", .symmetric_weights = false}), "");
}

TEST(LayerBits, PatternsMatchNamesAndEnclosingScopes) {
  const std::string layer = "block1/depthwise/Conv2D";
  for (const char* pattern : {"block1/depthwise/Conv2D", "block1/depthwise", "block1", "block?", "block*/depthwise",
                              "*/Conv2D", "*", "*wise", "b*2D", "block[12]"})
    EXPECT_TRUE(matches_layer(pattern, layer)) << pattern;
  for (const char* pattern : {"block", "depthwise", "Conv2D", "block1/", "block1/d", "lock1", "block??", "", "Block1"})
    EXPECT_FALSE(matches_layer(pattern, layer)) << pattern;
  EXPECT_TRUE(matches_layer("MatMul", "MatMul"));
}

TEST(LayerBits, AFoldedLayerKeepsItsName) {
  for (const char* pattern : {"conv1/Conv2D", "conv1/Conv2D_Fold", "conv1", "*/Conv2D"})
    EXPECT_TRUE(matches_layer(pattern, "conv1/Conv2D_Fold")) << pattern;
  EXPECT_FALSE(matches_layer("conv1/Conv", "conv1/Conv2D_Fold"));
  EXPECT_FALSE(matches_layer("conv1/Conv2D_Fold", "conv1/Conv2D"));
}

TEST(LayerBits, TheFirstMatchWins) {
  const std::vector<LayerBits> list = parse(R"({"conv1": {"weight_bits": 8}, "conv*": 6, "*": 4})");
  const LayerBitsIndex index(list);
  EXPECT_EQ(index.first_match("conv1/Conv2D"), &list[0]);
  EXPECT_EQ(index.first_match("conv10/Conv2D"), &list[1]);
  EXPECT_EQ(index.first_match("fc/MatMul"), &list[2]);
  EXPECT_EQ(LayerBitsIndex(std::span(list).first(2)).first_match("fc/MatMul"), nullptr);
  const std::vector<LayerBits> glob_first = parse(R"({"c*": 6, "conv1": {"weight_bits": 8}})");
  EXPECT_EQ(LayerBitsIndex(glob_first).first_match("conv1/Conv2D"), &glob_first[0]);
}

std::string random_text(Random& random, std::string_view letters, int most) {
  std::string text;
  for (auto left = static_cast<int>(1 + random.below(most)); left > 0; --left)
    text += letters[random.below(letters.size())];
  return text;
}

TEST(LayerBits, PiecesAreWhatEveryNameHas) {
  using Pieces = std::vector<std::string_view>;
  EXPECT_EQ(literal_pieces("conv1"), Pieces({"conv1"}));
  EXPECT_EQ(literal_pieces("*block7/*?x"), Pieces({"block7/", "x"}));
  EXPECT_EQ(literal_pieces("a[0-9]b[!cd]e"), Pieces({"a", "b", "e"}));
  EXPECT_EQ(literal_pieces("a\\*b\\"), Pieces({"a", "*b"}));
  // The end of these brackets is hard to tell; the last of them has none.
  EXPECT_EQ(literal_pieces("a[]b]c]d"), Pieces({"a", "d"}));
  EXPECT_EQ(literal_pieces("a[[:digit:]b]c*d"), Pieces({"a", "c", "d"}));
  EXPECT_EQ(literal_pieces("a[b*c"), Pieces({"a", "b", "c"}));
  EXPECT_EQ(literal_pieces("*?[ab]"), Pieces());
}

/// What a plain search finds, of one layer and of several.
const LayerBits* search(const std::vector<LayerBits>& list, std::string_view layer) {
  const auto matches = [&](const LayerBits& bits) { return matches_layer(bits.pattern, layer); };
  const auto found = std::ranges::find_if(list, matches);
  return found == list.end() ? nullptr : &*found;
}

std::size_t search(const std::vector<std::string_view>& layers, const std::string& pattern) {
  const auto is_matched = [&](std::string_view layer) { return matches_layer(pattern, layer); };
  return static_cast<std::size_t>(std::ranges::find_if(layers, is_matched) - layers.begin());
}

/// Compares the index with the searches over lists of random patterns and random names.
void expect_the_search(const std::function<std::string()>& pattern, const std::function<std::string()>& layer) {
  int found = 0, missed = 0;
  for (int i = 0; i < 3000; ++i) {
    std::vector<LayerBits> list;
    for (int k = 0; k <= i % 6; ++k) list.push_back({.pattern = pattern(), .weight_bits = 4});
    const std::string names[] = {layer(), layer(), layer() + "_Fold"};
    const std::vector<std::string_view> layers(std::begin(names), std::end(names));
    const LayerBitsIndex index(list);
    for (const std::string_view name : layers) {
      const LayerBits* expected = search(list, name);
      ASSERT_EQ(index.first_match(name), expected) << name << ", " << list[0].pattern;
      ++(expected ? found : missed);
    }
    const std::vector<std::size_t> first = index.first_layers(layers);
    ASSERT_EQ(first.size(), list.size());
    for (std::size_t k = 0; k < list.size(); ++k)
      ASSERT_EQ(first[k], search(layers, list[k].pattern)) << list[k].pattern << ", " << names[0];
  }
  EXPECT_GT(found, 300);
  EXPECT_GT(missed, 300);
}

TEST(LayerBits, TheIndexFindsWhatASearchFinds) {
  Random random(7);
  expect_the_search([&] { return random_text(random, "aab*?[]\\/!", 5); },
                    [&] { return random_text(random, "aab/*]\\", 6); });
  expect_the_search([&] { return random_text(random, "ab**?[[]]\\!^-:.=", 9); },
                    [&] { return random_text(random, "ab[]-:*\\", 5); });
}

TEST(LayerBits, TheIndexFindsWhatASearchFindsInNamesOfNetworks) {
  Random random(8);
  const auto one_of = [&](const std::vector<std::string>& texts) { return texts[random.below(texts.size())]; };
  const auto number = [&] { return std::to_string(random.below(25)); };
  const std::vector<std::string> kinds = {"block#/*",
                                          "*block#/*",
                                          "*/Conv2D#*",
                                          "block*#/Conv2D",
                                          "*/expand#/*",
                                          "*#/*",
                                          "block#",
                                          "*expand#*#",
                                          "block[#]*",
                                          "*[!#]/Con*",
                                          "*block[0-9]/*#",
                                          "block?/*Conv2D#",
                                          "*#*#",
                                          "*Conv2D_Fold",
                                          "block#*D*",
                                          "b*k*#/e*d#*",
                                          "*\\block#*",
                                          "[ab]lock#/*2D[0-9]",
                                          "*[]#]/expand*",
                                          "#*",
                                          "*#",
                                          "*/expand#/C*",
                                          "*[[:alpha:]]#/*#",
                                          "block#*#",
                                          "*expand",
                                          "?lock#*/?onv2D#",
                                          "*",
                                          "*block#*"};
  expect_the_search(
      [&] {
        std::string pattern;
        for (const char c : one_of(kinds)) pattern += c == '#' ? number() : std::string(1, c);
        return pattern;
      },
      [&] {
        return one_of({"", "", "net/"}) + "block" + number() + one_of({"/", "/expand/", "/expand" + number() + "/"}) +
               "Conv2D" + one_of({"", number()});
      });
}

TEST(PatternOfLayer, FitsOnlyItsLayer) {
  EXPECT_EQ(pattern_of_layer("conv1/Conv2D"), "conv1/Conv2D");
  EXPECT_EQ(pattern_of_layer("conv1/Conv2D_Fold"), "conv1/Conv2D");
  EXPECT_EQ(unfolded_name("conv1/Conv2D_Fold"), "conv1/Conv2D");
  EXPECT_EQ(pattern_of_layer("a[1]*?\\/Conv2D"), "a\\[1]\\*\\?\\\\/Conv2D");
  for (const std::string name : {"conv1/Conv2D_Fold", "a[1]/Conv2D", "a*/b", "a\\b", "a?"}) {
    EXPECT_TRUE(matches_layer(pattern_of_layer(name), name)) << name;
    EXPECT_EQ(
        layer_bits_from_json(
            layer_bits_to_json(std::vector<LayerBits>{{.pattern = pattern_of_layer(name), .weight_bits = 4}}).dump(),
            "bits")
            .at(0)
            .pattern,
        pattern_of_layer(name));
  }
  EXPECT_FALSE(matches_layer(pattern_of_layer("a*"), "ab"));
  EXPECT_FALSE(matches_layer(pattern_of_layer("a[1]"), "a1"));
}

}  // namespace
}  // namespace miniqat::quantize::layer_bits_test
