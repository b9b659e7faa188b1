#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "bench/roofline.h"
#include "cli/commands.h"
#include "cli/display/tables.h"
#include "cli/display/terminal.h"
#include "cli/flags/command_line.h"
#include "cli/flags/setting_flags.h"
#include "cli/model_start.h"
#include "cli/notes.h"
#include "core/engine/profile.h"
#include "core/text/classic.h"
#include "core/text/quote.h"
#include "core/threads/parallel.h"
#include "datasets/class_counts.h"
#include "datasets/known_datasets.h"
#include "integer/format/model_file.h"
#include "training/evaluate/answers.h"
#include "training/evaluate/evaluator.h"
#include "training/evaluate/part_results.h"
#include "training/model_source.h"
#include "training/run/asked_pictures.h"
#include "training/run/data_of_run.h"
#include "training/run/integer_source.h"
#include "training/run/run_source.h"
#include "training/run/same_data.h"
#include "training/settings/settings.h"
#include "training/settings/settings_of_data.h"
#include "training/settings/train_settings.h"
#include "training/settings/usage_error.h"
#include "training/task/metrics.h"
#include "training/verify/verifier.h"

namespace miniqat::cli {

using namespace training;

namespace {

struct EvalArguments {
  std::string run;
  std::string model;
  std::string dataset;
  std::string data_dir;
  std::string checkpoint;
  std::string split = "test";
  std::int64_t limit = 0;
  int threads = 0;
  bool skip_broken = false;
  bool integer = false;
  bool by_class = false;
  bool wrong = false;
  bool json = false;
  bool profile = false;
  std::optional<double> threshold;
};

/// For --model; a run has its own settings, and the file knows how numbers are standardised.
using ReadingFlags = SettingFlags<TrainSettings>;

FlagChanges reading_changes() {
  return {.only = {kReadingSettings.begin(), kReadingSettings.end()},
          .groups = {{.heading = "Own files of --model",
                      .first = {},
                      .more = {kReadingSettings.begin(), kReadingSettings.end()}}}};
}

/// What is evaluated, in words.
struct Subject {
  std::string model;
  std::string quantization;
  /// {"weights": 8, "activations": 8}; null for a float network.
  Json bits;
  bool integer = false;
};

/// What came of it.
struct EvalResult {
  Evaluation evaluation;
  /// The answers by class; none where the task is another.
  std::optional<Answers> answers = {};

