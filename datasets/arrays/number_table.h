#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/tensors/tensor.h"
#include "datasets/arrays/float_rounding.h"

namespace miniqat::datasets {

/// What a column of a table is read as.
enum class ColumnUse { kNumbers, kTexts, kNothing };

/// How to read a table.
struct TableColumns {
  /// The use of each column, given their names.
  std::function<std::vector<ColumnUse>(const std::vector<std::string>& names)> use;
  /// Whether a word is the name of a column: with one of these, numbers in the first line are names, too.
  std::function<bool(const std::string& word)> is_name = [](const std::string&) { return false; };
  /// Texts may be missing; they stay as they are (is_missing()).
  bool texts_optional = false;
};

/// A table in text: a row an example, or a step of a series.
struct NumberTable {
  /// The names in the first line, or "0", "1", ... where it has none.
  std::vector<std::string> names;
  bool has_names = false;
  /// [rows, columns of numbers] float32; undefined without such columns.
  Tensor numbers;
  /// For each column of numbers what its floats lose.
  std::vector<FloatRounding> rounding;
  /// For each column of texts a text for each row; nothing for the others.
  std::vector<std::vector<std::string>> texts;
  /// The line of each row, from 1.
  std::vector<std::int64_t> lines;
};

/// Reads a table with commas between its fields or, where the first line has none, semicolons or tabs. The first line
/// has names unless a number stands in it. Fields may be quoted, which keeps a comma in them; empty lines are passed
/// over. The file may be gzipped. Throws Error that names file, line and column: another number of fields than in the
/// first line, text behind a quoted field, a value that is missing (nothing, "?", "NaN") or no finite number; and for a
/// table without rows.
NumberTable read_number_table(const std::filesystem::path& path, const TableColumns& columns);

/// Whether the first line of such a table has names. False of one without lines.
bool table_has_names(const std::filesystem::path& path, const std::function<bool(const std::string& word)>& is_name);

/// `"t.csv" line 3, column fat`: a place in a table, for errors.
std::string table_place(const std::filesystem::path& path, std::int64_t line, const std::string& column);

}  // namespace miniqat::datasets
