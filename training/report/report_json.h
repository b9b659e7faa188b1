#pragma once

#include <nlohmann/json_fwd.hpp>

#include "training/report/report.h"

namespace miniqat::training {

/// The data of a page; docs/report.md describes the keys.
nlohmann::ordered_json report_to_json(const Report& report);

}  // namespace miniqat::training
