#include "quantize/calibrate/calibrate.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/evaluator.h"
#include "cli/flag_checks.h"
#include "cli/interrupt.h"
#include "cli/memory.h"
#include "cli/progress_line.h"
#include "cli/range_table.h"
#include "cli/run_directory.h"
#include "cli/run_source.h"
#include "cli/scope_check.h"
#include "cli/settings.h"
#include "cli/threads.h"
#include "cli/train_settings.h"
#include "core/counted.h"
#include "core/graph/graph_json.h"
#include "core/parallel.h"
#include "core/quote.h"
#include "datasets/loader.h"
#include "quantize/quantization.h"
#include "quantize/rewrite/rewrite.h"

namespace miniqat::cli {
namespace {

/// What decides about the ranges; kept in summary.json.
struct CalibrateSettings {
  quantize::CalibrationMethod method = quantize::CalibrationMethod::kMse;
  double percentile = 99.99;
  std::int64_t batches = 32;
  std::int64_t seed = 1;

  template <class Visitor>
  static void visit(Visitor&& visitor) {
    visitor(
        "method", [](auto& s) -> auto& { return s.method; },
        "how activations get their ranges: minmax; moving-average, as in training; percentile; mse, the range of "
        "least squared error, for weights, too");
    visitor(
        "percentile", [](auto& s) -> auto& { return s.percentile; },
        "with percentile: 100 less this is the per cent of the values left out at each end");
    visitor(
        "batches", [](auto& s) -> auto& { return s.batches; },
        "batches of training pictures to look at, of the run's batch size");
    visitor(
        "seed", [](auto& s) -> auto& { return s.seed; }, "chooses the pictures");
  }
};

/// How the graph is rewritten, without what counts training steps: none are taken.
struct CalibratedRewrite : RewriteSettings {
  template <class Visitor>
  static void visit(Visitor&& visitor) {
    visit_rewrite_options([&](const char* name, auto access, const char* help) {
      const std::string_view field = name;
      if (field != "quant_delay" && field != "freeze_bn_delay") visitor(name, access, help);
    });
  }
};

struct CalibrateArguments {
  std::string run;
  std::string dataset;
  std::string data_dir;
  std::string out;
  int threads = 0;
  bool overwrite = false;
  bool verbose = false;
};

RunDirectory new_directory(const CalibrateArguments& arguments) {
  if (arguments.overwrite && is_or_lies_in(arguments.run, arguments.out))
    throw UsageError("--overwrite would delete the run in --run: give another --out");
  return RunDirectory::fresh(
      arguments.out, "give another --out, or --overwrite to delete that run",
      arguments.overwrite ? RunDirectory::Existing::kOverwrite : RunDirectory::Existing::kRefuse);
}

/// A float run as it is found.
struct FloatRun {
  TrainSettings settings;
  Graph training;
  Classifier evaluation;
  Safetensors checkpoint;
  std::string checkpoint_name;
  std::string note;
};

FloatRun read_float_run(const std::string& path) {
  const RunDirectory run = RunDirectory::open(path);
  FloatRun result;
  settings_from_json(read_json(run.config()), result.settings, run.config().string());
  const std::string source = run.eval_graph().string();
  result.evaluation = find_classifier(read_graph(source), source);
  result.training = read_graph(run.train_graph());
  for (const Node* node : result.evaluation.graph.nodes())
    if (node->as<quantize::FakeQuant>() != nullptr)
      fail("the run in ", path, " is quantized already (", quantize::quantization_of(result.evaluation.graph).label(),
           ", by ", describe(*node),
           " and others): calibration starts from a float run, as `miniqat train --float` makes it");
  const TrainedVariables variables = trained_variables(path);
  result.note = variables.note;
  result.checkpoint_name = variables.file.string();
  result.checkpoint = read_safetensors(variables.file);
  return result;
}

void check(const CalibrateSettings& settings, bool percentile_given) {
  check_options<CalibrateSettings>([&] { quantize::CalibrationOptions{settings.method, settings.percentile}.check(); });
  if (settings.batches < 1) throw UsageError(concat("--batches must be at least 1, got ", settings.batches));
  if (settings.seed < 0) throw UsageError(concat("--seed must not be negative, got ", settings.seed));
  if (percentile_given && settings.method != quantize::CalibrationMethod::kPercentile)
    throw UsageError("--percentile goes with --method percentile");
}

/// What the rewritten graph has and the float one has not must be the quantizers' own; fresh statistics of a batch
/// norm, say, would make any range worthless.
void take_over(Session& session, const FloatRun& source) {
  const Session::RestoreReport report =
      session.restore(source.checkpoint, Session::Restore::kByName, source.checkpoint_name);
  for (const std::string& name : report.fresh) {
    const Node* owner = session.graph().find(scope_of(name));
    if (owner == nullptr || owner->as<quantize::FakeQuant>() == nullptr)
      fail(source.checkpoint_name, ": the rewritten graph needs \"", name,
           "\", which this run does not have; only training can give it (train --init-checkpoint)");
  }
}

/// From a float run to a quantized one.
class Calibration {
 public:
  Calibration(const CalibrateArguments& arguments, const CalibrateSettings& settings, const RewriteSettings& rewrite)
      : arguments_(arguments), calibrate_(settings), run_(new_directory(arguments)) {
    source_ = read_float_run(arguments.run);
    require_scope(source_.training, rewrite.scope, source_.settings.model);
    settings_ = source_.settings;
    settings_.float_only = false;
    settings_.rewrite = rewrite;
    if (!rewrite.bits_config.empty()) settings_.rewrite.bits_config = run_.bits().string();
    if (!arguments.dataset.empty()) settings_.dataset = arguments.dataset;
    if (!arguments.data_dir.empty()) settings_.data_dir = arguments.data_dir;
    check_dataset(settings_.dataset);
    if (!arguments.data_dir.empty() && settings_.dataset == "synthetic")
      refuse_ignored("--data-dir", "--dataset synthetic, which needs no files");
    settings_.threads = arguments.threads == 0 ? default_thread_count() : arguments.threads;
    set_thread_count(static_cast<int>(settings_.threads));
    const std::string graph = RunDirectory::open(arguments.run).eval_graph().string();
    datasets::LoadOptions options;
    options.accept = [&](const Shape& example) {
      require_pictures_fit(source_.evaluation, example, settings_.dataset, graph);
    };
    data_ = datasets::load(settings_.dataset, settings_.data_dir, options);
    require_fit(source_.evaluation, data_.train, graph);
    batch_size_ = source_.evaluation.images.shape()[0];
    batches_ = std::min(settings.batches, data_.train.size() / batch_size_);
  }

