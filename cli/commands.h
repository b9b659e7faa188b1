#pragma once

namespace miniqat::cli {

class CommandLine;

// One function a command: adds the subcommand with its flags to the program. The command's action runs after the whole
// line is parsed; it throws UsageError (exit status 2) or Error (1).

void add_train(CommandLine& program);
void add_eval(CommandLine& program);
void add_import(CommandLine& program);
void add_rewrite(CommandLine& program);
void add_run(CommandLine& program);
void add_inspect(CommandLine& program);
void add_models(CommandLine& program);
void add_export(CommandLine& program);
void add_verify(CommandLine& program);
void add_bench(CommandLine& program);
void add_calibrate(CommandLine& program);
void add_quantize(CommandLine& program);
void add_reestimate(CommandLine& program);
void add_sensitivity(CommandLine& program);
void add_predict(CommandLine& program);
void add_runs(CommandLine& program);
void add_report(CommandLine& program);
void add_completion(CommandLine& program);

}  // namespace miniqat::cli
