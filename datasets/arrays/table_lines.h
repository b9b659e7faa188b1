#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "datasets/gzip.h"

namespace miniqat::datasets {

/// The lines of a text file, which may be gzipped. A compressed one is expanded as far as it is read, so that nobody
/// waits for gigabytes of which the first line is none. Throws Error for a file that cannot be read or expanded, and
/// for a line without end.
class TableLines {
 public:
  explicit TableLines(const std::filesystem::path& path);

  /// The next one, without its end, until the call after this; none behind the last. The first one comes without the
  /// mark of UTF-8 that spreadsheets write.
  std::optional<std::string_view> next();
  /// The number of the line that came last, from 1.
  std::int64_t number() const { return number_; }

 private:
  /// Until there is a whole line, or the end.
  void expand();

  const std::filesystem::path path_;
  const std::string text_;
  /// The part of the text, or of what is expanded of it, that is not read yet.
  std::string_view rest_;
  std::optional<GzipReader> gzip_;
  std::string expanded_;
  std::size_t produced_ = 0;
  std::int64_t number_ = 0;
};

/// Takes the text before the next `mark` off the front of `rest`.
std::string_view take(std::string_view& rest, char mark);

/// The text without spaces, tabs and ends of lines around it.
std::string_view trimmed(std::string_view text);

/// The number that a whole text is, "+1.5e3" say; none where it is something else. NaN and infinities are numbers here,
/// and one that is out of range is infinite.
std::optional<double> number_in(std::string_view text);

/// Whether a text is a number too large or too small for 64 bits, as "1e999" is.
bool is_out_of_range(std::string_view text);

/// Whether a text stands for a value that nobody knows: none, "?" or "NaN", in any case.
bool is_missing(std::string_view text);

/// Throws Error that says why a text is no number for finite_in().
[[noreturn]] void fail_no_number(std::string_view text, const std::string& place);

/// A number out of a field of a table or series. Throws Error that begins with `place()`, a text: for a missing value,
/// for what is no number, and for one that is not finite in 32 bits.
template <class Place>
double finite_in(std::string_view text, const Place& place) {
  const std::optional<double> value = number_in(text);
  // (A NaN is not below either.)
  if (!value || !(std::abs(*value) <= std::numeric_limits<float>::max())) fail_no_number(text, place());
  return *value;
}

}  // namespace miniqat::datasets
