#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "training/report/layer_figures.h"

namespace miniqat::training {

/// The figures, in their order.
nlohmann::ordered_json layers_to_json(const std::vector<LayerFigures>& layers);

}  // namespace miniqat::training
