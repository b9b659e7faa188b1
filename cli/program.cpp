#include "cli/program.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure/this_machine.h"
#include "cli/advice.h"
#include "cli/commands.h"
#include "cli/display/terminal.h"
#include "cli/flags/command_line.h"
#include "cli/notes.h"
#include "cli/process.h"
#include "core/kernels/instruction_set.h"
#include "core/memory/guarded_memory.h"
#include "core/team/team.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/threads/parallel.h"
#include "datasets/decoding.h"
#include "distributed/launch.h"
#include "layers/layers.h"
#include "quantize/fake_quant.h"
#include "quantize/quantize.h"
#include "training/run/made_by.h"
#include "training/settings/usage_error.h"

namespace miniqat::cli {

using namespace training;

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

constexpr const char* kFooter =
    "`miniqat help COMMAND` shows the flags of a command.\n"
    "\n"
    "Environment:\n"
    "  MINIQAT_DATA_DIR            where data sets are, without --data-dir\n"
    "  MINIQAT_CACHE_DIR           where decoded pictures and sounds are kept; default: ~/.cache/miniqat\n"
    "  MINIQAT_MAX_ISA             baseline, avx2, avx2-vnni, avx512, avx512-vnni or amx: the most to use\n"
    "  MINIQAT_GUARD               after or before: a test mode that stops a node which writes past its memory\n"
    "  MINIQAT_TEAM                own, openmp or alone: whose threads compute; openmp's are slow beside others\n"
    "  OMP_NUM_THREADS             the threads without --threads, at most one a core";

/// The text with long words of the command line shortened, alone or as part of a path.
std::string with_short_words(std::string text, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    // A value may follow its flag: --model=NAME.
    const std::string value = word.substr(word.starts_with("--") ? word.find('=') + 1 : 0), brief = shortened(value);
    if (brief == value) continue;
    for (std::size_t place = text.find(value); place != std::string::npos; place = text.find(value, place))
      text.replace(place, value.size(), brief);
  }
  return text;
}

/// "miniqat train", or "miniqat" where the line does not begin with a command.
std::string name_of_command(const CLI::App& program, const std::string& word) {
  const auto commands = program.get_subcommands([&](const CLI::App* command) { return command->get_name() == word; });
  return commands.empty() ? "miniqat" : "miniqat " + word;
}

std::string see_help_of(const std::string& who) { return concat(" (see ", who, " --help)"); }

std::string explanation(const CLI::App& program, const CLI::ParseError& error, const std::string& who) {
  const CLI::App& command = chosen_command(program);
  std::string text = in_plain_words(error.what());
  const std::vector<std::string> unexpected = command.remaining();
  if (!unexpected.empty())
    text = concat("unknown ", &command == &program ? "command" : "argument", " ", quote(unexpected.front()),
                  suggestion_for(unexpected.front(), known_words(program)));
  return text + see_help_of(who);
}

/// Whether a list has an empty entry: the parser leaves these out.
bool has_empty_entry(std::string_view list, char mark) {
  return list.starts_with(mark) || list.ends_with(mark) || list.find(std::string{mark, mark}) != list.npos;
}

/// What separates the values of a flag of the command; 0 if it takes one.
char separator_of(const CLI::App& program, const std::string& command, const std::string& flag) {
  const auto commands = program.get_subcommands([&](const CLI::App* one) { return one->get_name() == command; });
  const CLI::Option* const option = commands.empty() ? nullptr : commands.front()->get_option_no_throw(flag);
  return option == nullptr ? '\0' : option->get_delimiter();
}

/// An empty word, as an unset variable of a shell gives it, would otherwise mean the default; and behind a `=`, the
/// next flag would be taken for the value. No flag has a use for one, nor for an empty entry of a list.
void refuse_empty_words(const CLI::App& program, const std::vector<std::string>& words) {
  const auto require = [&](const std::string& what, const std::string& value) {
    if (value.find_first_not_of(',') == std::string::npos) throw UsageError(what + " must not be empty");
    const char mark = separator_of(program, words.front(), what);
    if (mark != '\0' && has_empty_entry(value, mark))
      throw UsageError(concat(what, ": an entry of ", quote(value), " is empty"));
  };
  std::string before;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (!word.starts_with("--"))
      require(before.starts_with("--") ? before : "an argument", word);
    else if (equals != std::string::npos)
      require(word.substr(0, equals), word.substr(equals + 1));
    before = word.substr(0, word.starts_with("--") ? equals : 0);
  }
}

/// Each rank would do all of it, and they would write the same files.
void refuse_ranks(const CLI::App& program) {
  const std::string& command = chosen_command(program).get_name();
  const int ranks = command == "train" ? 1 : as_usage(distributed::launched_ranks);
  if (ranks > 1)
    throw UsageError(concat("a launcher started ", ranks, " ranks, but only miniqat train shares its work between ",
                            "them: start miniqat ", command, " without mpirun or srun"));
}

/// Before any command begins: none may fail half way through because of these, or ignore them because it runs no fast
/// loop.
void check_environment() {
  as_usage(instruction_set);
  as_usage(guard);
  as_usage(team_choice);
}

struct NamedCommand {
  std::string_view name;
  void (*add)(CommandLine& program);
};
constexpr NamedCommand kCommands[] = {{"train", add_train},
                                      {"calibrate", add_calibrate},
                                      {"quantize", add_quantize},
                                      {"reestimate", add_reestimate},
                                      {"sensitivity", add_sensitivity},
                                      {"eval", add_eval},
                                      {"predict", add_predict},
                                      {"import", add_import},
                                      {"rewrite", add_rewrite},
                                      {"run", add_run},
                                      {"inspect", add_inspect},
                                      {"runs", add_runs},
                                      {"report", add_report},
                                      {"models", add_models},
                                      {"export", add_export},
                                      {"verify", add_verify},
                                      {"bench", add_bench},
                                      {"completion", add_completion}};

