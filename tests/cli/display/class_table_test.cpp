#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cli/display/tables.h"
#include "tests/cli/program.h"

namespace miniqat::cli::class_table_test {
namespace {

using testing::expect_text;
using training::Answers;

/// So many classes; picture i, of class labels[i], is taken for chosen[i] (-1: NaN). Files may be none.
Answers answers_of(int classes, const std::vector<std::int32_t>& labels, const std::vector<int>& chosen,
                   const std::vector<std::string>& files = {}) {
  const auto n = static_cast<std::int64_t>(labels.size());
  Answers answers({.name = "some",
                   .images = Tensor(Shape{n, 1, 1, 1}, DType::kUInt8),
                   .labels = Tensor::from<std::int32_t>({n}, labels),
                   .classes = classes,
                   .files = files.empty() ? nullptr : std::make_shared<std::vector<std::string>>(files)});
  for (std::int64_t i = 0; i < n; ++i) {
    const int one = chosen[static_cast<std::size_t>(i)];
    std::vector<float> logits(static_cast<std::size_t>(classes), one < 0 ? NAN : 0.0f);
    if (one >= 0) logits[static_cast<std::size_t>(one)] = 100;
    answers.add(i, logits);
  }
  return answers;
}

TEST(ClassTable, OfFewClassesIsTheMatrix) {
  EXPECT_EQ(class_table(answers_of(3, {0, 0, 1, 1}, {0, 2, 1, 1})),
            "by class; a row is a label, a column a predicted class\n"
            "label  accuracy  pictures  0  1  2\n"
            "0        50.00%         2  1  .  1\n"
            "1       100.00%         2  .  2  .\n"
            "2             -         0  .  .  .\n");
  EXPECT_EQ(class_table(answers_of(2, {0, 0}, {0, -1})),
            "by class; a row is a label, a column a predicted class\n"
            "label  accuracy  pictures  0  1  none (NaN)\n"
            "0        50.00%         2  1  .           1\n"
            "1             -         0  .  .           .\n");
}

TEST(ClassTable, OfManyClassesIsTheWorstOfThem) {
  std::vector<std::int32_t> labels;
  std::vector<int> chosen;
  for (int label = 0; label < 30; ++label)
    for (int i = 0; i < 3; ++i) {
      labels.push_back(label);
      // Class 29 is taken for 28 three times, 28 for 27 twice; all others for 0 once.
      chosen.push_back(label == 29 || (label == 28 && i > 0) ? label - 1 : i == 0 && label < 28 ? 0 : label);
    }
  const std::string text = class_table(answers_of(30, labels, chosen));
  EXPECT_TRUE(
      text.starts_with("classes, the worst first; the first 20 of 30\n"
                       "label  accuracy  pictures\n"
                       "29        0.00%         3\n"
                       "28       33.33%         3\n"
                       "1        66.67%         3\n"))
      << text;
  expect_text(text, {"confusions, the most frequent first; the first 20 of 29\n"
                     "label  predicted  pictures\n"
                     "29     28                3\n"
                     "28     27                2\n"
                     "1      0                 1\n"});
  EXPECT_EQ(std::ranges::count(text, '\n'), 44);
}

TEST(SensitivityTable, HasANanBehindAllNumbers) {
  constexpr training::MeasureKind kKind{.name = "accuracy", .brief = "accuracy", .key = "accuracy"};
  const training::Evaluation evaluation{.measures = {{.kind = &kKind}}};
  training::Sensitivity sensitivity;
  sensitivity.in_float = evaluation;
  for (int i = 0; i < 40; ++i) {
    const double increase = i % 2 == 0 ? std::nan("") : i;
    sensitivity.quantizers.push_back(
        {.layer = concat("l", i, "."), .alone = {{.evaluation = evaluation, .loss_increase = increase}}});
  }
  const std::string table = sensitivity_table(sensitivity, 0);
  std::vector<std::size_t> places;
  for (int i = 39; i > 0; i -= 2) places.push_back(table.find(concat("l", i, ".")));
  for (int i = 0; i < 40; i += 2) places.push_back(table.find(concat("l", i, ".")));
  EXPECT_TRUE(std::ranges::is_sorted(places)) << table;
}

TEST(WrongTable, IsALineForEachWrongPicture) {
  EXPECT_EQ(wrong_table(answers_of(3, {0, 0, 1, 2}, {0, 2, 1, -1})),
            "2 wrong pictures\n"
            "index  label   predicted    score\n"
            "    1      0           2  100.00%\n"
            "    3      2  none (NaN)        -\n");
  EXPECT_EQ(wrong_table(answers_of(2, {0}, {0})), "no wrong picture\n");
  EXPECT_EQ(wrong_table(answers_of(2, {0, 0, 1}, {1, 0, 0}, {"a.png", "b.png", "test/c.png"})),
            "2 wrong pictures\n"
            "file        index  label  predicted    score\n"
            "a.png           0      0          1  100.00%\n"
            "test/c.png      2      1          0  100.00%\n");
}

}  // namespace
}  // namespace miniqat::cli::class_table_test
