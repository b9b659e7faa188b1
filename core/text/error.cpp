#include "core/text/error.h"

namespace miniqat {

void throw_error(std::initializer_list<TextPart> parts) { throw Error(join_parts(parts)); }

}  // namespace miniqat
