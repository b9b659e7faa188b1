#pragma once

#include <string>

#include "core/text/classic.h"

namespace miniqat::training {

/// "98.85%".
inline std::string percent(double fraction) {
  char text[32];
  classic_snprintf(text, sizeof text, "%.2f%%", 100 * fraction);
  return text;
}

}  // namespace miniqat::training
