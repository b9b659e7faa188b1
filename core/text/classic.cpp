#include "core/text/classic.h"

#include <clocale>
#include <cstdarg>
#include <cstdio>

namespace miniqat {

int classic_snprintf(char* text, std::size_t size, const char* pattern, ...) {
  // Only this thread sees it, so that setlocale() in another one does not matter.
  static const locale_t kClassic = newlocale(LC_ALL_MASK, "C", nullptr);
  const locale_t before = uselocale(kClassic);
  std::va_list arguments;
  va_start(arguments, pattern);
  const int length = std::vsnprintf(text, size, pattern, arguments);
  va_end(arguments);
  uselocale(before);
  return length;
}

}  // namespace miniqat