  void run() {
    InterruptGuard::check();
    const Evaluation before = evaluate_float();
    InterruptGuard::check();
    rewrite_graphs();
    Session session(evaluation_.graph);
    take_over(session, source_);
    print_note(source_.note);
    const std::vector<quantize::CalibratedRange> ranges = calibrate(session);
    if (arguments_.verbose) std::printf("%s", range_table(ranges).c_str());
    const Evaluation after = evaluate(session, evaluation_, data_.test);
    write(session, before, after);
    std::printf("done in %.1f s: test accuracy %.2f%% (%ld of %ld), in float %.2f%%; run directory %s\n", seconds(),
                100 * after.accuracy(), static_cast<long>(after.correct), static_cast<long>(after.examples),
                100 * before.accuracy(), printable(run_.path().string()).c_str());
  }

 private:
  Evaluation evaluate_float() {
    std::printf("%s on %s: the float run %s", printable(settings_.model).c_str(), settings_.dataset.c_str(),
                printable(arguments_.run).c_str());
    std::fflush(stdout);
    Session session(source_.evaluation.graph);
    session.restore(source_.checkpoint, Session::Restore::kVariables, source_.checkpoint_name);
    const Evaluation result = evaluate(session, source_.evaluation, data_.test);
    std::printf(" has test accuracy %.2f%%\n", 100 * result.accuracy());
    return result;
  }

