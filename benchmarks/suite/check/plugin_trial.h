#pragma once

#include <string>
#include <vector>

#include "benchmarks/suite/registry/kernel_registry.h"

namespace miniqat::benchmarks {

// What a kernel does before it is checked, first in a process of its own (trial.h), so that a crash there is an error
// that names it.

/// load_plugin(). Throws Error also if loading crashes, or the function of the plugin.
std::vector<NamedKernel> load_tried_plugin(const std::string& path);

/// is_supported(). Throws Error if the kernel's function crashes.
bool is_supported_when_tried(const NamedKernel& kernel);

}  // namespace miniqat::benchmarks
