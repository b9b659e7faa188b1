#pragma once

#include <string>

namespace miniqat {

/// As Linux has it, or "unknown CPU": x86-64 writes "model name", other architectures write other things or nothing.
std::string cpu_name();

}  // namespace miniqat
