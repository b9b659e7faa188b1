#include "training/calibrate/calibration.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "core/graph/graph_json.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/threads/parallel.h"
#include "datasets/loader.h"
#include "quantize/quantizers.h"
#include "quantize/rewrite/rewrite.h"
#include "training/evaluate/part_results.h"
#include "training/figures.h"
#include "training/run/data_of_run.h"
#include "training/run/integer_source.h"
#include "training/run/made_by.h"
#include "training/run/own_copies.h"
#include "training/run/run_source.h"
#include "training/settings/settings.h"

namespace miniqat::training {
namespace {

/// What is calibrated.
struct CalibrationTask {
  FloatRun source;
  /// The settings of the new run.
  TrainSettings settings;
  datasets::Splits data;
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
};

/// Reads the request's network and data, and sets the number of threads. `out` is for the new run.
CalibrationTask read_task(const CalibrationRequest& request, const RunDirectory& out) {
  CalibrationTask task;
  FloatRun& source = task.source;
  TrainSettings& settings = task.settings;
  source = request.model ? read_float_model(*request.model) : read_float_run(request.run);
  require_scope(source.training.graph, request.rewrite.scope, source.settings.model);
  if (request.skip_broken) source.settings.skip_broken = true;
  if (request.validation) set_validation_part(source.settings, *request.validation);
  settings = request.dataset.empty()
                 ? source.settings
                 : moved_to({.settings = source.settings, .images = source.evaluation.images.shape()},
                            resolved_dataset(request.dataset));
  settings.float_only = false;
  settings.rewrite = request.rewrite;
  settings.arithmetic = request.arithmetic;
  if (!request.rewrite.bits_config.empty()) settings.rewrite.bits_config = out.bits().string();
  if (!request.data_dir.empty()) settings.data_dir = request.data_dir;
  check_dataset(settings.dataset, request.data_dir);
  settings.data_dir = resolved_data_dir(settings.dataset, settings.data_dir);
  require_data_elsewhere(settings.dataset, out.path());
  settings.threads = request.threads == 0 ? default_thread_count() : request.threads;
  set_thread_count(static_cast<int>(settings.threads));
  FloatRunData loaded = load_data(source, settings.dataset, settings.data_dir);
  task.data = std::move(loaded.splits);
  settings.validation = loaded.held_out;
  return task;
}

/// From a float run to a quantized one.
class Calibration : CalibrationTask {
 public:
  /// All must stay. `out` is for the new run.
  Calibration(const CalibrationRequest& request, CalibrationTask task, const RunDirectory& out, RunObserver& observer)
      : CalibrationTask(std::move(task)),
        request_(request),
        calibrate_(request.calibrate),
        run_(out),
        observer_(observer),
        batch_size_(source.evaluation.images.shape()[0]),
        batches_(std::min(calibrate_.batches, data.train.size() / batch_size_)) {}

  Calibrated run() {
    Calibrated result;
    observer_.require_no_stop();
    result.in_float = evaluate_float();
    observer_.require_no_stop();
    if (calibrate_.equalize) result.equalization = equalize();
    rewrite_graphs();
    Session session(evaluation_.graph);
    take_over(session, source);
    if (!source.note.empty()) observer_.warn(source.note);
    warn_of_files(data, observer_);
    if (is_gone(source.settings.dataset) && settings.validation < source.settings.validation)
      observer_.warn(concat("note: the numbers of ", data.train.noun(), "s in ", settings.dataset,
                            " are not those of the run's data, so its validation part of ", source.settings.validation,
                            " ", data.train.noun(), "s is not held out"));
    result.ranges = find_ranges(session);
    say_what_keeps_it_from_integers(session);
    if (calibrate_.rounding == Rounding::kAdaptive) result.rounding = round_weights(session);
    if (calibrate_.bias_correction)
      result.bias_correction = correct_biases(session, result.rounding ? result.rounding->before : NamedTensors());
    result.quantized = measured(session);
    if (!one_answer(result.in_float))
      warn_of_one_answer(result.quantized.validation.value_or(*result.quantized.test), "the calibrated network");
    observer_.require_no_stop();
    run_.write_anew([&] { write(session, result.in_float, result.quantized); });
    result.seconds = seconds();
    return result;
  }

 private:
  Evaluation evaluate_float() {
    Session session(source.evaluation.graph);
    session.restore(source.checkpoint, Session::Restore::kVariables, source.checkpoint_name);
    const JudgingPart part = judging_part(data);
    const Evaluation result = evaluate(session, source.evaluation, part.pictures);
    observer_.say(concat(printable(settings.model), " on ", settings.dataset, ": the float ",
                         request_.model ? "network" : concat("run ", printable(request_.run)), " has ", part.name, " ",
                         result.text(false)));
    warn_of_one_answer(result, "the float network");
    return result;
  }

