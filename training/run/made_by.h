#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "training/run/run_directory.h"

namespace miniqat::training {

/// The words behind `miniqat` on the command line of this process. To be called before threads start; a process that
/// never calls it, Python say, has no command line.
void set_command_line(std::vector<std::string> words);

/// Appends the command line of this process, as it was typed, to the run's commands.json:
/// {"command": "miniqat train --out runs/a", "directory": "/home/me"}, quoted for a shell. The working directory is
/// there if the line leads to something by a relative path. {"command": null} without a command line. A damaged file
/// gives way to a new one.
void record_command(const RunDirectory& run);

/// The list in commands.json as a line for a shell: "miniqat train ... && miniqat train --resume ...". A command that
/// was given several times in a row is there once. "(from Python or another program)" stands for one without a command
/// line. "" for an empty list.
std::string text_of_commands(const nlohmann::ordered_json& commands);

/// The commit of the sources that the program was built from, which libraries do not know: else each commit would
/// compile one of them. To be called before threads start; "" until then.
void set_program_commit(std::string commit);

/// What computes: {"program": "miniqat 0.1", "commit": "907277a-dirty", "cpu", "cores", "instruction_set", "onednn",
/// "compiler"}. The commit is "" outside of git.
nlohmann::ordered_json machine_to_json();

}  // namespace miniqat::training
