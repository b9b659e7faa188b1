#include "training/train/run_life.h"

#include <algorithm>
#include <cmath>

#include "core/files/files.h"
#include "core/graph/graph_json.h"
#include "core/platform/interruption.h"
#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/quote.h"
#include "training/calibrate/batch_norm_statistics.h"
#include "training/figures.h"
#include "training/model_source.h"
#include "training/run/data_of_run.h"
#include "training/run/made_by.h"
#include "training/run/metrics_log.h"
#include "training/run/same_data.h"
#include "training/settings/optimizers.h"
#include "training/settings/settings.h"
#include "training/train/shared_state.h"

namespace miniqat::training {
namespace {

/// " at step 30 (--quant-delay), the run ended at step 12": the first delay after those that have `passed`.
std::string unreached(const std::vector<std::int64_t>& delays, std::int64_t passed, std::int64_t steps,
                      const std::string& flag, std::optional<std::int64_t> asked) {
  const std::int64_t next = delays[static_cast<std::size_t>(passed)];
  return concat(" at step ", next, " (", asked == next ? flag : "the graph's delay", "), the run ended at step ",
                steps);
}

}  // namespace

std::string clock_text(double seconds) {
  const auto whole = std::lround(std::clamp(seconds, 0.0, 1e8));
  if (whole >= 3600) return formatted("%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
  return formatted("%ld:%02ld", whole / 60, whole % 60);
}

void Pace::begin(std::int64_t first, std::int64_t total) {
  first_ = first;
  total_ = total;
  resume();
}

double Pace::seconds() const {
  return before_pause_ + (running_ ? std::chrono::duration<double>(Clock::now() - started_).count() : 0);
}

double Pace::images_per_second() const {
  const double elapsed = seconds();
  return elapsed > 0 ? static_cast<double>(done_ * images_per_step_) / elapsed : 0;
}

double Pace::seconds_left() const {
  return done_ > 0 ? seconds() / static_cast<double>(done_) * static_cast<double>(total_ - first_ - done_) : 0;
}

void Pace::pause() {
  before_pause_ = seconds();
  running_ = false;
}

void Pace::resume() {
  started_ = Clock::now();
  running_ = true;
}

RunLife::RunLife(TrainingTask& task, const RunDirectory& run, const TrainExtras& extras, RunObserver& observer,
                 EvaluationWatch& watch)
    : task_(task),
      run_(run),
      extras_(extras),
      observer_(observer),
      save_interval_(task.settings.save_every),
      watch_(watch),
      pace_(task.settings.batch_size) {}

/// A run that has metrics has had a checkpoint as well: one that is missing then was lost otherwise, and is missed.
bool RunLife::killed_before_its_first_checkpoint() const {
  return !is_there(run_.checkpoint()) && !run_.metrics().exists();
}

void RunLife::share() {
  // Behind the first step the checkpoint has all ranges.
  const Json start = task_.session.step() == 0 ? json_if_there(run_.init_checkpoint()) : Json();
  const Json own = {{"complete", is_complete()},
                    {"reported_step", reported_step_},
                    {"restored", start.is_null() ? Json::array() : start["restored"]}};
  const Json of_leader = Json::parse(task_.ranks.share(own.dump()));
  complete_ = of_leader["complete"].get<bool>();
  reported_step_ = of_leader["reported_step"].get<std::int64_t>();
  restored_ = of_leader["restored"].get<std::set<std::string>>();
  share_state(task_.session, task_.ranks);
}

bool RunLife::is_complete() const {
  if (complete_) return *complete_;
  const Json summary = json_if_there(run_.summary());
  return task_.session.step() >= task_.total_steps && summary.is_object() && summary.value("complete", false) &&
         summary.value("steps", std::int64_t{-1}) == task_.session.step();
}

/// A model file may have been edited since the run began, a named model be another in another version of the program. A
/// longer run differs only in the steps over which a dampening grows.
void RunLife::require_same_graph() const {
  Graph recorded = read_network(run_.train_graph());
  const std::string now = graph_to_json(task_.training.graph);
  if (graph_to_json(recorded) != now && task_.dampens()) task_.dampen_weights(recorded);
  if (graph_to_json(recorded) != now)
    fail(
        run_.train_graph().string(), " is not what ", task_.settings.model,
        " gives now: the model has changed since the run began, or an earlier version of miniqat rewrote it otherwise");
}

void RunLife::begin() {
  if (extras_.stop_at && *extras_.stop_at > task_.total_steps)
    throw UsageError(concat("--stop-at ", *extras_.stop_at, ": the run ends at step ", task_.total_steps, " already"));
  if (extras_.resume && !killed_before_its_first_checkpoint())
    go_on();
  else
    begin_anew();
  const std::string note = scaling_note(task_.settings, task_.steps_per_epoch);
  if (!note.empty()) observer_.say(note);
  share();
}

void RunLife::go_on() {
  require_same_graph();
  require_same_data(run_, task_.settings.dataset, task_.data);
  restore();
  const std::int64_t step = task_.session.step();
  if (extras_.stop_at && *extras_.stop_at <= step)
    throw UsageError(concat("--stop-at ", *extras_.stop_at, ": the run in ", run_.path().string(), " has done step ",
                            step, " already"));
  const std::int64_t former = task_.length_of(extras_.begun);
  if (task_.total_steps < former)
    throw UsageError(concat("a run can be made longer, not shorter: the run in ", run_.path().string(), " has ",
                            counted(former, "step"), ", not ", task_.total_steps));
  note_saved();
  seconds_before_ = number_at(json_if_there(run_.summary()), "seconds").value_or(0);
  const MetricsLog metrics = run_.metrics();
  metrics.forget_after(step);
  if (const Json line = metrics.find(step, "loss"); !line.is_null()) last_loss_ = line["loss"].get<double>();
  if (!metrics.find(step, concat(judging_part(task_.data).name, "_loss")).is_null()) reported_step_ = step;
  if (task_.total_steps > former) note_longer(former);
  if (task_.settings.gradients != extras_.begun.gradients) note_gradients();
  write_skipped_files(task_.data, run_);
  if (settings_to_json(task_.settings) != settings_to_json(extras_.begun)) write_config();
  // They have the length of the run. Even if config.json has it already: the run may have died in between.
  if (task_.dampens()) write_graphs();
  if (step < task_.total_steps) write_json(run_.machine(), machine_to_json());
  if (!is_complete()) record_command(run_);
}

/// Estimated statistics are for the end of a run: one that has become longer goes on as if there had been none.
void RunLife::restore() {
  const std::string source = run_.checkpoint().string();
  Safetensors content = read_safetensors(run_.checkpoint());
  trained_ = take_trained(content);
  task_.session.restore(content, Session::Restore::kExact, source);
  if (trained_.empty() || task_.session.step() >= task_.total_steps) return;
  put_back(content, trained_);
  trained_.clear();
  task_.session.restore(content, Session::Restore::kExact, source);
}

/// Without what a graph that was rewritten before decides otherwise: nobody asked for that, it is at its default, and
/// summary.json and the graphs say what it is.
void RunLife::write_config() const {
  Json config = settings_to_json(task_.settings);
  // The run's own copy, which a config.json taken back by --config finds when the original is gone.
  if (!task_.settings.rewrite.bits_config.empty()) config["bits_config"] = run_.bits().string();
  if (has_class_weights_file(task_.settings)) config["class_weights"] = run_.class_weights().string();
  for (const quantize::SettingConflict& conflict : task_.report.conflicts) config.erase(conflict.setting);
  write_json(run_.config(), config);
}

/// Whenever the run dies in here, its summary does not say that the longer run is complete.
void RunLife::note_longer(std::int64_t former) const {
  if (Json summary = json_if_there(run_.summary()); summary.is_object()) {
    summary["complete"] = false;
    write_json(run_.summary(), summary);
  }
  const Json line = {{"step", task_.session.step()}, {"steps_before", former}, {"steps", task_.total_steps}};
  if (run_.metrics().find(task_.session.step(), "steps_before") != line) run_.metrics().append(line);
  observer_.say(concat("The run had ", counted(former, "step"), " and has ", task_.total_steps,
                       " now; learning rates go on as in a run of that length."));
}

void RunLife::note_gradients() const {
  const auto name_of = [](GradientType type) { return names_of(type)[static_cast<std::size_t>(type)]; };
  const std::string_view before = name_of(extras_.begun.gradients), now = name_of(task_.settings.gradients);
  const std::int64_t step = task_.session.step();
  if (step >= task_.total_steps)
    throw UsageError(concat("--gradients ", now, ": the run in ", run_.path().string(),
                            " has done all of its steps, with gradients in ", before));
  const Json line = {{"step", step}, {"gradients_before", before}, {"gradients", now}};
  if (run_.metrics().find(step, "gradients_before") != line) run_.metrics().append(line);
  observer_.say(concat("Gradients were rounded to ", before, " and are ", now, " after step ", step, "."));
}

void RunLife::begin_anew() {
  std::optional<InitCheckpoint> start;
  const TrainSettings& settings = task_.settings;
  // A model that comes with its weights starts from them.
  const bool has_weights = is_onnx_file(settings.model) && settings.init_checkpoint.empty();
  if (const std::string& from = has_weights ? settings.model : settings.init_checkpoint; !from.empty()) {
    // The others have its variables then, as those of a checkpoint.
    if (task_.ranks.leads()) start = start_from(from, task_.session, settings.output);
    if (start && !start->note.empty()) observer_.warn(start->note);
  }
  if (!extras_.resume) run_.clear();
  try {
    write_first_files(start);
  } catch (...) {
    // A run that has not begun leaves nothing behind.
    if (!extras_.resume) run_.clear();
    throw;
  }
  for (const std::string& note : extras_.notes)
    if (!note.empty()) observer_.warn(note);
}

/// The files that config.json needs come before it; a run that is killed after it can be resumed.
void RunLife::write_first_files(const std::optional<InitCheckpoint>& start) {
  if (!task_.settings.rewrite.layer_bits.empty())
    write_json(run_.bits(), quantize::layer_bits_to_json(task_.settings.rewrite.layer_bits));
  write_class_weights(task_.class_weights, task_.data.train, run_);
  if (!task_.model_graph.empty()) write_file_atomically(run_.model_graph(), task_.model_graph);
  write_json(run_.dataset(), data_to_json(task_.data, task_.settings.dataset));
  write_skipped_files(task_.data, run_);
  if (extras_.first_files) extras_.first_files(run_);
  write_config();
  write_json(run_.machine(), machine_to_json());
  record_command(run_);
  if (start) {
    observer_.say(start->text(extras_.all_names));
    write_json(run_.init_checkpoint(), start->json());
  }
  write_graphs();
  save();
}

void RunLife::write_graphs() const {
  write_graph(run_.train_graph(), task_.training.graph);
  write_graph(run_.eval_graph(), task_.evaluation.graph);
}

bool RunLife::judges_at_start() const {
  const std::int64_t step = task_.session.step();
  const bool epoch_ended = step > 0 && step % task_.steps_per_epoch == 0;
  return epoch_ended && step < task_.total_steps && reported_step_ != step;
}

bool RunLife::judges_without_a_step() const {
  return judges_at_start() || (task_.session.step() >= task_.total_steps && trained_.empty());
}

void RunLife::start() {
  pace_.begin(task_.session.step(), task_.total_steps);
  if (!judges_at_start()) return;
  pace_.pause();
  report_accuracy(judge());
  pace_.resume();
}

void RunLife::log_step() const {
  const std::int64_t step = task_.session.step();
  Json line = {{"step", step},
               {"epoch", task_.epochs_done()},
               {"loss", *last_loss_},
               {"learning_rate", task_.optimizer->learning_rate(step)},
               {"images_per_second", pace_.images_per_second()}};
  const std::int64_t every = task_.settings.log_every;
  if (!task_.quantization.is_float() && step % every == 0 && has_ranges(step / every))
    line["ranges"] = ranges_json(task_.training.graph, task_.session.variables());
  run_.metrics().append(line);
}

StepReport RunLife::report_of_step(double loss) {
  const std::int64_t step = task_.session.step();
  pace_.step(step);
  return {.step = step,
          .total_steps = task_.total_steps,
          .epoch = task_.epochs_done(),
          .loss = loss,
          .images_per_second = pace_.images_per_second(),
          .seconds_left = pace_.seconds_left()};
}

void RunLife::note_step(const TrainedStep& step) {
  last_loss_ = step.loss;
  if (step.step % task_.settings.log_every == 0 || step.step == task_.total_steps) log_step();
}

void RunLife::after_step(const TrainedStep& step) {
  if (step.is_last) return;
  if (!step.ends_epoch && !save_interval_.is_due(step.step, saved_step_, saved_at_)) return;
  pace_.pause();
  save();
  if (step.ends_epoch) report_accuracy(judge());
  pace_.resume();
}

/// With the number of the step that was not done, so that --resume drops the line.
void RunLife::note_failure(const std::string& text) const {
  try {
    run_.metrics().append({{"step", task_.session.step() + 1}, {"failure", text}});
  } catch (const Error&) {
  }
}

void RunLife::save() {
  // The leader's is the run's.
  if (!task_.ranks.leads()) return note_saved();
  Safetensors content = task_.session.checkpoint();
  keep_trained(content, trained_);
  run_.metrics().sync();
  write_safetensors(run_.checkpoint(), content);
  note_saved();
}

void RunLife::note_saved() {
  saved_step_ = task_.session.step();
  saved_at_ = SaveInterval::Clock::now();
}

Evaluation RunLife::judge() { return task_.evaluate_now(judging_part(task_.data).pictures); }

void RunLife::report_accuracy(const Evaluation& judged) {
  const std::string part = judging_part(task_.data).name;
  observer_.say(formatted("epoch %5.2f  %s %s  %s loss %.4f", task_.epochs_done(), part.c_str(),
                          judged.text(false).c_str(), part.c_str(), judged.loss) +
                (last_loss_ ? formatted("  train loss %.4f", *last_loss_) : ""));
  watch_.after_evaluation(judged);
  if (reported_step_ == task_.session.step()) return;
  Json line = {{"step", task_.session.step()}, {"epoch", task_.epochs_done()}};
  for (const Measure& one : judged.measures)
    if (!one.is_quiet) line[concat(part, "_", one.kind->key)] = one.value;
  line[part + "_loss"] = judged.loss;
  if (!task_.quantization.is_float()) line["ranges"] = ranges_json(task_.training.graph, task_.session.variables());
  run_.metrics().append(line);
  reported_step_ = task_.session.step();
}

/// The speed at the last step, as it was logged where another process took that step.
double RunLife::images_per_second() const {
  if (pace_.images_per_second() > 0) return pace_.images_per_second();
  const Json line = run_.metrics().find(task_.session.step(), "images_per_second");
  return line.is_null() ? 0 : line["images_per_second"].get<double>();
}

/// A delay that never passed makes another run than its settings say. Layers of a graph file may have delays of their
/// own, of which the run has reached some.
void RunLife::warn_of_delays() const {
  const std::int64_t steps = task_.session.quantization_step();
  const quantize::PassedDelays passed = task_.delays.passed(steps);
  const quantize::QuantizationDelays& delays = task_.delays;
  const quantize::RewriteOptions& rewrite = task_.settings.rewrite;
  if (passed.quantization < static_cast<std::int64_t>(delays.quantization.size()))
    observer_.warn(
        concat("warning: ",
               passed.quantization == 0 ? "quantization was to begin" : "some quantizers were to begin later, the next",
               unreached(delays.quantization, passed.quantization, steps, "--quant-delay", rewrite.quant_delay),
               ": no step was trained with ", passed.quantization == 0 ? "it" : "them",
               ", and evaluation quantizes a network that was never trained for it"));
  if (passed.freeze < static_cast<std::int64_t>(delays.freeze.size()))
    observer_.warn(
        concat("warning: ",
               passed.freeze == 0 ? "batch norms were to freeze" : "some batch norms were to freeze later, the next",
               unreached(delays.freeze, passed.freeze, steps, "--freeze-bn-delay", rewrite.freeze_bn_delay)));
}

/// With a validation part the test pictures are looked at once, at the end of the run.
PartResults RunLife::final_accuracies(bool& complete) {
  PartResults accuracies;
  try {
    const Evaluation judged = judge();
    report_accuracy(judged);
    if (!task_.data.validation) return {.test = judged};
    accuracies.validation = judged;
    if (complete) accuracies.test = task_.evaluate_now(task_.data.test);
  } catch (const Interruption&) {
    complete = false;
  }
  return accuracies;
}

/// After the last step. A checkpoint of that step without estimates is of a process that was stopped in between.
void RunLife::reestimate() {
  Safetensors content = task_.session.checkpoint();
  const TrainedNetwork network{
      .training = task_.training, .checkpoint = content, .quantization_step = task_.session.quantization_step()};
  const EstimateOptions options{
      .batches = task_.batches_to_estimate(), .seed = task_.settings.seed, .augment = augmentation(task_.settings)};
  for (const auto& [name, value] : estimate_statistics(network, task_.data.train, options, observer_)) {
    trained_.emplace(name, content.tensors.at(name));
    task_.session.set_variable(name, value);
  }
  const std::size_t norms = updating_batch_norms(task_.training.graph, network.quantization_step).size();
  observer_.say(concat("re-estimated the statistics of ", counted(norms, "batch norm"), " from ",
                       counted(batches_to_see(network, task_.data.train, options), "batch")));
}

/// False where somebody wants the run to stop before it has them.
bool RunLife::has_its_statistics() {
  if (!trained_.empty()) return true;
  try {
    reestimate();
    return true;
  } catch (const Stopped&) {
  } catch (const Interruption&) {
  }
  return false;
}

/// The leader makes them, so that a signal to another rank cannot part the ranks here.
bool RunLife::has_shared_statistics() {
  const bool has = task_.ranks.share_answer(task_.ranks.leads() && has_its_statistics());
  share_state(task_.session, task_.ranks);
  return has;
}

void RunLife::finish() {
  pace_.pause();
  bool complete = task_.session.step() >= task_.total_steps;
  if (complete && task_.batches_to_estimate() > 0) complete = has_shared_statistics();
  save();
  const PartResults accuracies = final_accuracies(complete);
  write_summary(accuracies, complete);
  observer_.say(complete ? concat("done in ", clock_text(pace_.seconds()), ": ", accuracies.text())
                         : concat("stopped after step ", task_.session.step(), " of ", task_.total_steps,
                                  "; go on with: ", printable(way_on(run_, extras_))));
  if (complete) warn_of_delays();
}

void RunLife::write_summary(const PartResults& accuracies, bool complete) const {
  const Json layer_bits = task_.settings.float_only || task_.settings.rewrite.layer_bits.empty()
                              ? Json(nullptr)
                              : quantize::layer_bits_to_json(task_.settings.rewrite.layer_bits);
  Json summary = {{"model", task_.settings.model},     {"dataset", task_.settings.dataset},
                  {"task", task_.training.task->name}, {"quantization", task_.quantization.label()},
                  {"bits", task_.quantization.bits()}, {"layer_bits", layer_bits},
                  {"steps", task_.session.step()},     {"complete", complete}};
  accuracies.put_into(summary, *task_.training.task);
  summary.update(Json{{"train_loss", last_loss_ ? Json(*last_loss_) : Json(nullptr)},
                      {"images_per_second", images_per_second()},
                      {"seconds", seconds_before_ + pace_.seconds()},
                      {"peak_memory_mb", peak_megabytes()},
                      {"seed", task_.settings.seed},
                      {"threads", task_.settings.threads},
                      {"machine", machine_to_json()}});
  summary.update(data_to_json(task_.data, task_.settings.dataset));
  write_json(run_.summary(), summary);
}

}  // namespace miniqat::training
