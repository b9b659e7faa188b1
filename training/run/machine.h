#pragma once

#include <nlohmann/json_fwd.hpp>

namespace miniqat::training {

/// What computes: {"program": "miniqat 0.1", "cpu", "cores", "instruction_set", "onednn", "compiler"}.
nlohmann::ordered_json machine_to_json();

}  // namespace miniqat::training
