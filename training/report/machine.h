#pragma once

#include <nlohmann/json_fwd.hpp>

namespace miniqat::training {

/// {"program": "miniqat 0.1", "cpu", "cores", "threads", "instruction_set", "onednn", "compiler"} of this process.
nlohmann::ordered_json machine_to_json();

}  // namespace miniqat::training
