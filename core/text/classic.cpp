#include "core/text/classic.h"

#include <algorithm>
#include <clocale>
#include <cstdarg>
#include <cstdio>

namespace miniqat {
namespace {

int print_classic(char* text, std::size_t size, const char* pattern, std::va_list arguments) {
  // Only this thread sees it, so that setlocale() in another one does not matter.
  static const locale_t kClassic = newlocale(LC_ALL_MASK, "C", nullptr);
  const locale_t before = uselocale(kClassic);
  const int length = std::vsnprintf(text, size, pattern, arguments);
  uselocale(before);
  return length;
}

}  // namespace

int classic_snprintf(char* text, std::size_t size, const char* pattern, ...) {
  std::va_list arguments;
  va_start(arguments, pattern);
  const int length = print_classic(text, size, pattern, arguments);
  va_end(arguments);
  return length;
}

std::string formatted(const char* pattern, ...) {
  std::va_list arguments, again;
  va_start(arguments, pattern);
  va_copy(again, arguments);
  std::string text(static_cast<std::size_t>(print_classic(nullptr, 0, pattern, arguments)), ' ');
  print_classic(text.data(), text.size() + 1, pattern, again);
  va_end(again);
  va_end(arguments);
  return text;
}

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), ascii_lower);
  return text;
}

}  // namespace miniqat
