#pragma once

#include <nlohmann/json_fwd.hpp>

namespace miniqat {

class Op;

/// Every attribute as a JSON object.
nlohmann::ordered_json all_attributes_to_json(const Op& op);

/// The attributes that differ from a default-made op's, and a shape in any case, as a JSON object. Others, too,
/// where Op::writes_default() says so.
nlohmann::ordered_json attributes_to_json(const Op& op);

/// Sets the attributes that `attributes` mentions. Throws Error that names an attribute which is unknown to the op,
/// of the wrong type, or out of range for its type.
void attributes_from_json(Op& op, const nlohmann::ordered_json& attributes);

}  // namespace miniqat
