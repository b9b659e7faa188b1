#pragma once

namespace miniqat::training {

/// What `--data-dir` is, wherever there is one.
inline constexpr const char* kDataDirHelp =
    "the folder of the data set's files, or the one around it, as in data/mnist (or MINIQAT_DATA_DIR)";

}  // namespace miniqat::training
