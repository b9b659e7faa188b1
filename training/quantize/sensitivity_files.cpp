#include "training/quantize/sensitivity_files.h"

#include <system_error>

#include "core/error.h"
#include "core/files.h"
#include "core/text/json.h"
#include "training/quantize/sensitivity_json.h"
#include "training/run/run_directory.h"

namespace miniqat::training {

SensitivityFiles::SensitivityFiles(const std::filesystem::path& path, bool overwrite)
    : lock_(path, RunLock::Directory::kMake), table_(path / "sensitivity.json"), bits_(path / "bits.json") {
  std::error_code failure;
  if (std::filesystem::exists(path / "config.json", failure))
    fail(path.string(), " holds a run (config.json): give another --out");
  for (const std::filesystem::path& file : {table_, bits_}) {
    require_no_link(file);
    if (!overwrite && std::filesystem::exists(file, failure))
      fail(file.string(), " is there already: give another --out, or --overwrite to replace it");
  }
}

void SensitivityFiles::write(const Sensitivity& sensitivity, const SensitivityRequest& request) const {
  // Widths of an earlier measurement must not stay beside this one.
  std::error_code failure;
  std::filesystem::remove(bits_, failure);
  write_json(table_, sensitivity_to_json(sensitivity, request));
  if (sensitivity.choice) write_json(bits_, quantize::layer_bits_to_json(sensitivity.choice->layers));
}

}  // namespace miniqat::training
