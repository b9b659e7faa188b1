#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "core/tensors/tensor.h"
#include "integer/model.h"

namespace miniqat::training {

/// The result of another runtime for an exported file.
struct RuntimeResult {
  /// "onnxruntime 1.30.0"
  std::string runtime;
  /// [n, classes] uint8: the output's integers; what comes as float32 is put on the output's grid.
  Tensor output;
};

/// The folder of the runtimes, with onnxruntime.mjs, litert.mjs and their node_modules.
class Runtimes {
 public:
  /// The first that exists of: share/miniqat/runtimes below the folder around the program's own (an installed
  /// program's), runtimes/ of the source tree, share/miniqat/runtimes below the prefix that cmake was configured
  /// with. The last if none exists.
  static std::filesystem::path default_folder();

  /// A runtime that has not ended after `limit` (none when 0) is killed; so is one while `check` throws
  /// (run_program()).
  Runtimes(std::filesystem::path folder, std::chrono::seconds limit, std::function<void()> check = {})
      : folder_(std::move(folder)), limit_(limit), check_(std::move(check)) {}

  /// Why they cannot be used ("no node", "... has no node_modules: run ..."); empty when they can.
  std::string missing() const;
  /// Runs the file (the exporter's bytes) of `format`, "onnx" or "tflite", on images [n, ...] uint8. Throws Error with
  /// what the runtime said when it fails, and when it takes too long; what `check` throws passes on. No file is left
  /// in any case.
  RuntimeResult run(const std::string& format, const std::string& file, const integer::Model& model,
                    const Tensor& images, int threads) const;

 private:
  std::filesystem::path folder_;
  std::chrono::seconds limit_;
  std::function<void()> check_;
};

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
