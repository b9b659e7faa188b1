#pragma once

#include <functional>
#include <string>

#include "cli/flags/setting_flags.h"
#include "quantize/rewrite/rewrite.h"
#include "training/run/run_directory.h"
#include "training/settings/rewrite_settings.h"
#include "training/settings/train_settings.h"
#include "training/settings/usage_error.h"

namespace miniqat::cli {

// A graph that was rewritten before keeps its quantizers. Whoever asks for other ones has to hear it.

/// Throws UsageError for the first conflict whose setting was asked for: it names the flag, its value and what the
/// graph of `source` has.
void require_as_asked(const quantize::RewriteReport& report, const training::RewriteSettings& settings,
                      const std::function<bool(const std::string&)>& was_asked, const std::string& source);

/// Whether a setting stands on the command line or, by --config, is not what it is when left out.
template <class Settings>
bool was_asked(const std::string& setting, const training::RewriteSettings& settings,
               const SettingFlags<Settings>& flags) {
  const training::RewriteSettings unasked;
  bool asked = flags.was_given(setting);
  training::RewriteSettings::visit([&](const char* name, auto access, const char*) {
    asked = asked || (name == setting && access(settings) != access(unasked));
  });
  return asked;
}

/// Throws UsageError when the model is a graph file that is quantized and the settings want it in float, or otherwise
/// than it is.
void require_trainable_as_asked(const training::TrainSettings& settings,
                                const std::function<bool(const std::string&)>& was_asked);

/// How the settings quantize; of a graph file that is quantized already, how that is. For the name of a run.
std::string wanted_quantization(const training::TrainSettings& settings);

}  // namespace miniqat::cli
