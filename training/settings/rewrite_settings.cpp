#include "training/settings/rewrite_settings.h"

#include "core/files.h"
#include "training/settings/usage_error.h"

namespace miniqat::training {

void load_layer_bits(RewriteSettings& settings) {
  if (settings.bits_config.empty()) return;
  const std::string text = read_large_file(settings.bits_config);
  settings.layer_bits = as_usage([&] { return quantize::layer_bits_from_json(text, settings.bits_config); });
}

}  // namespace miniqat::training
