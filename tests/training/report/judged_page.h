#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/files/files.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "tests/browser.h"
#include "tests/source_dir.h"

namespace miniqat::testing {

/// A script of this folder.
inline std::string report_script(const std::string& name) {
  return read_file(source_dir() / "tests/training/report" / name);
}

/// A report with the script that looks at it (page.js).
inline std::string judged_page(std::string html) {
  html.insert(html.rfind("</body>"),
              concat("<pre id=\"found\"></pre><script>", report_script("page.js"), "</script>\n"));
  return html;
}

/// Expects a visit to a judged page to find nothing wrong. Returns what the script counted.
inline nlohmann::json expect_no_complaint(const Visit& seen) {
  EXPECT_EQ(seen.status, 0) << seen.console;
  EXPECT_EQ(seen.console, "");
  nlohmann::json found = found_in(seen);
  EXPECT_EQ(found.value("complaints", nlohmann::json()), nlohmann::json::array());
  return found;
}

}  // namespace miniqat::testing
