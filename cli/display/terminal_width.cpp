#include "cli/display/terminal_width.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace miniqat::cli {
namespace {

constexpr std::size_t kUsualColumns = 80;

/// $COLUMNS.
std::optional<std::size_t> columns_asked_for() {
  const char* const text = std::getenv("COLUMNS");
  const std::string_view all = text == nullptr ? "" : text;
  std::size_t columns = 0;
  const auto [end, error] = std::from_chars(all.data(), all.data() + all.size(), columns);
  const bool is_number = error == std::errc() && end == all.data() + all.size();
  return is_number && columns > 0 ? std::optional(columns) : std::nullopt;
}

}  // namespace

std::optional<std::size_t> terminal_columns(std::FILE* file) {
  const int stream = fileno(file);
  if (isatty(stream) == 0) return {};
  winsize size{};
  const bool told = ioctl(stream, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return told ? size.ws_col : columns_asked_for().value_or(kUsualColumns);
}

std::size_t text_columns() {
  constexpr std::size_t kFewest = 20;
  std::optional<std::size_t> columns = columns_asked_for();
  if (!columns) columns = terminal_columns(stdout);
  if (!columns) columns = terminal_columns(stderr);
  return std::max(columns.value_or(kUsualColumns), kFewest);
}

}  // namespace miniqat::cli
