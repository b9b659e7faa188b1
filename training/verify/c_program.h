#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "core/tensors/tensor.h"
#include "integer/model.h"
#include "training/verify/runtimes.h"

namespace miniqat::training {

/// Exported C, whose names begin with `model`: model.h and the source that includes it.
struct CFiles {
  std::string header;
  std::string source;
};

/// "cc 12", or "" if no C compiler is called `cc`.
std::string c_compiler();

/// Compiles the files with `cc -O2` and runs the program on images [n, ...] uint8. Limit and `check` are as in
/// Runtimes. Throws Error with the first line of what compiler or program said when one fails or takes too long; what
/// `check` throws passes on. No file is left in any case.
RuntimeResult run_c(const CFiles& files, const integer::Model& model, const Tensor& images, std::chrono::seconds limit,
                    const std::function<void()>& check = {});

}  // namespace miniqat::training
