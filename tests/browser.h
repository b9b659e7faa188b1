#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "core/text/json.h"

namespace miniqat::testing {

/// Whether the browser of these tests is installed: Chromium, or Firefox where MINIQAT_TEST_BROWSER=firefox asks for
/// it.
bool has_browser();

/// What the browser made of a page.
struct Visit {
  int status = -1;
  /// The document at the end, as HTML.
  std::string document;
  /// The lines of the console.
  std::string console;
};

/// Opens a page in the headless browser, off the network, in a window of that many pixels, until its scripts have
/// nothing left to do (Firefox: until there is a text in <pre id="found">, if there is such an element).
Visit visit(const std::string& html, int width = 1600, int height = 1000);

/// Whether the console says that the page's content security policy has refused something.
bool policy_refused(const Visit& visit);

/// The JSON that a script has left in the element <pre id="found">; null where there is none.
nlohmann::json found_in(const Visit& visit);

/// Opens a page in frames of 360, 800 and 1,600 pixels (tests/layout.js). `steps` is a script for the page that uses it
/// between looks. Returns `complaints` about all that is cut off, sticks out of its place, or goes on beyond an edge
/// without a shade; `looks`; and `shades`, the number of edges that needed one.
nlohmann::json look_at_layout(std::string html, const std::string& steps);

}  // namespace miniqat::testing

/// Skips a test where there is no browser; fails it where the environment variable CI is set, which promises Chromium.
#define MINIQAT_NEED_BROWSER()                                                           \
  if (!::miniqat::testing::has_browser()) {                                              \
    if (std::getenv("CI") != nullptr) FAIL() << "no browser; scripts/install-deps --ci"; \
    GTEST_SKIP() << "no browser; scripts/install-deps --ci installs Chromium";           \
  }
