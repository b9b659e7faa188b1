#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "core/json.h"

namespace miniqat::testing {

bool has_chromium();

/// What the browser made of a page.
struct Visit {
  int status = -1;
  /// The document at the end, as HTML.
  std::string document;
  /// The lines of the console.
  std::string console;
};

/// Opens a page in headless Chromium, off the network, in a window of that many pixels, until its scripts have nothing
/// left to do.
Visit visit(const std::string& html, int width = 1600, int height = 1000);

/// The JSON that a script has left in the element <pre id="found">; null where there is none.
nlohmann::json found_in(const Visit& visit);

}  // namespace miniqat::testing

/// Skips a test where there is no Chromium; fails it where the environment variable CI is set, which promises one.
#define MINIQAT_NEED_CHROMIUM()                                                           \
  if (!::miniqat::testing::has_chromium()) {                                              \
    if (std::getenv("CI") != nullptr) FAIL() << "no chromium; scripts/install-deps --ci"; \
    GTEST_SKIP() << "no chromium; scripts/install-deps --ci installs it";                 \
  }
