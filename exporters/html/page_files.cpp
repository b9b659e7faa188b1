#include "exporters/html/page_files.h"

#include "core/error.h"
#include "exporters/html/page_texts.h"

namespace miniqat::exporters {

std::string_view page_file(std::string_view name) {
  for (const auto& [file, text] : kPageTexts)
    if (file == name) return text;
  fail("the page has no file ", name);
}

}  // namespace miniqat::exporters