  void rewrite_graphs() {
    training_ = std::move(source_.training);
    const quantize::RewriteReport report = quantize::create_training_graph(training_, settings_.rewrite);
    if (report.inserted.empty())
      fail("nothing in ", settings_.model, " was quantized",
           settings_.rewrite.scope.empty() ? "" : concat(", no layer is in scope \"", settings_.rewrite.scope, "\""),
           "; `miniqat rewrite --report` says why");
    evaluation_ = std::move(source_.evaluation);
    quantize::create_eval_graph(evaluation_.graph, settings_.rewrite);
    evaluation_.logits = evaluation_.graph.outputs().front();
    std::printf(
        "%s: %s, %s of %ld training pictures%s, method %s\n", quantize::quantization_of(training_).label().c_str(),
        counted(report.inserted.size(), "quantizer").c_str(), counted(batches_, "batch").c_str(),
        static_cast<long>(batch_size_), batches_ < calibrate_.batches ? " (all there are)" : "", method_text().c_str());
    std::printf("%s", (arguments_.verbose ? report.text() : report.notes()).c_str());
    std::fflush(stdout);
  }

  std::string method_text() const {
    const std::string name(names_of(calibrate_.method)[static_cast<std::size_t>(calibrate_.method)]);
    return calibrate_.method == quantize::CalibrationMethod::kPercentile ? concat(name, " ", calibrate_.percentile)
                                                                         : name;
  }

  std::vector<quantize::CalibratedRange> calibrate(Session& session) {
    datasets::Loader loader(data_.train,
                            {.batch_size = batch_size_, .seed = static_cast<std::uint64_t>(calibrate_.seed)});
    quantize::Calibrator calibrator(session, {calibrate_.method, calibrate_.percentile});
    ProgressLine line(stdout);
    for (std::int64_t batch = 1; batch <= batches_; ++batch) {
      calibrator.observe({{evaluation_.images, loader.next().images}});
      show_progress(batch, line);
      InterruptGuard::check();
    }
    return calibrator.finish();
  }

  /// Four lines where there is no terminal.
  void show_progress(std::int64_t batch, ProgressLine& line) const {
    const std::string text = concat("batch ", batch, "/", batches_);
    line.show(text);
    const bool quarter = batch % std::max<std::int64_t>(batches_ / 4, 1) == 0;
    if (batch != batches_ && (line.on_terminal() || !quarter)) return;
    line.clear();
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
  }

  /// config.json comes last: a directory without it is no run.
  void write(Session& session, const Evaluation& before, const Evaluation& after) {
    InterruptGuard::check();
    run_.clear();
    try {
      write_files(session, before, after);
    } catch (...) {
      run_.clear();
      throw;
    }
  }

  void write_files(Session& session, const Evaluation& before, const Evaluation& after) {
    if (!settings_.rewrite.layer_bits.empty())
      write_json(run_.bits(), quantize::layer_bits_to_json(settings_.rewrite.layer_bits));
    write_graph(run_.train_graph(), training_);
    write_graph(run_.eval_graph(), evaluation_.graph);
    write_safetensors(run_.checkpoint(), checkpoint(session));
    write_json(run_.summary(), summary(before, after));
    write_json(run_.config(), settings_to_json(settings_));
  }

  /// That of the training graph, at the step that the float run had reached.
  Safetensors checkpoint(Session& evaluated) {
    Session session(training_);
    session.restore(evaluated.checkpoint(), Session::Restore::kVariables, "the calibrated graph");
    Safetensors content = session.checkpoint();
    content.tensors.at("session:step") = Tensor::scalar(steps());
    return content;
  }

