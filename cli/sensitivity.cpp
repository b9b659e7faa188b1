#include "training/quantize/sensitivity.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/display/tables.h"
#include "cli/display/terminal.h"
#include "cli/flags/command_line.h"
#include "cli/flags/setting_flags.h"
#include "cli/model_start.h"
#include "cli/notes.h"
#include "cli/process.h"
#include "core/text/json.h"
#include "core/text/quote.h"
#include "training/quantize/sensitivity_files.h"
#include "training/settings/train_settings.h"

namespace miniqat::cli {

using namespace training;

namespace {

/// How quantizers are, but for their widths, and without what serves training or the tensors between layers.
FlagChanges measured_rewrite() {
  return {.only = {"per_channel", "symmetric", "symmetric_weights", "ranges", "asymmetric_weights", "scope",
                   "full_range_weights", "scales"}};
}

struct SensitivityArguments {
  SensitivityRequest request;
  std::string out;
  bool overwrite = false;
  bool verbose = false;
};

class SensitivityDisplay : public RunObserver {
 public:
  void say(const std::string& text) override {
    line_.clear();
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
  }
  void warn(const std::string& text) override { print_note(text); }
  /// Five lines where there is no terminal.
  void on_evaluation(std::int64_t done, std::int64_t total, const std::string& next) override {
    const std::string count = concat("evaluation ", done, "/", total);
    line_.show(concat(count, next.empty() ? "" : ": ", printable(next)));
    const bool quarter = done % std::max<std::int64_t>(total / 4, 1) == 0;
    if (done == total || (!line_.on_terminal() && quarter)) say(count);
  }
  bool wants_to_stop() override { return InterruptGuard::requested(); }

 private:
  ProgressLine line_{stdout};
};

/// Flags as `calibrate` and `quantize` take them.
struct FlagTexts {
  std::string source;
  std::string rewrite;
  /// The ranges that were measured, where they are the default here and not in `calibrate`.
  std::string ranges;
};

void print_choice(const Sensitivity& result, const SensitivityFiles& files, const FlagTexts& flags) {
  std::printf("%s", choice_text(result).c_str());
  const std::string same = concat(flags.source, " --bits-config ", shell_path(files.bits()), flags.rewrite);
  std::printf("to use them: miniqat quantize%s --out RUN\n", same.c_str());
  std::printf("to use them without training: miniqat calibrate%s%s --out PTQ\n", same.c_str(), flags.ranges.c_str());
}

void measure_network(const SensitivityArguments& arguments, const FlagTexts& flags) {
  run_until_stopped([&] {
    const SensitivityFiles files(arguments.out, arguments.overwrite);
    SensitivityDisplay display;
    const Sensitivity result = measure_sensitivity(arguments.request, display);
    files.write(result, arguments.request);
    constexpr std::size_t kRows = 20;
    std::printf("\n%s\n%s", sensitivity_table(result, arguments.verbose ? 0 : kRows).c_str(),
                together_table(result).c_str());
    if (result.choice) print_choice(result, files, flags);
    std::printf("done in %.1f s; %s has all figures\n", result.seconds, printable(files.table().string()).c_str());
  });
}

/// The flags that were given, as `calibrate` takes them.
template <class Settings>
std::string text_of(const SettingFlags<Settings>& flags, const Settings& settings) {
  std::string text;
  const Json json = settings_to_json(settings);
  for (const auto& item : json.items()) {
    if (!flags.was_given(item.key())) continue;
    const Json& value = item.value();
    text += concat(" ", flag_of(item.key()));
    if (value.is_string()) text += " " + shell_quoted(value.get<std::string>());
    if (value.is_number()) text += " " + value.dump();
    if (value == false) text += "=false";
  }
  return text;
}

std::string source_text(const SensitivityRequest& request, const TrainFlags& flags) {
  std::string text;
  if (request.model) {
    TrainSettings given;
    flags.apply(given);
    text = concat(text_of(flags, given), " --dataset ", shell_path(request.dataset));
  } else {
    text = " --run " + shell_path(request.run);
  }
  return request.data_dir.empty() ? text : concat(text, " --data-dir ", shell_path(request.data_dir));
}

}  // namespace

void add_sensitivity(CommandLine& program) {
  Command command = program.command(
      "sensitivity",
      "Find the layers of a float run or an ONNX model that quantization hurts most, and choose the bits of each layer");
  const auto arguments = std::make_shared<SensitivityArguments>();
  SensitivityRequest& request = arguments->request;
  command.run(request.run, "the directory of a float run", Command::Run::kOptional);
  command.option("--out", arguments->out, "the directory for sensitivity.json and bits.json").required();
  command.option("--bits", request.bits, "the widths to try, 2..16 each, separated by commas")
      .separated_by(',')
      .shown_default("2,3,4,8");
  command.option("--logits-bits", request.logits_bits,
                 "bits of the network's output beside other quantizers, and in bits.json; budgets do not count it");
  command.option("--dataset", request.dataset, "a data set; default: the run's own");
  command.option("--data-dir", request.data_dir, kDataDirHelp);
  command.option("--threads", request.threads, kThreadsHelp).in_range(0, 1024);
  command.flag("--overwrite", arguments->overwrite, "replace the sensitivity.json and bits.json that are in --out");
  command.flag("--verbose", arguments->verbose, "print all rows of the table, not only the first 20");
  command
      .option(
          "--average-bits", request.budget.average_bits,
          "choose widths that average at most this many bits, for weights and for activations, and write them to bits.json, for --bits-config. From the widest width on, the next step down is always the one with the least loss increase per bit saved; the rest of the budget is given back. Increases of single quantizers are taken to add up. If one width for all layers keeps to the budget and has less loss, it is the choice")
      .heading("Choice");
  command.option("--bytes", request.budget.bytes, "the same for weights that take at most this many bytes, packed")
      .heading("Choice");
  command
      .option("--activation-bits", request.budget.activation_bits,
              "with --bytes: the width of all activations, one of --bits; default: the widest of them")
      .heading("Choice");
  const auto flags = std::make_shared<SettingFlags<SensitivitySettings>>(command, "Pictures");
  const auto model_flags = make_model_flags(command);
  const auto rewrite_flags = std::make_shared<SettingFlags<RewriteSettings>>(
      command, "Quantization", measured_rewrite(), rewrite_of_trainings());
  command.action([arguments, flags, model_flags, rewrite_flags] {
    SensitivityRequest& request = arguments->request;
    request.model = model_instead_of_run(*model_flags, request.run, request.dataset, request.data_dir);
    request.skip_broken = asks_to_skip_broken(*model_flags);
    flags->apply(request.settings);
    // Ranges are those of `quantize`.
    RewriteSettings rewrite = rewrite_of_trainings();
    rewrite_flags->apply(rewrite);
    request.check();
    rewrite.weight_bits = std::ranges::min(request.bits);
    refuse_ignored_symmetry(*rewrite_flags, rewrite, "--bits");
    request.rewrite = rewrite;
    measure_network(*arguments, {.source = source_text(request, *model_flags),
                                 .rewrite = text_of(*rewrite_flags, rewrite),
                                 .ranges = rewrite_flags->was_given("ranges") ? "" : " --ranges auto"});
  });
}

}  // namespace miniqat::cli
