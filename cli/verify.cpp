#include <cmath>
#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/display/terminal.h"
#include "cli/display/verify_report.h"
#include "cli/flags/command_line.h"
#include "cli/flags/setting_flags.h"
#include "cli/inputs.h"
#include "cli/notes.h"
#include "cli/process.h"
#include "core/files/files.h"
#include "core/text/quote.h"
#include "core/threads/parallel.h"
#include "datasets/class_counts.h"
#include "exporters/c/source.h"
#include "exporters/onnx/onnx.h"
#include "exporters/tflite/tflite.h"
#include "integer/model.h"
#include "training/run/integer_source.h"
#include "training/run/run_source.h"
#include "training/settings/settings.h"
#include "training/settings/train_settings.h"
#include "training/settings/usage_error.h"
#include "training/verify/runtimes.h"

namespace miniqat::cli {

using namespace training;

namespace {

struct VerifyArguments {
  std::string run;
  std::string dataset;
  std::string data_dir;
  std::string checkpoint;
  std::string runtimes;
  std::string out;
  bool skip_broken = false;
  bool no_runtimes = false;
  bool int4 = false;
  bool c = false;
  bool json = false;
  int threads = 0;
  std::int64_t limit = 0;
  std::optional<int> runtime_timeout = {};
  /// More than a step between an operation and its simulation is no rounding.
  Bounds bounds = {.accuracy_difference = {}, .agreement = {}, .steps = 1, .runtime_agreement = {}};

