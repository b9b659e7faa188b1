#include "core/text/error.h"

#include <locale>
#include <sstream>

namespace miniqat {

void TextPart::write_text(std::ostream& stream, const void* text) { stream << static_cast<const char*>(text); }

void TextPart::write_string(std::ostream& stream, const void* text) {
  stream << *static_cast<const std::string*>(text);
}

void TextPart::write_view(std::ostream& stream, const void* text) {
  stream << *static_cast<const std::string_view*>(text);
}

std::string join_parts(std::initializer_list<TextPart> parts) {
  std::ostringstream stream;
  stream.imbue(std::locale::classic());
  for (const TextPart& part : parts) part.write(stream);
  return stream.str();
}

std::string plural(std::string_view thing) {
  if (thing.ends_with("is")) return concat(thing.substr(0, thing.size() - 2), "es");
  return concat(thing, thing.ends_with("tch") || thing.ends_with("ss") ? "es" : "s");
}

void throw_error(std::initializer_list<TextPart> parts) { throw Error(join_parts(parts)); }

}  // namespace miniqat
