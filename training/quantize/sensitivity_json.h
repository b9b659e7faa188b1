#pragma once

#include <nlohmann/json_fwd.hpp>

#include "training/quantize/sensitivity.h"

namespace miniqat::training {

/// sensitivity.json; docs/sensitivity.md describes its keys.
nlohmann::ordered_json sensitivity_to_json(const Sensitivity& sensitivity, const SensitivityRequest& request);

}  // namespace miniqat::training
