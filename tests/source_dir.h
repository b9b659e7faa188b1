#pragma once

#include <filesystem>

namespace miniqat {

/// The top folder of the repository. A function and no macro, so that clones compile the same tests, and ccache has
/// them.
std::filesystem::path source_dir();

}  // namespace miniqat
