#pragma once

#include <memory>

#include "integer/model.h"
#include "integer/step.h"

namespace miniqat::integer {

/// The operation made ready to run; `pool` as in Convolution. The model must have passed Model::check() and stay as it
/// is.
std::unique_ptr<Step> make_step(const Model& model, const Operation& operation, const Operation* pool = nullptr);

}  // namespace miniqat::integer
