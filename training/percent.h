#pragma once

#include <cstdio>
#include <string>

namespace miniqat::training {

/// "98.85%".
inline std::string percent(double fraction) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f%%", 100 * fraction);
  return text;
}

}  // namespace miniqat::training
