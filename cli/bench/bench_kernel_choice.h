#pragma once

#include <string>
#include <vector>

#include "benchmarks/suite/bench_case.h"
#include "benchmarks/suite/registry/kernel_registry.h"

namespace miniqat::cli {

/// What `--kernel` and `--plugin` choose.
struct KernelChoice {
  std::vector<benchmarks::Operation> operations;
  /// Our own first.
  std::vector<benchmarks::NamedKernel> kernels;
};

/// Of names, operations choose operations, all if there are none; and names of kernels add these beside ours. Of
/// plugins all kernels are added, or those that are named. Where several files have a kernel of one name, or a plugin
/// has one of the program's, those of plugins become "name@file", and `--kernel name` means all of them. If no
/// operation is named, but a kernel, those that one of the kernels can do. Throws UsageError for an unknown name, a
/// plugin that is none, a kernel that this processor cannot run, and an operation that no kernel is left to do.
KernelChoice choose_kernels(const std::vector<std::string>& names, const std::vector<std::string>& plugins);

}  // namespace miniqat::cli