  void warn_of_one_answer(const Evaluation& evaluation, const char* network) {
    const std::string warning = warning_of_one_answer(evaluation, data.test, network, settings.dataset);
    if (!warning.empty()) observer_.warn(warning);
  }

  void rewrite_graphs() {
    training_ = std::move(source.training);
    const quantize::RewriteReport report =
        quantize::create_training_graph(training_.graph, rewrite_for(settings.rewrite, *training_.task, data.train));
    require_quantizers(training_.graph, settings.rewrite.scope, settings.model);
    evaluation_ = evaluation_of(training_);
    observer_.say(concat(quantize::quantization_of(training_.graph).label(), ": ",
                         counted(report.inserted.size(), "quantizer"), ", ", counted(batches_, "batch"), " of ",
                         batch_size_, " training ", data.train.noun(), "s",
                         batches_ < calibrate_.batches ? " (all there are)" : "", ", method ", method_text()));
    observer_.on_rewrite(report);
  }

  std::string method_text() const {
    const std::string name(names_of(calibrate_.method)[static_cast<std::size_t>(calibrate_.method)]);
    return calibrate_.method == quantize::CalibrationMethod::kPercentile ? concat(name, " ", calibrate_.percentile)
                                                                         : name;
  }

  /// Visits the same batches every time.
  void for_each_batch(Output images, const std::function<void(std::int64_t, const Feeds&)>& visit) {
    datasets::Loader loader(data.train,
                            {.batch_size = batch_size_, .seed = static_cast<std::uint64_t>(calibrate_.seed)});
    for (std::int64_t batch = 1; batch <= batches_; ++batch) {
      visit(batch, {{images, loader.next().images}});
      observer_.require_no_stop();
    }
  }

  std::vector<quantize::CalibratedRange> find_ranges(Session& session) {
    quantize::Calibrator calibrator(session, {calibrate_.method, calibrate_.percentile});
    for_each_batch(evaluation_.images, [&](std::int64_t batch, const Feeds& feeds) {
      calibrator.observe(feeds);
      observer_.on_batch(batch, batches_);
    });
    return calibrator.finish();
  }

  /// Before the stages that take long, and the training of `quantize`.
  void say_what_keeps_it_from_integers(Session& session) {
    const std::string why =
        why_no_integers(evaluation_.graph, *evaluation_.task, session.variables(), grid_of(data.test));
    if (!why.empty()) observer_.say(concat("note: the network will not become integers: ", why));
  }

  /// Changes the float run's variables; nothing else sees that.
  quantize::Equalization equalize() {
    Session session(source.evaluation.graph);
    session.restore(source.checkpoint, Session::Restore::kVariables, source.checkpoint_name);
    quantize::Equalizer equalizer(session, settings.rewrite.scope);
    for_each_batch(source.evaluation.images, [&](std::int64_t, const Feeds& feeds) { equalizer.observe(feeds); });
    quantize::Equalization result = equalizer.finish();
    for (const std::string& name : equalizer.variables())
      source.checkpoint.tensors.insert_or_assign(name, session.variable(name));
    observer_.say(concat("equalized ", counted(result.pairs.size(), "pair"), " of layers in ",
                         counted(result.sweeps, "sweep"), "; ", counted(result.left_out.size(), "layer"), " left out"));
    return result;
  }

  /// For what looks at all batches several times.
  quantize::FeedsOfBatches batches() {
    return [this](const auto& visit) {
      for_each_batch(evaluation_.images, [&](std::int64_t, const Feeds& feeds) { visit(feeds); });
    };
  }

  /// Tells the observer each layer that a method goes through.
  quantize::OnLayer announcement(const char* doing) {
    return [this, doing](const std::string& layer, std::size_t number, std::size_t all) {
      observer_.say(concat(doing, " layer ", number, "/", all, ": ", printable(layer)));
    };
  }

  quantize::AdaptiveRounding round_weights(Session& session) {
    // Observers are asked in this thread only; the others look at what came of it.
    std::atomic<bool> stopped = false;
    const auto stops = [&, own = std::this_thread::get_id()] {
      if (std::this_thread::get_id() == own && observer_.wants_to_stop()) stopped = true;
      return stopped.load();
    };
    quantize::AdaptiveRounding result = quantize::round_adaptively(
        session, batches(), {.seed = static_cast<std::uint64_t>(calibrate_.seed), .stops = stops},
        announcement("rounding"));
    if (stopped) throw Stopped();
    observer_.say(concat("rounded ", counted(result.rounded.size(), "layer"), " adaptively; ",
                         counted(result.left_out.size(), "layer"), " left out"));
    return result;
  }

  /// `in_float` has the float network's variables where the session's are others.
  quantize::BiasCorrection correct_biases(Session& session, const NamedTensors& in_float) {
    quantize::BiasCorrection result =
        quantize::correct_biases(session, batches(), in_float, announcement("correcting"));
    observer_.say(concat("corrected ", result.corrected.size(), " biases; ", counted(result.left_out.size(), "layer"),
                         " left out"));
    return result;
  }

