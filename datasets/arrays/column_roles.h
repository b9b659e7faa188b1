#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "datasets/arrays/number_table.h"
#include "datasets/load_options.h"

namespace miniqat::datasets {

/// Label, class or target, in any case.
bool is_usual_name(const std::string& column);

/// Whether a word is the name of a column that the options, or nobody, ask for: also label, class and target.
bool is_column_name(const NumberOptions& options, const std::string& word);

/// The places of the columns that are to be predicted: those of NumberOptions::target, else the one that is called
/// label, class or target; none without one. Throws Error for a column that is not there, unless answers are optional,
/// and for two so called.
std::vector<std::size_t> answer_columns(const std::filesystem::path& file, const std::vector<std::string>& names,
                                        const LoadOptions& options);

/// Whether the names are "0", "1", ...: those of a table without names.
bool are_numbered(const std::vector<std::string>& names);

/// Throws Error where the features of a table with names, which are `thing`s, are not NumberOptions::features.
void require_known_features(const std::filesystem::path& file, const std::vector<std::string>& features,
                            const NumberOptions& options, const char* thing);

/// The place of the column called `asked`, or of the one with that number. Blanks around it do not count: names in
/// tables have none. Throws Error that names the file where several columns are called so.
std::optional<std::size_t> column_called(const std::filesystem::path& file, const std::vector<std::string>& names,
                                         const std::string& asked);

/// Throws Error where the column of groups is one that is to be predicted, too.
void require_no_answer(const std::filesystem::path& file, const std::vector<std::string>& names,
                       const std::vector<std::size_t>& answers, std::optional<std::size_t> group);

/// Throws Error: there is no such column.
[[noreturn]] void fail_no_column(const std::filesystem::path& file, const std::vector<std::string>& names,
                                 const std::string& wanted);

}  // namespace miniqat::datasets
