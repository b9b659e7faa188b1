#include "training/quantize/quantization_run.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/files/files.h"
#include "core/platform/interruption.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/quote.h"
#include "core/threads/parallel.h"
#include "datasets/class_counts.h"
#include "training/calibrate/batch_norm_statistics.h"
#include "training/evaluate/evaluator.h"
#include "training/evaluate/part_results.h"
#include "training/model_source.h"
#include "training/run/data_of_run.h"
#include "training/run/integer_source.h"
#include "training/run/made_by.h"
#include "training/run/own_copies.h"
#include "training/run/run_source.h"
#include "training/run/same_data.h"
#include "training/settings/settings.h"
#include "training/train/layer_arithmetic.h"
#include "training/train/trainer.h"
#include "training/train/training_task.h"

namespace miniqat::training {
namespace {

namespace fs = std::filesystem;

/// A quantized network that may become the run.
struct Candidate {
  const char* name;
  RunDirectory stage;
  Safetensors checkpoint;
  PartResults accuracies = {};
  NetworkCost cost = {};
};

bool has_config(const fs::path& stage) { return is_there(stage / "config.json"); }

/// Locking a directory removes the temporary files of processes that died.
void sweep(const fs::path& finished_stage) { RunDirectory::resume(finished_stage); }

Json row_to_json(const QuantizedRow& row, const Task& task) {
  Json json = {{"name", row.name}};
  row.accuracies.put_into(json, task);
  json["parameter_bytes"] = row.cost.parameter_bytes;
  json["bit_operations"] = row.cost.bit_operations;
  return json;
}

class QuantizationRun {
 public:
  QuantizationRun(QuantizationPlan plan, FloatRun source, const RunDirectory& out, RunObserver& observer)
      : plan_(std::move(plan)), out_(out), observer_(observer), source_(std::move(source)) {}

  QuantizationResult run(bool resume) {
    set_thread_count(threads_outside_steps());
    if (!resume) write_plan(plan_, out_);
    write_json(out_.machine(), machine_to_json());
    record_command(out_);
    or_say_how_to_go_on([&] {
      calibrate_unless_done(resume);
      observer_.require_no_stop();
    });
    train_unless_done();
    or_say_how_to_go_on([&] { measure(); });
    Candidate& best = choose();
    hand_out(best);
    or_say_how_to_go_on([&] { measure_integers(best); });
    write_result();
    return std::move(result_);
  }

 private:
  template <class Stage>
  void or_say_how_to_go_on(const Stage& stage) {
    const auto say = [&] { observer_.say(concat("stopped; go on with: ", printable(quantization_way_on(out_)))); };
    try {
      stage();
    } catch (const Stopped&) {
      say();
      throw;
    } catch (const Interruption&) {
      say();
      throw;
    }
  }

  /// With shards no number depends on --threads.
  int threads_outside_steps() const {
    const TrainSettings& training = plan_.training;
    return static_cast<int>(training.has_shards() ? training.threads_per_shard : training.threads);
  }

  const char* noun() const {
    if (source_.is_run()) return noun_of(RunDirectory::open(source_.path));
    return source_.evaluation.images.shape().rank() == 4 ? "picture" : "example";
  }

  /// `classes`: ", 60 of each of 10 classes," or "".
  void announce(const std::string& classes = "") {
    const std::int64_t pictures = plan_.training.validation;
    if (pictures == 0) {
      observer_.say(concat("the validation ", noun(), "s of the data", classes, " decide ", by_what(),
                           "between the calibrated and the trained network"));
      return;
    }
    observer_.say(concat(counted(pictures, concat("training ", noun())), classes, " decide", pictures == 1 ? "s" : "",
                         " ", by_what(),
                         "between the calibrated and the trained network, and no stage trains with them",
                         has_seen_validation(source_) ? "; the float run was trained with them" : ""));
  }

  void announce(const datasets::Splits& data) {
    announce(data.validation->has_classes() ? concat(", ", datasets::class_counts_text(*data.validation), ",") : "");
    if (const std::string note = note_on_small_classes(data); !note.empty()) observer_.say(note);
  }

