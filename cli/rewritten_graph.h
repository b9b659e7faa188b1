#pragma once

#include <functional>
#include <string>

#include "cli/rewrite_settings.h"
#include "cli/run_directory.h"
#include "cli/settings.h"
#include "cli/train_settings.h"
#include "cli/usage_error.h"
#include "quantize/quantization.h"

namespace miniqat::cli {

// A graph that was rewritten before keeps its quantizers. Whoever asks for other ones has to hear it.

/// Throws UsageError for the first conflict whose setting was asked for: it names the flag, its value and what the
/// graph of `source` has.
void require_as_asked(const quantize::RewriteReport& report, const RewriteSettings& settings,
                      const std::function<bool(const std::string&)>& was_asked, const std::string& source);

/// Whether a setting stands on the command line or, by --config, is not what it is when left out.
template <class Settings>
bool was_asked(const std::string& setting, const RewriteSettings& settings, const SettingFlags<Settings>& flags) {
  const RewriteSettings unasked;
  bool asked = flags.was_given(setting);
  RewriteSettings::visit([&](const char* name, auto access, const char*) {
    asked = asked || (name == setting && access(settings) != access(unasked));
  });
  return asked;
}

/// Throws UsageError when the model is a graph file that is quantized and the settings want it in float, or otherwise
/// than it is.
void require_trainable_as_asked(const TrainSettings& settings,
                                const std::function<bool(const std::string&)>& was_asked);

/// How a run is quantized: as its graph for training says, which shows more than that for evaluation.
quantize::Quantization quantization_of(const RunDirectory& run);

/// How the settings quantize; of a graph file that is quantized already, how that is. For the name of a run.
std::string wanted_quantization(const TrainSettings& settings);

}  // namespace miniqat::cli
