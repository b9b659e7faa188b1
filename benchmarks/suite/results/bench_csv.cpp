#include "benchmarks/suite/results/bench_csv.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/text/json.h"

namespace miniqat::benchmarks {
namespace {

using Json = nlohmann::ordered_json;

/// Columns and their texts.
using CsvRow = std::vector<std::pair<std::string, std::string>>;

std::string cell_of(const Json& value) {
  if (!value.is_string()) return value.is_null() ? "" : value.dump();
  const std::string text = value.get<std::string>();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) quoted += letter == '"' ? "\"\"" : std::string(1, letter);
  return quoted + "\"";
}

void add_cells(const std::string& prefix, const Json& object, CsvRow& row) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = prefix + key;
    if (value.is_object()) {
      add_cells(name + "_", value, row);
    } else if (!value.is_array()) {
      row.emplace_back(name, cell_of(value));
    } else if (value.size() == 2 && (name.ends_with("_quartiles") || name.ends_with("_interval"))) {
      row.emplace_back(name + "_low", cell_of(value[0]));
      row.emplace_back(name + "_high", cell_of(value[1]));
    }
  }
}

/// Adds the columns that the row has and the others have not, each behind the one that is before it in the row.
void add_columns(const CsvRow& row, std::vector<std::string>& columns) {
  auto place = columns.begin();
  for (const auto& [name, text] : row) {
    const auto found = std::ranges::find(columns, name);
    place = (found == columns.end() ? columns.insert(place, name) : found) + 1;
  }
}

std::string line_of(const CsvRow& row, const std::vector<std::string>& columns) {
  std::string line;
  for (const std::string& column : columns) {
    const auto cell = std::ranges::find(row, column, &CsvRow::value_type::first);
    line += (&column == &columns.front() ? "" : ",") + (cell == row.end() ? "" : cell->second);
  }
  return line + "\n";
}

/// What the figures are of.
CsvRow machine_cells(const Json& json) {
  CsvRow cells;
  for (const char* key : {"cpu", "instruction_set"})
    if (json.contains("machine") && json["machine"].contains(key))
      cells.emplace_back(key, cell_of(json["machine"][key]));
  for (const char* key : {"version", "commit", "date"})
    if (json.contains(key)) cells.emplace_back(key, cell_of(json[key]));
  return cells;
}

}  // namespace

std::string bench_csv(const Json& json) {
  const std::vector<std::pair<const char*, const char*>> lists = {
      {"kernels", "kernel"}, {"steps", "step"}, {"loaded", "loaded"}, {"cases", "compared"}};
  const CsvRow machine = machine_cells(json);
  std::vector<CsvRow> rows;
  std::vector<std::string> columns;
  for (const auto& [list, kind] : lists) {
    if (!json.contains(list)) continue;
    for (const Json& object : json[list]) {
      CsvRow row = {{"row", kind}};
      add_cells("", object, row);
      add_columns(row, columns);
      row.insert(row.end(), machine.begin(), machine.end());
      rows.push_back(std::move(row));
    }
  }
  if (rows.empty()) return "";
  for (const auto& [name, text] : machine) columns.push_back(name);
  std::string csv;
  for (const std::string& column : columns) csv += (csv.empty() ? "" : ",") + column;
  csv += "\n";
  for (const CsvRow& row : rows) csv += line_of(row, columns);
  return csv;
}

}  // namespace miniqat::benchmarks
