#include "training/calibrate/reestimation.h"

#include <chrono>

#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/threads/parallel.h"
#include "training/calibrate/batch_norm_statistics.h"
#include "training/evaluate/part_results.h"
#include "training/figures.h"
#include "training/run/data_of_run.h"
#include "training/run/made_by.h"
#include "training/run/own_copies.h"
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
  const Task& task = task_of(run.source.settings);
  run.training = find_classifier(read_network(directory.train_graph()), directory.train_graph().string(), task);
  run.evaluation = find_classifier(read_network(directory.eval_graph()), directory.eval_graph().string(), task);
  run.checkpoint = read_safetensors(run.source.checkpoint);
  run.quantization_step = stored_quantization_step(run.checkpoint, run.source.checkpoint);
  if (const std::string why = why_none_updates(run.training.graph, run.quantization_step); !why.empty())
    fail("the run in ", path, " ", why);
  put_back(run.checkpoint, take_trained(run.checkpoint));
  return run;
}

/// What is written into the run's summary.json.
Json summary_of(const FinishedRun& run, const ReestimationRequest& request, std::int64_t batches,
                const PartResults& after) {
  Json json = read_json(run.source.directory.summary());
  after.put_into(json, *run.evaluation.task);
  Json made = settings_to_json(request.reestimate);
  made["batches"] = batches;
  made["run"] = request.run;
  made["threads"] = thread_count();
  made["machine"] = machine_to_json();
  json["reestimation"] = made;
  return json;
}

/// `out`: the run's own directory, or one that gets a whole run.
void write_run(const FinishedRun& run, const datasets::Splits& data, const Json& summary, const RunDirectory& out) {
  const RunDirectory& from = run.source.directory;
  if (is_or_lies_in(out.path(), from.path())) {
    write_safetensors(out.checkpoint(), run.checkpoint);
    write_json(out.summary(), summary);
    record_command(out);
    return;
  }
  out.write_anew([&] {
    write_skipped_files(data, out);
    // Behind those that made the run.
    copy_if_there(from.commands(), out.commands());
    record_command(out);
    hand_on_run(from, out, run.checkpoint, summary);
  });
}

}  // namespace

Reestimated reestimate(const ReestimationRequest& request, const RunDirectory& out, RunObserver& observer) {
  set_thread_count(request.threads == 0 ? default_thread_count() : request.threads);
  FinishedRun run = read_finished_run(request.run);
  const TrainSettings& settings = run.source.settings;
  const datasets::Splits data = load_data(run.source, {}, request.data_dir);
  require_fit(run.evaluation, data.train, run.source.directory.eval_graph().string());
  if (!is_or_lies_in(out.path(), run.source.directory.path())) require_data_elsewhere(settings.dataset, out.path());
  const auto started = std::chrono::steady_clock::now();
  const auto evaluate_on = [&](const datasets::Dataset& pictures) {
    Session session(run.evaluation.graph, {.arithmetic = settings.arithmetic});
    session.restore(run.checkpoint, Session::Restore::kVariables, run.source.checkpoint);
    return evaluate(session, run.evaluation, pictures);
  };
  observer.require_no_stop();
  warn_of_files(data, observer);
  const JudgingPart part = judging_part(data);
  Reestimated result{.before = evaluate_on(part.pictures), .after = {}};
  observer.say(concat(printable(settings.model), " on ", settings.dataset, ": the run ", printable(request.run),
                      " has ", part.name, " ", result.before.text(false), " with its moving averages"));
  if (const std::string warning = warning_of_one_answer(result.before, part.pictures, "the network", settings.dataset);
      !warning.empty())
    observer.warn(warning);
  const TrainedNetwork network{
      .training = run.training, .checkpoint = run.checkpoint, .quantization_step = run.quantization_step};
  const EstimateOptions options{
      .batches = request.reestimate.batches, .seed = request.reestimate.seed, .augment = augmentation(settings)};
  const std::int64_t batches = batches_to_see(network, data.train, options);
  const std::size_t norms = updating_batch_norms(run.training.graph, run.quantization_step).size();
  observer.say(concat(counted(norms, "batch norm"), ", ", counted(batches, "batch"), " of ",
                      run.training.images.shape()[0], " training ", data.train.noun(), "s",
                      batches < options.batches ? " (all there are)" : ""));
  put_estimated(run.checkpoint, estimate_statistics(network, data.train, options, observer));
  if (data.validation) result.after.validation = evaluate_on(*data.validation);
  result.after.test = evaluate_on(data.test);
  observer.require_no_stop();
  write_run(run, data, summary_of(run, request, batches, result.after), out);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return result;
}

}  // namespace miniqat::training
