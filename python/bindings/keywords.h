#pragma once

#include <string>
#include <string_view>

namespace miniqat::python {

/// A text of the libraries, which names settings by their flags, as a Python user needs it: "--batch-size" is
/// `batch_size`, "--overwrite" `overwrite=True`, and a command that this module has a function for is its call:
/// "miniqat quantize --resume --out a" is `miniqat.quantize(resume=True, out="a")`. Any other command in backticks, and
/// what stands in double quotes, stays as it is.
std::string with_keywords(std::string_view text);

}  // namespace miniqat::python
