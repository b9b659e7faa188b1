#pragma once

#include <string_view>

namespace miniqat::exporters {

/// A file of exporters/html/page/, by its name; cmake/TextFiles.cmake puts them into the program. Throws Error if there
/// is none of that name.
std::string_view page_file(std::string_view name);

}  // namespace miniqat::exporters
