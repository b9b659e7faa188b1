#include "training/calibrate/reestimation.h"

#include <chrono>
#include <utility>

#include "core/graph/graph_json.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/threads/parallel.h"
#include "training/calibrate/batch_norm_statistics.h"
#include "training/evaluate/accuracies.h"
#include "training/figures.h"
#include "training/run/data_of_run.h"
#include "training/run/made_by.h"
#include "training/run/run_source.h"
#include "training/settings/settings.h"

namespace miniqat::training {
namespace {

std::int64_t stored_quantization_step(const Safetensors& checkpoint, const std::string& source) {
  const auto found = checkpoint.tensors.find("session:quantization_step");
  if (found == checkpoint.tensors.end() || found->second.dtype() != DType::kInt64 || found->second.elements() != 1)
    fail(source, ": \"session:quantization_step\" is missing");
  return *found->second.data<std::int64_t>();
}

/// A run that came to its end, as it is found but for its moving statistics, which it has back.
struct FinishedRun {
  RunSource source;
  Classifier training;
  Classifier evaluation;
  Safetensors checkpoint;
  std::int64_t quantization_step = 0;
};

FinishedRun read_finished_run(const std::string& path) {
  FinishedRun run{.source = open_run(path, {}), .training = {}, .evaluation = {}, .checkpoint = {}};
  const RunDirectory& directory = run.source.directory;
  require_complete(directory);
  if (directory.is_calibrated())
    fail("the run in ", path, " was calibrated, not trained: training mode would choose other ranges for its weights; ",
         "re-estimate the float run and calibrate that");
  run.training = find_classifier(read_network(directory.train_graph()), directory.train_graph().string());
  run.evaluation = find_classifier(read_network(directory.eval_graph()), directory.eval_graph().string());
  run.checkpoint = read_safetensors(run.source.checkpoint);
  run.quantization_step = stored_quantization_step(run.checkpoint, run.source.checkpoint);
  if (const std::string why = why_none_updates(run.training.graph, run.quantization_step); !why.empty())
    fail("the run in ", path, " ", why);
  put_back(run.checkpoint, take_trained(run.checkpoint));
  return run;
}

/// From a run to the same with other statistics.
class Reestimation {
 public:
  Reestimation(const ReestimationRequest& request, FinishedRun run, datasets::Splits data, const RunDirectory& out,
               RunObserver& observer)
      : request_(request), out_(out), observer_(observer), run_(std::move(run)), data_(std::move(data)) {}

  Reestimated run() {
    Reestimated result;
    require_no_stop();
    warn_of_files(data_, observer_);
    const JudgingPart part = judging_part(data_);
    result.before = evaluate_on(part.pictures);
    observer_.say(concat(printable(run_.source.settings.model), " on ", run_.source.settings.dataset, ": the run ",
                         printable(request_.run), " has ", part.name, " accuracy ", percent(result.before.accuracy()),
                         " with its moving averages"));
    if (const std::string warning =
            warning_of_one_answer(result.before, part.pictures, "the network", run_.source.settings.dataset);
        !warning.empty())
      observer_.warn(warning);
    put_estimated(run_.checkpoint, estimated());
    if (data_.validation) result.after.validation = evaluate_on(*data_.validation);
    result.after.test = evaluate_on(data_.test);
    require_no_stop();
    write(result.after);
    result.seconds = std::chrono::duration<double>(Clock::now() - started_).count();
    return result;
  }

 private:
  void require_no_stop() {
    if (observer_.wants_to_stop()) throw Stopped();
  }

  Evaluation evaluate_on(const datasets::Dataset& pictures) {
    Session session(run_.evaluation.graph);
    session.restore(run_.checkpoint, Session::Restore::kVariables, run_.source.checkpoint);
    return evaluate(session, run_.evaluation, pictures);
  }

  NamedTensors estimated() {
    const TrainedNetwork network{
        .training = run_.training, .checkpoint = run_.checkpoint, .quantization_step = run_.quantization_step};
    const EstimateOptions options{.batches = request_.reestimate.batches,
                                  .seed = request_.reestimate.seed,
                                  .augment = augmentation(run_.source.settings)};
    batches_ = batches_to_see(network, data_.train, options);
    const std::size_t norms = updating_batch_norms(run_.training.graph, run_.quantization_step).size();
    observer_.say(concat(counted(norms, "batch norm"), ", ", counted(batches_, "batch"), " of ",
                         run_.training.images.shape()[0], " training pictures",
                         batches_ < options.batches ? " (all there are)" : ""));
    return estimate_statistics(network, data_.train, options, observer_);
  }

  void write(const Accuracies& after) {
    if (is_or_lies_in(out_.path(), run_.source.directory.path())) {
      write_safetensors(out_.checkpoint(), run_.checkpoint);
      write_json(out_.summary(), summary(after));
      record_command(out_);
      return;
    }
    out_.clear();
    try {
      write_files(after);
    } catch (...) {
      out_.clear();
      throw;
    }
  }

  /// config.json comes last: a directory without it is no run.
  void write_files(const Accuracies& after) {
    const RunDirectory& from = run_.source.directory;
    copy_if_there(from.bits(), out_.bits());
    copy_if_there(from.init_checkpoint(), out_.init_checkpoint());
    copy_if_there(from.model_graph(), out_.model_graph());
    write_skipped_files(data_, out_);
    copy_if_there(from.train_graph(), out_.train_graph());
    copy_if_there(from.eval_graph(), out_.eval_graph());
    write_safetensors(out_.checkpoint(), run_.checkpoint);
    write_json(out_.summary(), summary(after));
    // Behind those that made the run.
    copy_if_there(from.commands(), out_.commands());
    record_command(out_);
    Json config = read_json(from.config());
    if (!run_.source.settings.rewrite.bits_config.empty()) config["bits_config"] = out_.bits().string();
    hand_on_class_weights(from, out_, config);
    write_json(out_.config(), config);
  }

  Json summary(const Accuracies& after) const {
    Json json = read_json(run_.source.directory.summary());
    after.put_into(json);
    Json made = settings_to_json(request_.reestimate);
    made["batches"] = batches_;
    made["run"] = request_.run;
    made["threads"] = thread_count();
    made["machine"] = machine_to_json();
    json["reestimation"] = made;
    return json;
  }

  using Clock = std::chrono::steady_clock;

  const ReestimationRequest& request_;
  const RunDirectory& out_;
  RunObserver& observer_;
  FinishedRun run_;
  const datasets::Splits data_;
  std::int64_t batches_ = 0;
  const Clock::time_point started_ = Clock::now();
};

}  // namespace

Reestimated reestimate(const ReestimationRequest& request, const RunDirectory& out, RunObserver& observer) {
  set_thread_count(request.threads == 0 ? default_thread_count() : request.threads);
  FinishedRun run = read_finished_run(request.run);
  datasets::Splits data = load_data(run.source, {}, request.data_dir);
  require_fit(run.evaluation, data.train, run.source.directory.eval_graph().string());
  return Reestimation(request, std::move(run), std::move(data), out, observer).run();
}

}  // namespace miniqat::training