  std::chrono::seconds time_of_runtime() const { return std::chrono::seconds(runtime_timeout.value_or(600)); }
};

Verification compare(EvaluationSession& simulation, const integer::Model& model, const datasets::Dataset& split) {
  ProgressLine line(stderr);
  return verify(simulation.session, simulation.classifier, model, split,
                [&](std::int64_t done, std::int64_t total) { line.show(concat(done, " of ", total)); });
}

/// Exported C, if the command line asks for it.
void ask_c(const VerifyArguments& arguments, const integer::Model& model, const datasets::Dataset& split,
           VerifyReport& report) {
  if (!arguments.c) return;
  const InterruptGuard interrupts;
  if (c_compiler().empty()) fail("--c needs a C compiler, cc (Debian's package gcc)");
  try {
    const Tensor& images = report.verification.images;
    const Shape one = integer::batch_shape(1, model.tensor(model.input).shape);
    const exporters::CSource code = exporters::c_source(model, "model", "model.h", images.slice(0, one));
    const RuntimeResult result = run_c({.header = code.header, .source = code.source}, model, images,
                                       arguments.time_of_runtime(), InterruptGuard::check);
    report.runtimes.push_back(score_of(result.runtime, result.output, report.verification, split));
  } catch (const Error& error) {
    report.failed.push_back(concat("c failed: ", error.what()));
  }
  InterruptGuard::check();
}

void ask_runtimes(const VerifyArguments& arguments, const integer::Model& model, const datasets::Dataset& split,
                  VerifyReport& report) {
  if (arguments.no_runtimes) return;
  // Ctrl-C must leave neither a process nor its files.
  const InterruptGuard interrupts;
  const Runtimes runtimes(
      arguments.runtimes.empty() ? Runtimes::default_folder() : std::filesystem::path(arguments.runtimes),
      arguments.time_of_runtime(), InterruptGuard::check);
  if (const std::string reason = runtimes.missing(); !reason.empty()) {
    if (!arguments.runtimes.empty()) fail(reason);
    report.left_out.push_back("other runtimes left out: " + reason);
    return;
  }
  const auto ask = [&](const std::string& format, const auto& exported) {
    std::string file;
    try {
      file = exported();
    } catch (const Error& error) {
      report.left_out.push_back(concat("left out: ", error.what()));
      return;
    }
    try {
      const RuntimeResult result = runtimes.run(format, file, model, report.verification.images, thread_count());
      report.runtimes.push_back(score_of(result.runtime, result.output, report.verification, split));
    } catch (const Error& error) {
      report.failed.push_back(concat(format, " failed: ", error.what()));
    }
  };
  ask("tflite", [&] { return exporters::tflite(model, {.int4 = arguments.int4}); });
  ask("onnx", [&] { return exporters::onnx(model); });
  InterruptGuard::check();
}

/// in_range() lets a NaN pass.
void check(const Bounds& bounds) {
  for (const std::optional<double>& bound : {bounds.accuracy_difference, bounds.agreement, bounds.runtime_agreement})
    if (bound && std::isnan(*bound)) throw UsageError("a bound must be a number");
}

/// Exported C is a runtime, too.
void refuse_without_runtimes(const VerifyArguments& arguments) {
  if (!arguments.no_runtimes || arguments.c) return;
  if (arguments.runtime_timeout) refuse_ignored("--runtime-timeout", "--no-runtimes without --c");
  if (arguments.bounds.runtime_agreement) refuse_ignored("--min-runtime-agreement", "--no-runtimes without --c");
}

/// In the run, for `report`, with the hash of the variables that were verified. A run that cannot be written to is
/// verified all the same.
void keep(const VerifyReport& report, const RunSource& run) {
  try {
    Json json = report.json();
    json["variables"] = variables_hash(run.checkpoint);
    require_no_link(run.directory.verification());
    write_json(run.directory.verification(), json);
  } catch (const Error& error) {
    print_note(concat("note: `miniqat report` will not know of this: ", error.what()));
  }
}

void verify_run(const VerifyArguments& arguments) {
  check(arguments.bounds);
  refuse_without_runtimes(arguments);
  if (!arguments.out.empty()) require_writable(arguments.out);
  const RunSource run =
      with_skip_broken(open_run(arguments.run, arguments.checkpoint), arguments.skip_broken, arguments.dataset);
  require_no_input("--out", arguments.out,
                   {arguments.run, arguments.checkpoint, arguments.dataset, arguments.data_dir});
  set_thread_count(arguments.threads == 0 ? default_thread_count() : arguments.threads);
  const datasets::Dataset test = load_data(run, arguments.dataset, arguments.data_dir).test;
  const datasets::Dataset split = arguments.limit > 0 ? first_recordings(test, arguments.limit) : test;
  EvaluationSession simulation(run, split);
  const integer::Model model = convert_run(run.directory, run.checkpoint, grid_of(split));
  print_note(run.note);
  print_note(datasets::note_on_first(split, test));
  print_note(datasets::note_on_whole_recordings(split, arguments.limit));
  print_file_notes(split);

  if (arguments.bounds.accuracy_difference && simulation.classifier.task != &classification())
    throw UsageError("--max-accuracy-difference is for classes");
  VerifyReport report;
  report.noun = split.noun();
  report.run = arguments.run;
  report.model = run.settings.model;
  report.quantization = quantization_of(run.directory).label();
  report.bits = bits_of(model);
  report.dataset = split.name;
  report.bounds = arguments.bounds;
  report.verification = compare(simulation, model, split);
  ask_c(arguments, model, split, report);
  ask_runtimes(arguments, model, split, report);
  std::printf("%s", arguments.json ? (report.json().dump(-1, ' ', false, Json::error_handler_t::replace) + "\n").c_str()
                                   : report.table().c_str());
  std::fflush(stdout);
  if (!arguments.out.empty()) write_json(arguments.out, report.json());
  if (arguments.checkpoint.empty() && arguments.dataset.empty()) keep(report, run);
  const std::vector<std::string> broken = report.broken();
  if (broken.empty()) return;
  for (std::size_t i = 0; i + 1 < broken.size(); ++i)
    std::fprintf(stderr, "miniqat verify: %s\n", printable(broken[i]).c_str());
  fail(broken.back());
}

}  // namespace

void add_verify(CommandLine& program) {
  Command command = program.command(
      "verify", "Compare a run's evaluation graph, the integer engine and exported files in their runtimes");
  const auto arguments = std::make_shared<VerifyArguments>();
  command.run(arguments->run, "a run directory");
  command.option("--dataset", arguments->dataset, "a data set; default: the run's own");
  command.option("--data-dir", arguments->data_dir, kDataDirHelp);
  add_skip_broken(command, arguments->skip_broken);
  command.option("--checkpoint", arguments->checkpoint,
                 "use the variables of this .safetensors file or run directory instead of the run's own");
  command.option("--examples", arguments->limit, "number of test pictures, from the first on; 0: all")
      .in_range(std::int64_t{0}, std::int64_t{1} << 31);
  command.flag(
      "--c", arguments->c,
      "compile the exported C with cc and run it, too; its loops are plain: 10,000 pictures of MobileNet take minutes");
  const Flag without = command.flag("--no-runtimes", arguments->no_runtimes, "leave LiteRT and ONNX Runtime out");
  command
      .flag("--int4", arguments->int4,
            "run the TensorFlow Lite file of export --int4, whose biases are rounded, in LiteRT")
      .excludes(without);
  command
      .option(
          "--runtimes", arguments->runtimes,
          "folder with onnxruntime.mjs, litert.mjs and their node_modules (default: share/miniqat/runtimes of the installation, or runtimes/ of the source tree)")
      .excludes(without);
  command
      .option("--runtime-timeout", arguments->runtime_timeout,
              "seconds after which a runtime, or exported C, is killed and counted as failed; default: 600; 0: never")
      .in_range(0, 1 << 30);
  command
      .option("--max-accuracy-difference", arguments->bounds.accuracy_difference,
              "bound: points between the accuracies of evaluation graph and integer engine")
      .in_range(0.0, 100.0);
  command
      .option(
          "--min-agreement", arguments->bounds.agreement,
          "bound: percent of pictures with the same class from both; without classes, of examples with equal outputs")
      .in_range(0.0, 100.0);
  command
      .option(
          "--max-steps", arguments->bounds.steps,
          "bound: steps between an operation and its simulation, given equal inputs; default: 1, the effect of rounding; 255: no bound")
      .in_range(0, 255);
  command
      .option("--min-runtime-agreement", arguments->bounds.runtime_agreement,
              "bound: percent of pictures with the same class from another runtime and the integer engine")
      .in_range(0.0, 100.0);
  command.option("--threads", arguments->threads, kThreadsHelp).in_range(0, 1024);
  command.option(
      "--out", arguments->out,
      "write the comparison to this file as JSON, too; of the run's own variables and data it is always in verify.json of the run");
  command.flag("--json", arguments->json, "print JSON instead of a table");
  command.action([arguments] { verify_run(*arguments); });
}

}  // namespace miniqat::cli
