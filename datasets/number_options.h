#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/standard.h"

namespace miniqat::datasets {

/// What a user's arrays and tables are read as.
enum class Inputs {
  /// Pictures where they can be some: bytes of 1 or 3 channels. Everything else is numbers.
  kAuto,
  kPictures,
  kNumbers,
};
/// "auto", "pictures", "numbers".
std::span<const std::string_view> names_of(Inputs);

/// What a column of a table, or an array of answers, gives.
enum class Answers {
  /// Texts and whole numbers are classes, other numbers are targets (answers.h, array_numbers.h).
  kAuto,
  kClasses,
  kTargets,
};
/// "auto", "classes", "targets".
std::span<const std::string_view> names_of(Answers);

/// How numbers from a user's files become examples.
struct NumberOptions {
  Inputs inputs = Inputs::kAuto;
  /// What a network that is there already was trained on. kAuto in `inputs` stands for it: numbers are read as numbers,
  /// and arrays must be pictures for a network of pictures. Other files tell what they are by themselves.
  Inputs trained_on = Inputs::kAuto;
  /// The columns of a table that are to be predicted, by their names or by their numbers from 0. Empty: the column
  /// called label, class or target, in any case.
  std::vector<std::string> target = {};
  Answers answers = Answers::kAuto;
  /// The names of the features that a network was trained on, in their order, which tables with names must have. Empty:
  /// nobody knows them.
  std::vector<std::string> features = {};
  /// The features or channels that a network takes; 0: there is none yet.
  std::int64_t channels = 0;
  /// Numbers, and targets unless these are zeros and ones, are standardised.
  bool standardise = true;
  /// What a network that is there already was trained with. Null: found from the training part; without one nothing is
  /// standardised.
  std::shared_ptr<const Standard> standard = {};
  std::shared_ptr<const Standard> target_standard = {};
  /// Series of fewer steps are filled up to so many with the means of their channels. 0: all must have equally many.
  std::int64_t pad_to = 0;
  /// Examples of one group stay in one part. The name of a column, or an expression (ECMAScript) that finds the group
  /// in the path of an example's file inside the data set: its first capture or, without any, what it matches. Where
  /// LoadOptions::whole_as_test is set, data without such groups have none; otherwise they are an error.
  std::string group_by = {};
  /// The groups that are the test part. Empty: the last of every six.
  std::vector<std::string> test_groups = {};
};

}  // namespace miniqat::datasets