  /// The run of a stage is complete once it has its config.json.
  void calibrate_unless_done(bool resumed) {
    const fs::path stage = calibrated_in(out_);
    if (has_config(stage)) {
      sweep(stage);
      announce();
      return;
    }
    CalibrationRequest request{.run = plan_.run, .calibrate = plan_.calibrate};
    if (!source_.is_run()) request.model = source_.settings;
    request.rewrite = plan_.training.rewrite;
    request.arithmetic = plan_.training.arithmetic;
    // No steps are taken that could be counted.
    request.rewrite.freeze_bn_delay = {};
    request.data_dir = plan_.training.data_dir;
    request.threads = threads_outside_steps();
    request.validation = validation_part_of(plan_.training);
    try {
      // What is wrong with the settings of the training is found before the calibration.
      {
        const TrainingTask task(read_networks(plan_.training));
        require_roundable(task);
        if (source_.is_run())
          if (const std::string note =
                  require_similar_data(RunDirectory::open(source_.path), task.settings.dataset, task.data);
              !note.empty())
            observer_.warn(note);
        announce(task.data);
      }
      calibrate(request, RunDirectory::fresh(stage, "", RunDirectory::Existing::kOverwrite), observer_);
    } catch (const Stopped&) {
      throw;
    } catch (const Error&) {
      // A run that cannot begin leaves nothing behind.
      if (!resumed) out_.clear();
      throw;
    }
  }

  void train_unless_done() {
    const fs::path stage = trained_in(out_);
    const bool begun = has_config(stage);
    if (begun && unfinished_note(RunDirectory::open(stage)).empty()) {
      sweep(stage);
      return;
    }
    const RunDirectory run =
        begun ? RunDirectory::resume(stage) : RunDirectory::fresh(stage, "", RunDirectory::Existing::kOverwrite);
    TrainExtras extras{.resume = begun, .way_on = quantization_way_on(out_), .is_stage = true};
    if (begun) extras.begun = recorded_settings(read_json(run.config()), run.config().string());
    TrainSettings settings = plan_.training;
    settings.init_checkpoint = calibrated_in(out_).string();
    settings.standards_of = settings.init_checkpoint;
    // `train --resume` may have changed them.
    if (begun) settings.gradients = extras.begun.gradients;
    if (!settings.rewrite.bits_config.empty()) settings.rewrite.bits_config = run.bits().string();
    try {
      train(settings, run, extras, observer_);
    } catch (const NonFiniteLoss& error) {
      result_.training_failed = error.what();
      observer_.warn(concat("warning: the training failed: ", result_.training_failed));
      return;
    }
    // A training that was stopped says so, unless it had not even begun.
    if (!has_config(stage)) or_say_how_to_go_on([] { throw Stopped(); });
    if (!unfinished_note(run).empty()) throw Stopped();
  }

  /// The stages have said it of what they measured themselves.
  PartResults warned(const PartResults& accuracies, const std::string& name) {
    const std::string warning = warning_of_one_answer(*accuracies.validation, *data_.validation,
                                                      concat("the network of the row ", name), plan_.training.dataset);
    if (!warning.empty()) observer_.warn(warning);
    return accuracies;
  }

  /// In the arithmetic of the network's run.
  PartResults measured(Classifier& network, Arithmetic arithmetic, const Safetensors& checkpoint,
                       const std::string& source, const std::string& name) {
    observer_.require_no_stop();
    Session session(network.graph, {.arithmetic = arithmetic});
    session.restore(checkpoint, Session::Restore::kVariables, source);
    return warned(
        {.validation = evaluate(session, network, *data_.validation), .test = evaluate(session, network, data_.test)},
        name);
  }

  /// The accuracies that the stage has measured at its end.
  std::optional<PartResults> recorded_accuracies(const RunDirectory& stage) const {
    return PartResults::from(read_json(stage.summary()), task(), data_.validation->size(), data_.test.size());
  }

  /// `is_last`: with the variables that the stage has ended with.
  void add_candidate(const char* name, const RunDirectory& stage, const Safetensors& checkpoint, bool is_last = true) {
    Candidate candidate{.name = name, .stage = stage, .checkpoint = checkpoint};
    const std::string graph = stage.eval_graph().string();
    Classifier network = find_classifier(read_network(graph), graph, task());
    const auto recorded = is_last ? recorded_accuracies(stage) : std::nullopt;
    const Arithmetic arithmetic = recorded_settings(read_json(stage.config()), stage.config().string()).arithmetic;
    candidate.accuracies =
        recorded ? *recorded : measured(network, arithmetic, checkpoint, stage.checkpoint().string(), name);
    candidate.cost = cost_of(network.graph, network.images.shape()[0]);
    result_.rows.push_back({.name = name, .accuracies = candidate.accuracies, .cost = candidate.cost});
    candidates_.push_back(std::move(candidate));
  }