  std::int64_t steps() const {
    const auto found = source_.checkpoint.tensors.find("session:step");
    return found == source_.checkpoint.tensors.end() ? 0 : *found->second.data<std::int64_t>();
  }

  double seconds() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }

  Json summary(const Evaluation& before, const Evaluation& after) const {
    const RewriteSettings& rewrite = settings_.rewrite;
    Json calibration = settings_to_json(calibrate_);
    if (calibrate_.method != quantize::CalibrationMethod::kPercentile) calibration.erase("percentile");
    calibration["batches"] = batches_;
    calibration["batch_size"] = batch_size_;
    calibration["run"] = arguments_.run;
    return {
        {"model", settings_.model},
        {"dataset", settings_.dataset},
        {"quantization", quantize::quantization_of(training_).label()},
        {"bits", quantize::quantization_of(training_).bits()},
        {"layer_bits", rewrite.layer_bits.empty() ? Json(nullptr) : quantize::layer_bits_to_json(rewrite.layer_bits)},
        {"calibration", calibration},
        {"steps", steps()},
        {"complete", true},
        {"float_test_accuracy", before.accuracy()},
        {"float_test_loss", before.loss},
        {"test_accuracy", after.accuracy()},
        {"test_loss", after.loss},
        {"train_loss", nullptr},
        {"images_per_second", static_cast<double>(batches_ * batch_size_) / seconds()},
        {"seconds", seconds()},
        {"peak_memory_mb", peak_megabytes()},
        {"seed", settings_.seed},
        {"threads", settings_.threads},
        {"input_scale", data_.train.scale},
        {"input_zero_point", data_.train.zero_point}};
  }

  using Clock = std::chrono::steady_clock;

  const CalibrateArguments& arguments_;
  const CalibrateSettings& calibrate_;
  const RunDirectory run_;
  FloatRun source_;
  /// Of the new run.
  TrainSettings settings_;
  datasets::Splits data_;
  std::int64_t batch_size_ = 0;
  std::int64_t batches_ = 0;
  Graph training_;
  Classifier evaluation_;
  const Clock::time_point started_ = Clock::now();
};

}  // namespace

void add_calibrate(CommandLine& program) {
  Command command = program.command(
      "calibrate", "Quantize a float run without training: rewrite its graph and find the ranges from some batches");
  const auto arguments = std::make_shared<CalibrateArguments>();
  command.option("--run", arguments->run, "the directory of a float run").required();
  command.option("--out", arguments->out, "the run directory to make").required();
  command.option("--dataset", arguments->dataset, "the run's own when left out");
  command.option("--data-dir", arguments->data_dir, "where the data set's files are (or MINIQAT_DATA_DIR)");
  command.option("--threads", arguments->threads, kThreadsHelp).in_range(0, 1024);
  command.flag("--overwrite", arguments->overwrite, "delete the run that is in --out");
  command.flag("--verbose", arguments->verbose, "print the rewrite's report and every quantizer's range");
  const auto flags = std::make_shared<SettingFlags<CalibrateSettings>>(command, "Calibration");
  const auto rewrite_flags = std::make_shared<SettingFlags<CalibratedRewrite>>(command, "Quantization");
  command.action([arguments, flags, rewrite_flags] {
    CalibrateSettings settings;
    flags->apply(settings);
    check(settings, flags->was_given("percentile"));
    CalibratedRewrite rewrite;
    rewrite_flags->apply(rewrite);
    if (rewrite_flags->was_given("ema_decay") && settings.method != quantize::CalibrationMethod::kMovingAverage)
      throw UsageError("--ema-decay goes with --method moving-average");
    refuse_ignored_symmetry(*rewrite_flags, rewrite);
    load_layer_bits(rewrite);
    check_options<CalibratedRewrite>([&] { rewrite.check(); });
    const InterruptGuard interrupts;
    const BrokenPipeGuard broken_pipes;
    Calibration(*arguments, settings, rewrite).run();
  });
}

}  // namespace miniqat::cli
