#pragma once

#include <string>
#include <vector>

#include "quantize/rewrite/decide.h"

namespace miniqat::quantize {

/// RewriteReport::remarks about options without effect. `settings` are of the same options, whose patterns may be
/// without effect, too.
std::vector<std::string> remarks_on(const RewriteOptions& options, const LayerSettingsIndex& settings,
                                    const std::vector<BatchNormReport>& batch_norms, const Decisions& decisions);

/// RewriteReport::warnings.
std::vector<std::string> warnings_about(const RewriteOptions& options, const std::vector<BatchNormReport>& batch_norms,
                                        bool is_training);

}  // namespace miniqat::quantize
