#pragma once

#include <memory>
#include <string>
#include <vector>

#include "benchmarks/kernels/fake_quant_kernel.h"

namespace miniqat::benchmarks {

/// A kernel with what keeps its functions there.
struct NamedKernel {
  std::string name;
  fake_quant_kernel functions;
  /// The shared library that it came from; null for one of this program.
  std::shared_ptr<void> library;
  /// Of a plugin: its path, as it was given.
  std::string file = {};
};

/// The kernel that every other one is measured beside: our own loops, under this name.
inline constexpr const char* kOurName = "miniqat";
NamedKernel our_kernel();

/// The kernels of benchmarks/kernels/, by name. Throws Error for a name that is used twice, that an operation has, that
/// is empty or holds anything but letters, digits, _ and -.
std::vector<NamedKernel> registered_kernels();
/// Their names, good or not.
std::vector<std::string> registered_names();

/// The kernels of a shared library. Throws Error naming the file: it cannot be loaded, lacks
/// `miniqat_fake_quant_plugin`, is of another version, or holds no kernels or ones that registered_kernels() would
/// refuse.
std::vector<NamedKernel> load_plugin(const std::string& path);

/// Whether this processor can run it.
bool is_supported(const NamedKernel& kernel);

/// Throws Error for names that registered_kernels() refuses.
void require_good_names(const std::vector<NamedKernel>& kernels, const std::string& whose);

}  // namespace miniqat::benchmarks
