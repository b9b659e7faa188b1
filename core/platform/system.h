#pragma once

#include <filesystem>
#include <string>

namespace miniqat {

/// The processor's name in Linux, or "unknown CPU": x86-64 writes "model name", other architectures write other things
/// or nothing.
std::string cpu_name();

/// A fresh directory for temporary files, which goes with the object. Throws Error if it cannot be made.
class WorkingDirectory {
 public:
  WorkingDirectory();
  ~WorkingDirectory();
  WorkingDirectory(const WorkingDirectory&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace miniqat
