#include "datasets/arrays/table_lines.h"

#include <algorithm>
#include <charconv>
#include <span>

#include "core/files/files.h"
#include "core/platform/interruption.h"
#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/quote.h"

namespace miniqat::datasets {
namespace {

/// The most bytes that a compressed table expands to.
constexpr std::size_t kMostTableBytes = std::size_t{1} << 32;
/// The most bytes of a row: 16 million pixels, with their commas.
constexpr std::size_t kLongestRow = std::size_t{1} << 26;

}  // namespace

TableLines::TableLines(const std::filesystem::path& path) : path_(path), text_(read_large_file(path)), rest_(text_) {
  if (!is_gzip(text_)) return;
  gzip_.emplace(text_, path);
  rest_ = {};
}

std::optional<std::string_view> TableLines::next() {
  interruption_point();
  if (gzip_ && rest_.find('\n') == rest_.npos) expand();
  if (rest_.empty()) return {};
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (number_++ == 0 && rest_.starts_with(kMark)) rest_.remove_prefix(kMark.size());
  return take(rest_, '\n');
}

void TableLines::expand() {
  constexpr std::size_t kBlock = std::size_t{1} << 20;
  expanded_.erase(0, expanded_.size() - rest_.size());
  for (std::size_t line = std::string::npos, got = kBlock; line == std::string::npos && got == kBlock;) {
    const std::size_t before = expanded_.size();
    if (before > kLongestRow) fail(path_, " has a line of more than ", kLongestRow, " bytes: it is no table");
    expanded_.resize(before + kBlock);
    got = gzip_->read(std::span(expanded_).subspan(before));
    expanded_.resize(before + got);
    line = expanded_.find('\n', before);
    produced_ += got;
    if (produced_ > kMostTableBytes) fail(path_, " expands to more than the limit of ", kMostTableBytes, " bytes");
  }
  rest_ = expanded_;
}

std::string_view take(std::string_view& rest, char mark) {
  const std::size_t end = std::min(rest.find(mark), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

std::string_view trimmed(std::string_view text) {
  const auto in_the_way = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && in_the_way(text.front())) text.remove_prefix(1);
  while (!text.empty() && in_the_way(text.back())) text.remove_suffix(1);
  return text;
}

std::optional<double> number_in(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range)
    value = INFINITY;
  else if (error != std::errc())
    return {};
  if (end != text.data() + text.size() || text.empty()) return {};
  return value;
}

bool is_out_of_range(std::string_view text) {
  const std::optional<double> value = number_in(text);
  return value && std::isinf(*value) && std::ranges::any_of(text, is_ascii_digit);
}

bool is_missing(std::string_view text) {
  if (text.empty() || text == "?") return true;
  const std::string_view nan = "nan";
  return std::ranges::equal(text, nan, {}, ascii_lower);
}

void fail_no_number(std::string_view text, const std::string& place) {
  if (is_missing(text)) fail(place, ": a value is missing (", text.empty() ? "nothing stands there" : quote(text), ")");
  if (is_out_of_range(text)) fail(place, ": ", quote(text), " is out of the range of numbers");
  if (number_in(text)) fail(place, ": ", quote(text), " is no finite number of 32 bits");
  fail(place, ": ", quote(text), " is not a number");
}

}  // namespace miniqat::datasets
