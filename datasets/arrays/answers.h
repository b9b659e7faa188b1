#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "datasets/arrays/number_table.h"
#include "datasets/load_options.h"
#include "datasets/part_data.h"

namespace miniqat::datasets {

/// The columns of a part's table that are to be predicted.
struct AnswerColumns {
  std::filesystem::path file;
  std::vector<std::string> names;
  /// For each column a text for each example.
  std::vector<std::vector<std::string>> columns;
  /// The line of each example.
  std::vector<std::int64_t> lines;
};

/// Moves the columns with these indices out of a table.
AnswerColumns take_answers(const std::filesystem::path& file, const std::vector<std::size_t>& answers,
                           NumberTable& table);

/// Puts what examples are to be answered with into the parts, which must be there, and a note that says what it is. The
/// last part names the columns.
///
/// A column of texts is classes, "inf" among them, too, but no number out of range, "1e999". One of numbers is classes,
/// too, if all of them are whole, none is negative, and few differ: at most 100, each in two rows on average. Every
/// other column has numbers to predict, and so have several columns. NumberOptions::answers, the standard of a
/// network's targets, or the names of a network's classes decide before that. A value that is missing is the class ""
/// or the target NaN; if all are, nothing is put. Throws Error that names file, line and column, and for parts with
/// other columns or in another order.
void put_answers(const std::map<Part, AnswerColumns>& answers, const LoadOptions& options, FoundParts& parts);

}  // namespace miniqat::datasets