  /// In the new run's arithmetic, as `eval` will have it.
  PartResults measured(Session& calibrated) {
    Session session(evaluation_.graph, {.arithmetic = settings.arithmetic});
    session.restore(calibrated.checkpoint(), Session::Restore::kVariables, "the calibrated graph");
    PartResults results;
    if (data.validation) results.validation = evaluate(session, evaluation_, *data.validation);
    results.test = evaluate(session, evaluation_, data.test);
    return results;
  }

  /// config.json comes last: a directory without it is no run.
  void write(Session& session, const Evaluation& before, const PartResults& after) {
    if (!settings.rewrite.layer_bits.empty())
      write_json(run_.bits(), quantize::layer_bits_to_json(settings.rewrite.layer_bits));
    write_graph(run_.train_graph(), training_.graph);
    write_graph(run_.eval_graph(), evaluation_.graph);
    write_safetensors(run_.checkpoint(), checkpoint(session));
    write_skipped_files(data, run_);
    write_json(run_.summary(), summary(before, after));
    write_class_weights(class_weights_of(settings, data.train), data.train, run_);
    record_command(run_);
    Json config = settings_to_json(settings);
    if (has_class_weights_file(settings)) config["class_weights"] = run_.class_weights().string();
    write_json(run_.config(), config);
  }

  /// The checkpoint of the training graph, at the step that the float run had reached.
  Safetensors checkpoint(Session& evaluated) {
    Session session(training_.graph);
    session.restore(evaluated.checkpoint(), Session::Restore::kVariables, "the calibrated graph");
    Safetensors content = session.checkpoint();
    content.tensors.at("session:step") = Tensor::scalar(steps());
    return content;
  }

  std::int64_t steps() const {
    const auto found = source.checkpoint.tensors.find("session:step");
    return found == source.checkpoint.tensors.end() ? 0 : *found->second.data<std::int64_t>();
  }

  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count(); }

  Json summary(const Evaluation& before, const PartResults& after) const {
    const RewriteSettings& rewrite = settings.rewrite;
    Json calibration = settings_to_json(calibrate_);
    if (calibrate_.method != quantize::CalibrationMethod::kPercentile) calibration.erase("percentile");
    for (const char* option : {"equalize", "bias_correction"})
      if (calibration[option] == false) calibration.erase(option);
    if (calibrate_.rounding == Rounding::kNearest) calibration.erase("rounding");
    calibration["batches"] = batches_;
    calibration["batch_size"] = batch_size_;
    if (request_.model)
      calibration["model"] = settings.model;
    else
      calibration["run"] = request_.run;
    const std::string part = judging_part(data).name;
    Json json = {
        {"model", settings.model},
        {"dataset", settings.dataset},
        {"quantization", quantize::quantization_of(training_.graph).label()},
        {"bits", quantize::quantization_of(training_.graph).bits()},
        {"layer_bits", rewrite.layer_bits.empty() ? Json(nullptr) : quantize::layer_bits_to_json(rewrite.layer_bits)},
        {"calibration", calibration},
        {"steps", steps()},
        {"complete", true},
        {"task", training_.task->name}};
    for (const Measure& one : before.measures)
      if (!one.is_quiet) json[concat("float_", part, "_", one.kind->key)] = one.value;
    json[concat("float_", part, "_loss")] = before.loss;
    after.put_into(json, *training_.task);
    json.update(Json{{"train_loss", nullptr},
                     {"images_per_second", static_cast<double>(batches_ * batch_size_) / seconds()},
                     {"seconds", seconds()},
                     {"peak_memory_mb", peak_megabytes()},
                     {"seed", settings.seed},
                     {"threads", settings.threads},
                     {"machine", machine_to_json()}});
    json.update(data_to_json(data, settings.dataset));
    return json;
  }

  const CalibrationRequest& request_;
  const CalibrateSettings& calibrate_;
  const RunDirectory& run_;
  RunObserver& observer_;
  const std::int64_t batch_size_;
  const std::int64_t batches_;
  Classifier training_;
  Classifier evaluation_;
};

}  // namespace

void check(const CalibrateSettings& settings) {
  check_options<CalibrateSettings>([&] { quantize::CalibrationOptions{settings.method, settings.percentile}.check(); });
  check_limits(CalibrateSettings::table(), settings);
}

std::span<const std::string_view> names_of(Rounding) {
  static constexpr std::array<std::string_view, 2> kNames = {"nearest", "adaptive"};
  return kNames;
}

Calibrated calibrate(const CalibrationRequest& request, const RunDirectory& out, RunObserver& observer) {
  return Calibration(request, read_task(request, out), out, observer).run();
}

}  // namespace miniqat::training
