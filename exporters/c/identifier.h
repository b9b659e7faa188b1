#pragma once

#include <string>
#include <string_view>

namespace miniqat::exporters {

/// Whether a text is an identifier of C: a letter or '_', then letters, digits and '_'; no keyword.
bool is_identifier(std::string_view text);

/// A name of a graph as part of an identifier: everything but letters and digits becomes '_'.
std::string identifier(std::string_view name);

}  // namespace miniqat::exporters