  void measure() {
    const RunDirectory calibrated = RunDirectory::open(calibrated_in(out_));
    data_ = load_data(open_run(calibrated.path().string(), ""), {}, plan_.training.data_dir);
    Classifier& in_float = source_.evaluation;
    result_.rows.push_back(
        {.name = "float",
         .accuracies = measured(in_float, Arithmetic::kSimulated, source_.checkpoint, source_.checkpoint_name, "float"),
         .cost = cost_of(in_float.graph, in_float.images.shape()[0])});
    add_candidate("calibrated", calibrated, read_safetensors(calibrated.checkpoint()));
    if (!result_.training_failed.empty()) return;
    const RunSource trained = open_run(trained_in(out_).string(), "");
    const Safetensors last = read_safetensors(trained.checkpoint);
    Safetensors content = last;
    const NamedTensors averages = take_trained(content);
    put_back(content, averages);
    add_candidate("trained", trained.directory, content, averages.empty());
    if (!averages.empty()) add_candidate("re-estimated", trained.directory, last);
  }

  const Task& task() const { return *source_.evaluation.task; }

  /// Who gave classes weights does not want the frequent ones to decide.
  bool by_balanced_accuracy() const { return !plan_.training.class_weights.empty(); }
  const MeasureKind& what_decides() const { return task().measures[by_balanced_accuracy() ? 1 : 0]; }
  std::string by_what() const { return by_balanced_accuracy() ? concat("by ", what_decides().name, " ") : ""; }

  Candidate& choose() {
    Candidate* best = &candidates_.front();
    for (Candidate& candidate : candidates_)
      if (is_better(*candidate.accuracies.validation, *best->accuracies.validation, what_decides().key))
        best = &candidate;
    result_.chosen = best->name;
    const bool is_measured = std::ranges::any_of(candidates_, [&](const Candidate& candidate) {
      return !std::isnan(candidate.accuracies.validation->find(what_decides().key).value_or(NAN));
    });
    result_.chosen_by = is_measured ? what_decides().name : "loss";
    result_.by_balanced_accuracy = by_balanced_accuracy();
    return *best;
  }

  void hand_out(const Candidate& best) {
    copy_if_there(best.stage.metrics().path(), out_.metrics().path());
    copy_if_there(best.stage.skipped_files(), out_.skipped_files());
    Json summary = read_json(best.stage.summary());
    best.accuracies.put_into(summary, task());
    hand_on_run(best.stage, out_, best.checkpoint, summary);
  }

  void measure_integers(const Candidate& best) {
    observer_.require_no_stop();
    try {
      const integer::Model model = convert_run(out_, out_.checkpoint(), grid_of(data_.test));
      const PartResults accuracies = warned({.validation = evaluate_integers(model, task(), *data_.validation),
                                             .test = evaluate_integers(model, task(), data_.test)},
                                            "integers");
      result_.rows.push_back({.name = "integers", .accuracies = accuracies, .cost = best.cost});
    } catch (const Error& error) {
      result_.no_integers = error.what();
    }
  }

  void write_result() const {
    Json json = plan_to_json(plan_);
    json["complete"] = true;
    if (source_.is_run())
      json["float_has_seen_validation"] = plan_.training.validation > 0 && has_seen_validation(source_);
    json["chosen"] = result_.chosen;
    json["chosen_by"] = result_.chosen_by;
    json["training_failed"] = result_.training_failed.empty() ? Json(nullptr) : Json(result_.training_failed);
    json["rows"] = Json::array();
    for (const QuantizedRow& row : result_.rows) json["rows"].push_back(row_to_json(row, task()));
    json["no_integers"] = result_.no_integers.empty() ? Json(nullptr) : Json(result_.no_integers);
    write_json(out_.quantization(), json);
  }

  QuantizationPlan plan_;
  const RunDirectory& out_;
  RunObserver& observer_;
  FloatRun source_;
  datasets::Splits data_;
  std::vector<Candidate> candidates_;
  QuantizationResult result_;
};

}  // namespace

std::string quantization_way_on(const RunDirectory& run) {
  return concat("miniqat quantize --resume --out ", shell_path(run.path()));
}

QuantizationResult quantize_run(const QuantizationPlan& plan, const RunDirectory& out, bool resume,
                                RunObserver& observer) {
  FloatRun source = float_source(plan);
  QuantizationPlan own = plan;
  if (source.is_run()) {
    require_still_there(plan.run, plan.training.dataset, false);
    use_model_copy(own.training, RunDirectory::open(plan.run));
  }
  // The run's own copy, which is there when the original is gone.
  RewriteSettings& rewrite = own.training.rewrite;
  if (!rewrite.bits_config.empty()) rewrite.bits_config = out.bits().string();
  return QuantizationRun(std::move(own), std::move(source), out, observer).run(resume);
}

}  // namespace miniqat::training
