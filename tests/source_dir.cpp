#include "tests/source_dir.h"

namespace miniqat {

std::filesystem::path source_dir() { return MINIQAT_SOURCE_DIR; }

}  // namespace miniqat
