#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/standard_streams.h"
#include "cli/usage_error.h"
#include "core/instruction_set.h"
#include "core/parallel.h"
#include "core/quote.h"
#include "core/suggest.h"
#include "layers/layers.h"
#include "quantize/fake_quant.h"
#include "quantize/quantize.h"

namespace miniqat::cli {
namespace {

const CLI::App& chosen_command(const CLI::App& program) {
  const auto chosen = program.get_subcommands();
  return chosen.empty() ? program : *chosen.front();
}

/// The words that could have been meant: commands before one is chosen, then that command's flags.
std::vector<std::string> known_words(const CLI::App& program) {
  std::vector<std::string> words;
  const CLI::App& command = chosen_command(program);
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  for (const CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; }))
    words.push_back(sub->get_name());
  return words;
}

constexpr const char* kEnvironment =
    "Environment:\n"
    "  MINIQAT_DATA_DIR            where data sets are, without --data-dir\n"
    "  MINIQAT_MAX_ISA             baseline, avx2 or avx512: the most that is used of what the CPU has\n"
    "  OMP_NUM_THREADS             the threads without --threads, at most one a core";

/// The text with long words of the command line shortened, which stand in it by themselves or as part of a path.
std::string with_short_words(std::string text, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    // A value may stand behind its flag: --model=NAME.
    const std::string value = word.substr(word.starts_with("--") ? word.find('=') + 1 : 0), brief = shortened(value);
    if (brief == value) continue;
    for (std::size_t place = text.find(value); place != std::string::npos; place = text.find(value, place))
      text.replace(place, value.size(), brief);
  }
  return text;
}

/// Errors show what files and the command line hold; none of that may reach the terminal as it is.
void print_error(const std::string& who, const std::string& text, const std::vector<std::string>& words = {}) {
  std::fprintf(stderr, "%s: %s\n", who.c_str(), printable(with_short_words(text, words)).c_str());
}

int explain(const CLI::App& program, const CLI::ParseError& error, const std::vector<std::string>& words) {
  const CLI::App& command = chosen_command(program);
  const bool chosen = &command != &program;
  const std::string prefix = chosen ? "miniqat " + command.get_name() : "miniqat";
  std::string text = error.what();
  const std::vector<std::string> unexpected = command.remaining();
  if (!unexpected.empty())
    text = concat("unknown ", chosen ? "argument" : "command", " ", quote(unexpected.front()),
                  did_you_mean(unexpected.front(), known_words(program)));
  print_error(prefix, concat(text, " (see ", prefix, " --help)"), words);
  return 2;
}

int run_command(int argc, char** argv) {
  // One around everything that the program does in this thread, so that no run has to set it up again.
  const ComputeScope computing;
  // A file that grows beyond a limit is a write error like any other, with a message and without half a file.
  std::signal(SIGXFSZ, SIG_IGN);
  layers::register_ops();
  quantize::register_ops();
  CLI::App program("Trains quantized networks: define a graph, rewrite it for quantization, train, evaluate.",
                   "miniqat");
  program.set_version_flag("--version", "miniqat 0.1");
  program.require_subcommand(1);
  program.option_defaults()->always_capture_default();
  add_train(program);
  add_calibrate(program);
  add_eval(program);
  add_rewrite(program);
  add_run(program);
  add_inspect(program);
  add_models(program);
  add_export(program);
  add_verify(program);
  add_bench(program);
  program.footer(kEnvironment);
  // Before any command begins: none may fail half way through for that, or pass over it since it runs no fast loop.
  program.parse_complete_callback([] { as_usage(instruction_set); });
  if (argc == 1) {
    std::fprintf(stderr, "%s", program.help().c_str());
    return 2;
  }
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    program.parse(argc, argv);
    return 0;
  } catch (const CLI::Success& help) {
    return program.exit(help);
  } catch (const CLI::ParseError& error) {
    return explain(program, error, words);
  } catch (const UsageError& error) {
    print_error("miniqat " + chosen_command(program).get_name(), error.what(), words);
    return 2;
  } catch (const Interrupted& interrupted) {
    // As if nothing had been in the way, so that a shell sees why the program ended.
    std::fflush(stdout);
    std::signal(interrupted.signal(), SIG_DFL);
    std::raise(interrupted.signal());
    return 1;
  } catch (const std::bad_alloc&) {
    print_error("miniqat " + chosen_command(program).get_name(), "out of memory");
    return 1;
  } catch (const std::exception& error) {
    print_error("miniqat " + chosen_command(program).get_name(), error.what(), words);
    return 1;
  }
}

int main_program(int argc, char** argv) {
  keep_standard_streams();
  const int status = run_command(argc, argv);
  const std::string failure = failure_of_stdout();
  if (failure.empty() || status != 0) return status;
  print_error("miniqat", failure);
  return 1;
}

}  // namespace
}  // namespace miniqat::cli

int main(int argc, char** argv) { return miniqat::cli::main_program(argc, argv); }
