#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "training/quantize/sensitivity.h"
#include "training/run/run_lock.h"

namespace miniqat::training {

/// sensitivity.json; docs/sensitivity.md describes its keys.
nlohmann::ordered_json sensitivity_to_json(const Sensitivity& sensitivity, const SensitivityRequest& request);

/// The directory of a measurement. It is locked, and is known to take the files before minutes of evaluations.
class SensitivityFiles {
 public:
  /// Makes the directory. Throws Error where it holds a run or, unless they are to be overwritten, such files.
  SensitivityFiles(const std::filesystem::path& path, bool overwrite);

  /// sensitivity.json, and bits.json where widths were chosen.
  void write(const Sensitivity& sensitivity, const SensitivityRequest& request) const;

  const std::filesystem::path& table() const { return table_; }
  const std::filesystem::path& bits() const { return bits_; }

 private:
  const RunLock lock_;
  const std::filesystem::path table_;
  const std::filesystem::path bits_;
};

}  // namespace miniqat::training