/// The command that `word` names alone, as the flags of all take longer than most lines; all of them where it names
/// none, and for `completion`, which tells of all.
void add_commands(CLI::App& program, std::string_view word) {
  program.set_version_flag("-V,--version", "miniqat " MINIQAT_VERSION);
  program.require_subcommand(1);
  program.option_defaults()->always_capture_default();
  CommandLine line(program);
  const bool is_one =
      word != "completion" && std::ranges::find(kCommands, word, &NamedCommand::name) != std::end(kCommands);
  for (const NamedCommand& command : kCommands)
    if (!is_one || command.name == word) command.add(line);
  program.footer(kFooter);
  program.parse_complete_callback([&program] {
    check_environment();
    refuse_ranks(program);
  });
}

/// As if nothing had been in the way, so that a shell sees why the program ended.
void end_by(int signal) {
  std::fflush(stdout);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/// `miniqat help train` is `miniqat train --help`, whatever else follows: a flag that takes a value would take the
/// `--help` for it. Words that are no commands stay alone, to be refused. The program's own help has all of its flags.
std::vector<std::string> with_help_as_flag(const CLI::App& program, std::vector<std::string> words) {
  if (words.front() != "help" && words.front() != "--help-all") return words;
  if (words.front() == "help") words.erase(words.begin());
  if (words.empty() || words.front() == "--help-all") return {"--help"};
  if (name_of_command(program, words.front()) == "miniqat") return words;
  const bool is_all = std::ranges::find(words, "--help-all") != words.end();
  return {words.front(), is_all ? "--help-all" : "--help"};
}

/// A wrong command line: a command alone is also told how it begins with the newest run.
int usage_error(const std::string& who, const std::string& text, const std::vector<std::string>& words) {
  print_error(who, with_short_words(text, words));
  const std::string advice = words.size() == 1 ? advice_for_newest_run(words.front()) : "";
  if (!advice.empty()) std::fprintf(stderr, "%s\n", advice.c_str());
  return 2;
}

/// Parses the line, which is not empty, and runs its command. Returns the exit status.
int run_command(CLI::App& program, const std::vector<std::string>& line) {
  const std::vector<std::string> words = with_help_as_flag(program, line);
  const std::string who = name_of_command(program, words.front());
  try {
    refuse_empty_words(program, words);
    program.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    return 0;
  } catch (const CLI::Success& help) {
    return program.exit(help);
  } catch (const CLI::ParseError& error) {
    return usage_error(who, explanation(program, error, who), words);
  } catch (const MissingArgument& error) {
    return usage_error(who, error.what() + see_help_of(who), words);
  } catch (const UsageError& error) {
    return usage_error(who, error.what(), words);
  } catch (const Interrupted& interrupted) {
    end_by(interrupted.signal());
  } catch (const std::bad_alloc&) {
    print_error(who, "out of memory");
  } catch (const std::exception& error) {
    print_error(who, with_short_words(error.what(), words));
  }
  return 1;
}

/// Between loading and what follows, and for errors, the line is taken away.
void show_decoding(ProgressLine& line, std::int64_t done, std::int64_t all) {
  if (InterruptGuard::requested()) {
    line.clear();
    std::fprintf(stderr, "stopped at %s of %s, none of which is kept\n", std::to_string(done).c_str(),
                 counted(all, "picture").c_str());
    InterruptGuard::check();
  }
  if (done < all)
    line.show(concat("decoding pictures: ", done, " of ", all));
  else
    line.clear();
}

/// Tells on a line of the terminal of pictures that are decoded.
class DecodingLine {
 public:
  DecodingLine() {
    datasets::tell_of_decoding([this](std::int64_t done, std::int64_t all) { show_decoding(line_, done, all); });
  }
  ~DecodingLine() { datasets::tell_of_decoding({}); }
  DecodingLine(const DecodingLine&) = delete;
  DecodingLine& operator=(const DecodingLine&) = delete;

 private:
  ProgressLine line_{stderr};
};

int run_program(int argc, char** argv) {
  // One around everything that the program does in this thread, so that no run has to set it up again.
  const ComputeScope computing;
  // A file that grows beyond a limit is a write error like any other, with a message and without half a file.
  std::signal(SIGXFSZ, SIG_IGN);
  layers::register_ops();
  quantize::register_ops();
  const DecodingLine decoding;
  CLI::App program("Trains quantized networks: define a graph, rewrite it for quantization, train, evaluate.",
                   "miniqat");
  add_commands(program, argc > 1 ? argv[1] : "");
  if (argc > 1) return run_command(program, {argv + 1, argv + argc});
  std::fprintf(stderr, "%s", program.help().c_str());
  return 2;
}

}  // namespace

int main_program(int argc, char** argv) {
  keep_standard_streams();
  set_program_commit(std::string(bench::commit_of_build()));
  if (argc > 1) set_command_line({argv + 1, argv + argc});
  const int status = run_program(argc, argv);
  if (status != 0) distributed::end_ranks(status);
  const std::string failure = failure_of_stdout();
  if (failure.empty() || status != 0) return status;
  print_error("miniqat", failure);
  return 1;
}

}  // namespace miniqat::cli
