#pragma once

#include <filesystem>
#include <string>

#include "training/settings/train_settings.h"

namespace miniqat::cli {

/// What `train` tells somebody who gave it no settings, before it starts: data, network, bits and length, into which
/// folder, about how long if a complete run below runs/ with the same work in an epoch tells it, and a shorter first
/// command. Lines with their ends.
std::string plan_of_defaults(const training::TrainSettings& settings, const std::filesystem::path& out);

}  // namespace miniqat::cli
