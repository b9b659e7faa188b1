#include "datasets/arrays/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "datasets/arrays/column_roles.h"
#include "datasets/arrays/table_lines.h"
#include "datasets/dataset.h"

namespace miniqat::datasets {
namespace {

std::string_view without_frame(std::string_view text) {
  const auto in_the_way = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '"'; };
  while (!text.empty() && in_the_way(text.front())) text.remove_prefix(1);
  while (!text.empty() && in_the_way(text.back())) text.remove_suffix(1);
  return text;
}

bool is_number(std::string_view field) {
  return !field.empty() && (is_ascii_digit(field[0]) || field[0] == '-' || field[0] == '+');
}

class CsvReader {
 public:
  CsvReader(const std::filesystem::path& path, const Shape& size, bool labels_optional)
      : path_(path),
        size_(size),
        labels_optional_(labels_optional),
        labels_may_be_missing_(labels_optional),
        lines_(path) {}

  void read() {
    while (const std::optional<std::string_view> text = lines_.next()) {
      const std::string_view row = without_frame(*text);
      if (row.empty()) continue;
      if (labels_.empty() && !seen_names_ && !begins_an_example(row))
        read_names(row);
      else
        read_row(row, lines_.number());
    }
    if (labels_.empty()) fail(path_, " holds no row of a label and pixels");
  }

  CsvPictures pictures() const {
    const Shape example = example_of();
    const auto count = static_cast<std::int64_t>(labels_.size());
    const bool is_any_known = std::ranges::any_of(labels_, [](std::int32_t label) { return label >= 0; });
    return {.images = Tensor::from<std::uint8_t>({count, example[0], example[1], example[2]}, pixels_),
            .labels = is_any_known ? Tensor::from<std::int32_t>({count}, labels_) : Tensor()};
  }

 private:
  /// Not a row of names: a label that may be missing, and a pixel.
  bool begins_an_example(std::string_view row) const {
    const std::string_view first = without_frame(take(row, ','));
    return is_number(first) ||
           (labels_may_be_missing_ && is_missing(first) && is_number(without_frame(take(row, ','))));
  }

  void read_names(std::string_view row) {
    seen_names_ = true;
    for (std::int64_t column = 0; !row.empty(); ++column) {
      if (is_usual_name(std::string(without_frame(take(row, ','))))) {
        label_column_ = column;
        labels_optional_ = false;
      }
    }
  }

  /// Whether a row has pixels alone.
  bool has_no_label(std::string_view row) const {
    const std::int64_t numbers = std::ranges::count(row, ',') + 1, area = size_[0] * size_[1];
    return labels_optional_ && (numbers == area || numbers == 3 * area);
  }

  void read_row(std::string_view row, std::int64_t line) {
    const std::size_t before = pixels_.size();
    if (labels_.empty() && has_no_label(row)) label_column_ = -1;
    std::int64_t column = 0, label = -1;
    for (; !row.empty(); ++column) {
      const bool is_label = column == label_column_;
      const std::string_view field = without_frame(take(row, ','));
      if (is_label && labels_may_be_missing_ && is_missing(field)) continue;
      const std::int64_t value = number(field, line);
      if (value < 0 || value >= (is_label ? kMostClasses : 256))
        fail(path_, " line ", line, " has the ", is_label ? "label " : "pixel ", value, "; it must be in [0, ",
             is_label ? kMostClasses : 256, ")");
      if (is_label)
        label = value;
      else
        pixels_.push_back(static_cast<std::uint8_t>(value));
    }
    const auto found = static_cast<std::int64_t>(pixels_.size() - before);
    if (column <= label_column_ && !labels_may_be_missing_) fail(path_, " line ", line, " has no label");
    if (found == 0) fail(path_, " line ", line, " has a label but no pixels");
    if (row_pixels_ == 0) row_pixels_ = found;
    if (found != row_pixels_) fail(path_, " line ", line, " has ", found, " pixels, the lines before it ", row_pixels_);
    labels_.push_back(static_cast<std::int32_t>(label));
  }

  std::int64_t number(std::string_view field, std::int64_t line) const {
    if (field.empty()) fail(path_, " line ", line, ": a value is missing");
    if (field.starts_with('+')) field.remove_prefix(1);
    double value = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    if (error != std::errc() || end != field.data() + field.size() || field.empty())
      fail(path_, " line ", line, ": ", quote(field), " is not a number",
           field.find(';') == std::string_view::npos ? "" : "; commas stand between numbers here, not semicolons");
    if (!(std::abs(value) < 1e9) || value != std::floor(value))
      fail(path_, " line ", line, ": ", quote(field), " is not a whole number in [0, 255]");
    return static_cast<std::int64_t>(value);
  }

  Shape example_of() const {
    for (const std::int64_t channels : {1, 3})
      if (row_pixels_ > 0 && size_[0] * size_[1] * channels == row_pixels_) return {size_[0], size_[1], channels};
    for (const std::int64_t channels : {1, 3}) {
      const std::int64_t area = row_pixels_ / channels;
      if (area * channels != row_pixels_) continue;
      const auto side = static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(area))));
      if (side * side == area) return {side, side, channels};
    }
    fail(path_, " has ", row_pixels_, " pixels a line, which are not those of a square; give --image-size HxW");
  }

  const std::filesystem::path& path_;
  const Shape size_;
  bool labels_optional_;
  const bool labels_may_be_missing_;
  TableLines lines_;
  bool seen_names_ = false;
  /// -1: none.
  std::int64_t label_column_ = 0;
  std::int64_t row_pixels_ = 0;
  std::vector<std::uint8_t> pixels_;
  std::vector<std::int32_t> labels_;
};

}  // namespace

CsvPictures read_csv_pictures(const std::filesystem::path& path, const Shape& size, bool labels_optional) {
  CsvReader reader(path, size, labels_optional);
  reader.read();
  return reader.pictures();
}

}  // namespace miniqat::datasets
