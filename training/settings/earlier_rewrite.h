#pragma once

#include <string>
#include <vector>

#include "quantize/rewrite/rewrite.h"
#include "training/settings/rewrite_settings.h"

namespace miniqat::training {

/// A graph that was rewritten before keeps its quantizers; whoever asks for other ones has to hear it. Throws
/// UsageError for the report's first conflict whose setting was asked for: it names the flag, its value and what the
/// graph of `source` has. A setting was asked for if it is among those `given`, by name, or has another value than
/// in `usual` settings, where nobody asked.
void require_as_asked(const quantize::RewriteReport& report, const RewriteSettings& settings,
                      const RewriteSettings& usual, const std::vector<std::string>& given, const std::string& source);

}  // namespace miniqat::training
