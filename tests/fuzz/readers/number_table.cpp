#include "datasets/arrays/number_table.h"

#include <algorithm>

#include "core/text/suggest.h"
#include "datasets/arrays/number_tables.h"
#include "tests/fuzz/readers/reader.h"

namespace miniqat::fuzz::number_table_reader {

using namespace miniqat::datasets;

namespace {

NumberTable read(const std::filesystem::path& file) {
  return read_number_table(file, {.use = [](const std::vector<std::string>& names) {
                             return std::vector<ColumnUse>(names.size(), ColumnUse::kNumbers);
                           }});
}

std::string written(const NumberTable& table) {
  std::string text;
  const std::size_t columns = table.names.size();
  const auto values = table.numbers.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i)
    text += concat(exact(double{values[i]}), (i + 1) % columns == 0 ? "\n" : ",");
  return text;
}

}  // namespace

MINIQAT_READER(number_table)(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Place place;
  const auto file = place.write("in.csv", fuzz::text_of(data, size));
  FoundParts parts;
  if (fuzz::accepts([&] { parts = read_number_tables({{Part::kTrain, file}}, {}); })) {
    const PartData& part = parts.found.at(Part::kTrain);
    const std::int64_t rows = part.images.shape()[0];
    fuzz::require(part.classes.empty() || std::ssize(part.classes) == rows, "each row has a class");
    fuzz::require(!part.targets.defined() || part.targets.shape()[0] == rows, "each row has a number to predict");
  }
  NumberTable table;
  if (!fuzz::accepts([&] { table = read(file); })) return 0;
  fuzz::require(std::ssize(table.lines) == table.numbers.shape()[0], "each row has a line");
  const NumberTable back = read(place.write("again.csv", written(table)));
  fuzz::require(std::ranges::equal(back.numbers.values<float>(), table.numbers.values<float>()),
                "numbers written are read back");
  return 0;
}

}  // namespace miniqat::fuzz::number_table_reader
