#pragma once

#include <string_view>

namespace miniqat::benchmarks {

/// `git describe --always --dirty` of the sources when they were built: "907277a-dirty". Empty outside of git.
std::string_view commit_of_build();

}  // namespace miniqat::benchmarks