  EvalResult(const Task& task, const datasets::Dataset& pictures) {
    if (&task == &classification()) answers.emplace(pictures);
  }
  OnLogits listener() {
    return [this](std::int64_t i, std::span<const float> row) {
      if (answers) answers->add(i, row);
    };
  }
};

EvalResult evaluate_in_integers(const integer::Model& model, const Task& task, const std::string& source,
                                const datasets::Dataset& pictures) {
  require_fit(model, task, pictures, source);
  EvalResult result(task, pictures);
  result.evaluation = evaluate_integers(model, task, pictures, result.listener());
  return result;
}

EvalResult evaluate_simulation(const RunSource& run, const datasets::Dataset& pictures, Profile* profile) {
  EvaluationSession simulation(run, pictures);
  EvalResult result(*simulation.classifier.task, pictures);
  result.evaluation = evaluate(simulation.session, simulation.classifier, pictures, result.listener(), profile);
  return result;
}

void refuse_of_other_tasks(const EvalArguments& arguments, const Task& task) {
  if (arguments.threshold && task.finding == nullptr)
    throw UsageError(concat("--threshold is for anomalies and labels; the task is ", task.name));
  if (arguments.threshold && (*arguments.threshold < 0 || (&task == &multilabel() && *arguments.threshold > 1)))
    throw UsageError(concat("--threshold is ", &task == &multilabel() ? "a probability, 0 to 1" : "an error, 0 or more",
                            "; got ", exact(*arguments.threshold)));
  if (&task == &classification() || (!arguments.by_class && !arguments.wrong)) return;
  throw UsageError(concat(arguments.by_class ? "--by-class" : "--wrong", " is for classes; the task is ", task.name));
}

std::string finding_name(const datasets::Dataset& data, std::size_t k) {
  return data.targets.defined() ? target_name(data, k) : "anomaly";
}

/// What --threshold finds; a false positive, as any other is, in data that do not say what is there.
Detections found_in(const Finding& one, double threshold) {
  const std::vector<std::int32_t> none(one.scores.size());
  return detections_at(threshold, one.scores, one.labels.empty() ? none : one.labels);
}

Json detections_json(const EvalArguments& arguments, const datasets::Dataset& data, const Evaluation& evaluation) {
  Json list = Json::array();
  for (std::size_t k = 0; k < evaluation.findings.size(); ++k) {
    const Finding& one = evaluation.findings[k];
    const Detections found = found_in(one, *arguments.threshold);
    const auto known = [&](Json number) { return one.labels.empty() ? Json(nullptr) : number; };
    list.push_back({{"label", finding_name(data, k)},
                    {"found", found.true_positives + found.false_positives},
                    {"true_positives", known(found.true_positives)},
                    {"false_positives", known(found.false_positives)},
                    {"false_negatives", known(found.false_negatives)},
                    {"true_negatives", known(found.true_negatives)},
                    {"precision", known(field_to_json(found.precision()))},
                    {"recall", known(field_to_json(found.recall()))},
                    {"f1", known(field_to_json(found.f1()))}});
  }
  return list;
}

/// A line for each label, or for the anomalies.
std::string detection_table(const EvalArguments& arguments, const datasets::Dataset& data,
                            const Evaluation& evaluation) {
  const auto share = [](const std::optional<double>& value) { return value ? percent(*value) : "-"; };
  std::vector<TableLine> lines = {{"label", "precision", "recall", "F1", "there", "found", "of these right"}};
  for (std::size_t k = 0; k < evaluation.findings.size(); ++k) {
    const Finding& one = evaluation.findings[k];
    const Detections found = found_in(one, *arguments.threshold);
    const auto known = [&](std::string text) { return one.labels.empty() ? "-" : text; };
    lines.push_back({name_cell(finding_name(data, k)), known(share(found.precision())), known(share(found.recall())),
                     known(found.f1() ? formatted("%.4f", *found.f1()) : "-"),
                     known(std::to_string(found.true_positives + found.false_negatives)),
                     std::to_string(found.true_positives + found.false_positives),
                     known(std::to_string(found.true_positives))});
  }
  return concat("found: ", data.targets.defined() ? "labels of a probability" : "errors", " of at least ",
                exact(*arguments.threshold), "\n", aligned(lines, 1));
}

/// For each number, in its own unit.
Json targets_json(const Evaluation& evaluation, const datasets::Dataset& data) {
  Json list = Json::array();
  for (std::size_t k = 0; k < evaluation.by_target.size(); ++k) {
    const TargetErrors& one = evaluation.by_target[k];
    list.push_back({{"target", target_name(data, k)},
                    {"r2", field_to_json(one.r2)},
                    {"mae", one.mean_absolute},
                    {"mse", one.mean_squared}});
  }
  return list;
}

void print_evaluation_json(const EvalArguments& arguments, const Subject& subject, const datasets::Dataset& split,
                           const EvalResult& result) {
  const Evaluation& evaluation = result.evaluation;
  Json json = {{"model", subject.model},         {"dataset", split.name},
               {"split", arguments.split},       {"quantization", subject.quantization},
               {"bits", subject.bits},           {"integer", subject.integer},
               {"examples", evaluation.examples}};
  if (result.answers) json["correct"] = evaluation.correct();
  for (const Measure& one : evaluation.measures) json[one.kind->key] = one.value;
  if (result.answers && result.answers->top_five()) json["top5_accuracy"] = *result.answers->top_five();
  json["loss"] = evaluation.loss;
  if (evaluation.by_target.size() > 1) json["targets"] = targets_json(evaluation, split);
  if (arguments.threshold) {
    json["threshold"] = *arguments.threshold;
    json["found"] = detections_json(arguments, split, evaluation);
  }
  if (arguments.by_class) {
    json["classes"] = result.answers->classes_json();
    json["confusion"] = result.answers->confusion_json();
  }
  if (arguments.wrong) json["wrong"] = result.answers->wrong_json();
  std::printf("%s\n", json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

/// Where one class has almost all answers. `dataset`: its name or path.
void warn_of_one_answer(const EvalResult& result, const Subject& subject, const datasets::Dataset& pictures,
                        const std::string& dataset) {
  print_note(warning_of_one_answer(result.evaluation, pictures, printable(subject.model), dataset));
}

/// `split`: all its pictures, also where only the first were evaluated.
void print(const EvalArguments& arguments, const Subject& subject, const datasets::Dataset& split,
           const EvalResult& result) {
  if (arguments.json) {
    print_evaluation_json(arguments, subject, split, result);
    return;
  }
  const Evaluation& evaluation = result.evaluation;
  const std::string part = evaluation.examples < split.size() ? concat("first ", evaluation.examples, " of ") : "";
  const std::optional<double> top_five = result.answers ? result.answers->top_five() : std::nullopt;
  std::printf("%s %s%s on %s (%s%s): %s%s, loss %.4f\n", printable(subject.model).c_str(), subject.quantization.c_str(),
              subject.integer ? " integers" : "", split.name.c_str(), part.c_str(), arguments.split.c_str(),
              evaluation.text(true).c_str(), top_five ? concat(", top-5 ", percent(*top_five)).c_str() : "",
              evaluation.loss);
  if (evaluation.by_target.size() > 1) std::printf("\n%s", target_table(evaluation, split).c_str());
  if (arguments.threshold) std::printf("\n%s", detection_table(arguments, split, evaluation).c_str());
  if (arguments.by_class) std::printf("\n%s", class_table(*result.answers).c_str());
  if (arguments.wrong) std::printf("\n%s", wrong_table(*result.answers).c_str());
}

datasets::Dataset chosen_pictures(const EvalArguments& arguments, const datasets::Dataset& split) {
  return arguments.limit > 0 ? first_recordings(split, arguments.limit) : split;
}

void evaluate_run(const EvalArguments& arguments) {
  const RunSource run =
      with_skip_broken(open_run(arguments.run, arguments.checkpoint), arguments.skip_broken, arguments.dataset);
  refuse_of_other_tasks(arguments, task_of(run.settings));
  require_split(run, arguments.split, arguments.dataset);
  const datasets::Splits data = load_data(run, arguments.dataset, arguments.data_dir);
  const datasets::Dataset& split = split_of(data, arguments.split);
  const datasets::Dataset pictures = chosen_pictures(arguments, split);
  const quantize::Quantization quantization = quantization_of(run.directory);
  Subject subject{.model = run.settings.model,
                  .quantization = quantization.label(),
                  .bits = quantization.bits(),
                  .integer = arguments.integer};
  Profile profile;
  const auto evaluated = [&] {
    if (!arguments.integer) return evaluate_simulation(run, pictures, arguments.profile ? &profile : nullptr);
    const integer::Model model = convert_run(run.directory, run.checkpoint, grid_of(split));
    subject.bits = bits_of(model).json();
    return evaluate_in_integers(model, task_of(run.settings), run.directory.eval_graph().string(), pictures);
  };
  const EvalResult result = evaluated();
  print_note(run.note);
  print_note(datasets::note_on_first(pictures, split));
  print_note(datasets::note_on_whole_recordings(pictures, arguments.limit));
  print_file_notes(data.remarks());
  if (arguments.dataset.empty()) print_note(note_on_growth(run.directory, run.settings.dataset, data));
  print(arguments, subject, split, result);
  warn_of_one_answer(result, subject, pictures, arguments.dataset.empty() ? run.settings.dataset : arguments.dataset);
  if (arguments.profile) std::printf("\n%s", profile_table(profile, bench::measure_rates()).c_str());
}

/// Whether a network that reads pictures quantizes them itself: its file does not say what the bytes were then.
bool has_own_input_quantizer(const integer::TensorInfo& input) {
  return input.shape.rank() == 3 && (input.grid.bits != 8 || input.name.ends_with("/input_quant"));
}

/// Own files take on the size and the colour of the model's input, and its grid if that is their bytes'. Numbers and
/// targets are standardised as those were that it was trained with, or not at all. `reading`: the flags.
datasets::LoadOptions load_options(const integer::Model& model, const Task& task, const TrainSettings& reading) {
  const integer::TensorInfo& input = model.tensor(model.input);
  datasets::LoadOptions options{.snr_db = reading.sounds.snr_db,
                                .numbers = number_options(reading),
                                .sounds = reading.sounds.options(reading.dataset),
                                .train_optional = true};
  if (&task == &classification()) {
    options.class_names = model.class_names;
    options.least_classes = static_cast<int>(model.tensor(model.output).shape.elements());
  }
  datasets::NumberOptions& numbers = options.numbers;
  const auto shared = [](const std::optional<Standard>& standard) {
    return standard ? std::make_shared<const Standard>(*standard) : nullptr;
  };
  numbers.standard = shared(model.input_standard);
  numbers.target_standard = shared(model.output_standard);
  numbers.standardise = numbers.standard || numbers.target_standard;
  if (numbers.standard) numbers.inputs = datasets::Inputs::kNumbers;
  if (&task == &regression() || &task == &multilabel()) numbers.answers = datasets::Answers::kTargets;
  if (input.shape.rank() == 3) datasets::set_shape(options.pictures, input.shape);
  if (!has_own_input_quantizer(input)) datasets::set_grid(options.pictures, input.grid.scale, input.grid.zero_point);
  return options;
}

/// A model.miniqat file knows its integers, but no data set.
void evaluate_file(const EvalArguments& arguments, const ReadingFlags& flags) {
  if (arguments.dataset.empty()) throw UsageError("--model needs --dataset");
  if (is_onnx_file(arguments.model))
    throw UsageError(
        concat("--model takes a file of `export --format miniqat`, and ", arguments.model,
               " is an ONNX model; `miniqat calibrate --model` prints its accuracy, in float and in integers"));
  if (!arguments.checkpoint.empty()) throw UsageError("--checkpoint is for --run");
  if (arguments.split == "validation") throw UsageError("--split validation is for --run: a file has no such part");
  check_dataset(arguments.dataset, arguments.data_dir);
  const integer::Model model = integer::read_model(arguments.model);
  const Task& task = model.task.empty() ? classification() : find_task(model.task);
  refuse_of_other_tasks(arguments, task);
  TrainSettings reading;
  flags.apply(reading);
  for (const std::string& name : flags.given()) reading.given.insert(name);
  reading.dataset = arguments.dataset;
  check_limits(settings_of_numbers(), reading);
  reading.sounds.check(reading.dataset);
  datasets::LoadOptions options = load_options(model, task, reading);
  options.skip_broken = arguments.skip_broken;
  options.accept_kind = [&](datasets::DataKind kind) {
    require_settings_of(kind, reading);
    require_kind_fits(kind, model.tensor(model.input).shape, arguments.dataset, arguments.model);
  };
  options.accept = [&](const Shape& example) {
    require_pictures_fit(model, example, arguments.dataset, arguments.model);
  };
  const datasets::Splits data = datasets::load(arguments.dataset, arguments.data_dir, options);
  const datasets::Dataset& split = split_of(data, arguments.split);
  const IntegerBits bits = bits_of(model);
  const Subject subject{.model = model.name.empty() ? arguments.model : model.name,
                        .quantization = bits.label(),
                        .bits = bits.json(),
                        .integer = true};
  const datasets::Dataset pictures = chosen_pictures(arguments, split);
  const EvalResult result = evaluate_in_integers(model, task, arguments.model, pictures);
  if (datasets::is_path(arguments.dataset) && split.has_pictures() &&
      has_own_input_quantizer(model.tensor(model.input)))
    print_note(concat(
        "note: ", arguments.model,
        " quantizes its input itself, so it does not say what the bytes were: they are taken as byte / 255; if its run had --mean or --std, evaluate that"));
  print_file_notes(data.remarks());
  print_note(datasets::note_on_first(pictures, split));
  print_note(datasets::note_on_whole_recordings(pictures, arguments.limit));
  print(arguments, subject, split, result);
  warn_of_one_answer(result, subject, pictures, arguments.dataset);
}

void evaluate_what_was_given(const EvalArguments& arguments, const ReadingFlags& flags) {
  if (arguments.run.empty() == arguments.model.empty()) throw MissingArgument("give one of --run and --model");
  if (arguments.profile && (arguments.integer || !arguments.model.empty()))
    throw UsageError("--profile times the simulation: it goes without --integer and --model");
  if (arguments.profile && arguments.json) refuse_ignored("--profile", "--json");
  if (const std::vector<std::string> given = flags.given(); !given.empty() && arguments.model.empty())
    throw UsageError(concat(flag_of(given.front()), " goes with --model: a run reads its data as it was trained"));
  set_thread_count(arguments.threads == 0 ? default_thread_count() : arguments.threads);
  if (arguments.run.empty())
    evaluate_file(arguments, flags);
  else
    evaluate_run(arguments);
}

}  // namespace

void add_eval(CommandLine& program) {
  Command command = program.command(
      "eval", "Measure a run's accuracy, or the figures of another task, with its evaluation graph or as integers");
  const auto arguments = std::make_shared<EvalArguments>();
  command.run(arguments->run, "a run directory", Command::Run::kOptional);
  command.option("--model", arguments->model, "a file that `export --format miniqat` wrote, instead of a run");
  command.option("--dataset", arguments->dataset, "a data set; default: the run's own; --model needs it");
  command.option("--data-dir", arguments->data_dir, kDataDirHelp);
  add_skip_broken(command, arguments->skip_broken);
  command.option("--checkpoint", arguments->checkpoint,
                 "use the variables of this .safetensors file or run directory instead of the run's own");
  command
      .option("--split", arguments->split,
              "test, train, or validation: the training pictures that `train --validation` held out")
      .one_of({split_names().begin(), split_names().end()});
  command
      .option("--examples", arguments->limit,
              "number of pictures, from the first of the split on; 0: all. Windows of a sound end with its recording")
      .in_range(std::int64_t{0}, std::int64_t{1} << 31);
  command.option("--threads", arguments->threads, kThreadsHelp).in_range(0, 1024);
  command.flag("--integer", arguments->integer,
               "convert the run to an integer-only model and measure that instead of the simulation");
  command.flag(
      "--by-class", arguments->by_class,
      "print accuracy by class and the confusion matrix; of more than 20 classes, the worst and the most frequent confusions");
  command.flag("--wrong", arguments->wrong,
               "list the pictures with a wrong class: file (of pictures in folders), index, label, predicted, score");
  command.option(
      "--threshold", arguments->threshold,
      "print precision and recall where an anomaly is an error of at least this number, or a label has at least this probability");
  command.flag("--json", arguments->json, "print one JSON object");
  command.flag("--profile", arguments->profile,
               "print where the time of the batches went, by node, op and phase, beside what this machine allows");
  const auto flags = std::make_shared<ReadingFlags>(command, kRunHeading, reading_changes());
  command.action([arguments, flags] { evaluate_what_was_given(*arguments, *flags); });
}

}  // namespace miniqat::cli
