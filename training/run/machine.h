#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace miniqat::training {

/// The commit of the sources that the program was built from, which libraries do not know: else each commit would
/// compile one of them. To be called before threads start; "" until then.
void set_program_commit(std::string commit);

/// What computes: {"program": "miniqat 0.1", "commit": "907277a-dirty", "cpu", "cores", "instruction_set", "onednn",
/// "compiler"}. The commit is "" outside of git.
nlohmann::ordered_json machine_to_json();

}  // namespace miniqat::training
