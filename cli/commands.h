#pragma once

#include <CLI/CLI.hpp>

namespace miniqat::cli {

// One function a command: adds the subcommand with its flags to the program. What the command does runs from its
// callback, after the whole line is parsed; it throws UsageError (exit status 2) or Error (1).

void add_train(CLI::App& program);
void add_eval(CLI::App& program);
void add_rewrite(CLI::App& program);
void add_run(CLI::App& program);
void add_inspect(CLI::App& program);
void add_models(CLI::App& program);
void add_export(CLI::App& program);
void add_verify(CLI::App& program);
void add_bench(CLI::App& program);
void add_calibrate(CLI::App& program);

}  // namespace miniqat::cli
