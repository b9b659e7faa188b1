#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace miniqat::training {

// The types that readers of a run's files rely on, so that a damaged file is refused when it is read, with its name and
// the place, and not by whoever looks at a value later.
//
// A shape is JSON itself. {"rows": [{"name": "a text", "seconds?": "a number"}]} is an object with a list of objects;
// keys that end in ? may be missing, others may not, and keys that it does not name may be anything. The types are "a
// text", "a number", "a number or null", "a whole number", "true or false", "an object", "a list" and "anything".

/// Throws Error for the first part that is otherwise: `q/quantize.json: rows[2].name must be a text, is 5`.
void require_shape(const nlohmann::ordered_json& json, const nlohmann::ordered_json& shape, const std::string& source);

/// The shape of a run's file, by its name: "summary.json". "anything" for files whose readers check all values.
const nlohmann::ordered_json& shape_of_file(const std::filesystem::path& file);

/// The shape of the file that `sensitivity` writes, whatever it is called.
const nlohmann::ordered_json& shape_of_sensitivity();

}  // namespace miniqat::training
