#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/display/terminal.h"
#include "cli/flags/command_line.h"
#include "cli/flags/setting_flags.h"
#include "cli/notes.h"
#include "core/text/classic.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "core/threads/parallel.h"
#include "training/evaluate/evaluator.h"
#include "training/evaluate/said.h"
#include "training/figures.h"
#include "training/run/asked_pictures.h"
#include "training/settings/settings.h"
#include "training/settings/train_settings.h"
#include "training/task/task.h"

namespace miniqat::cli {

using namespace training;

namespace {

struct PredictArguments {
  std::string run;
  std::vector<std::string> pictures;
  PictureSource source;
  std::string checkpoint;
  bool skip_broken = false;
  int top = 3;
  int threads = 0;
  bool integer = false;
  bool json = false;
};

/// "7 99.81%".
std::string with_score(const datasets::Dataset& data, const Prediction& prediction, std::int64_t number) {
  return concat(name_cell(data.class_name(number)), " ", percent(prediction.scores[static_cast<std::size_t>(number)]));
}

/// "0.31 -1.2 ...": the first few.
std::string numbers_text(const std::vector<double>& numbers) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t k = 0; k < std::min(numbers.size(), kShown); ++k)
    text += concat(k == 0 ? "" : " ", std::isnan(numbers[k]) ? "-" : formatted("%.5g", numbers[k]));
  return numbers.size() > kShown ? text + " ..." : text;
}

/// What example i should have given, in the units of the data; empty where they do not say.
std::vector<double> targets_of(const datasets::Dataset& data, std::size_t i) {
  std::vector<double> targets;
  if (!data.targets.defined()) return targets;
  const auto each = static_cast<std::size_t>(data.targets.shape()[1]);
  for (std::size_t k = 0; k < each; ++k) {
    const double value = data.targets.values<float>()[i * each + k];
    if (!data.target_standard) {
      targets.push_back(value);
      continue;
    }
    // A standardised number is of 32 bits.
    const double unit = 1e-6 * data.target_standard->deviation[k];
    targets.push_back(std::round(data.target_standard->restored(k, value) / unit) * unit);
  }
  return targets;
}

/// Answers beside what they should have been, or the class of a reconstruction, as far as the data say.
void print_numbers(const Task& task, const AskedPictures& examples, const std::vector<Prediction>& predictions) {
  const bool reconstructs = &task == &reconstruction();
  std::vector<TableLine> lines = {{examples.data.noun(), reconstructs ? "class" : "target",
                                   reconstructs             ? "error"
                                   : &task == &multilabel() ? "probability"
                                                            : "predicted"}};
  for (const AskedPicture& asked : examples.asked) {
    const std::vector<double> targets = targets_of(examples.data, static_cast<std::size_t>(asked.first));
    const bool are_unknown = std::ranges::all_of(targets, [](double target) { return std::isnan(target); });
    const std::string known = reconstructs && asked.label ? name_cell(examples.data.class_name(*asked.label))
                              : are_unknown               ? "-"
                                                          : numbers_text(targets);
    lines.push_back({printable(asked.word), known, numbers_text(answers_to(task, examples.data, asked, predictions))});
  }
  std::printf("%s", aligned(lines, lines.front().size()).c_str());
}

void print_predictions(const PredictArguments& arguments, const Task& task, const AskedPictures& pictures,
                       const std::vector<Prediction>& predictions) {
  if (!predictions.empty() && !predictions.front().outputs.empty()) return print_numbers(task, pictures, predictions);
  std::vector<TableLine> lines = {{pictures.data.noun(), "label", "class", "score", "next"}};
  const bool are_files = !pictures.asked.front().file.empty();
  if (are_files) lines[0].emplace_back("file");
  for (const AskedPicture& asked : pictures.asked) {
    const Prediction prediction = said_of(asked, predictions);
    TableLine line = {printable(asked.word), asked.label ? name_cell(pictures.data.class_name(*asked.label)) : "-"};
    if (prediction.predicted < 0) {
      line.insert(line.end(), {"none", "NaN", ""});
    } else {
      const std::vector<std::int64_t> ranking = prediction.ranking();
      std::vector<std::string> next;
      for (std::size_t k = 1; k < std::min(ranking.size(), static_cast<std::size_t>(arguments.top)); ++k)
        next.push_back(with_score(pictures.data, prediction, ranking[k]));
      line.push_back(name_cell(pictures.data.class_name(ranking[0])));
      line.push_back(percent(prediction.scores[static_cast<std::size_t>(ranking[0])]));
      line.push_back(joined(next));
    }
    if (are_files) line.push_back(printable(asked.file));
    lines.push_back(std::move(line));
  }
  std::printf("%s", aligned(lines, lines.front().size()).c_str());
}

Json prediction_json(const Task& task, const datasets::Dataset& data, const AskedPicture& asked,
                     const std::vector<Prediction>& predictions) {
  const Prediction prediction = said_of(asked, predictions);
  Json json = {{data.noun(), asked.number ? Json(*asked.number) : Json(asked.word)},
               {"label", asked.label ? Json(*asked.label) : Json(nullptr)}};
  if (!asked.file.empty()) json["file"] = asked.file;
  if (asked.windows > 1) json["windows"] = asked.windows;
  if (!prediction.outputs.empty()) {
    if (asked.windows == 1) json["outputs"] = prediction.outputs;
    if (const std::vector<double> targets = targets_of(data, static_cast<std::size_t>(asked.first)); !targets.empty())
      json["targets"] = targets;
    const std::vector<double> answers = answers_to(task, data, asked, predictions);
    if (&task == &multilabel()) json["probabilities"] = answers;
    if (&task == &reconstruction()) json["error"] = answers.front();
    return json;
  }
  const bool decided = prediction.predicted >= 0;
  json["predicted"] = decided ? Json(prediction.predicted) : Json(nullptr);
  json["class"] = decided ? Json(data.class_name(prediction.predicted)) : Json(nullptr);
  json["score"] = decided ? Json(prediction.scores[static_cast<std::size_t>(prediction.predicted)]) : Json(nullptr);
  json["scores"] = decided ? Json(prediction.scores) : Json(nullptr);
  return json;
}

void print_predictions_json(const PredictArguments& arguments, const RunSource& run, const Task& task,
                            const AskedPictures& pictures, const std::vector<Prediction>& predictions) {
  Json list = Json::array();
  for (const AskedPicture& asked : pictures.asked)
    list.push_back(prediction_json(task, pictures.data, asked, predictions));
  const Json json = {{"model", run.settings.model},
                     {"quantization", quantization_of(run.directory).label()},
                     {"integer", arguments.integer},
                     {"dataset", pictures.from_files ? Json(nullptr) : Json(pictures.data.name)},
                     {"split", pictures.from_files ? Json(nullptr) : Json(arguments.source.split)},
                     {concat(pictures.data.noun(), "s"), std::move(list)}};
  std::printf("%s\n", json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

/// A file of integers does not hold how pictures and sounds become its numbers.
void require_run(const std::string& run) {
  if (run.ends_with(".miniqat") && !std::filesystem::is_directory(run))
    fail(
        run,
        " is a file, not the directory of a run: its integers do not hold how files become numbers; `miniqat eval --model` measures it on a data set");
}

void predict_pictures(const PredictArguments& arguments) {
  require_run(arguments.run);
  set_thread_count(arguments.threads == 0 ? default_thread_count() : arguments.threads);
  const RunSource run =
      with_skip_broken(open_run(arguments.run, arguments.checkpoint), arguments.skip_broken, arguments.source.dataset);
  const AskedPictures pictures = find_pictures(run, arguments.pictures, arguments.source);
  const std::vector<Prediction> predictions = predict(run, pictures.data, arguments.integer);
  const Task& task = run.settings.task == kTaskOfData ? classification() : find_task(run.settings.task);
  print_note(run.note);
  print_file_notes(pictures.data);
  if (arguments.json)
    print_predictions_json(arguments, run, task, pictures, predictions);
  else
    print_predictions(arguments, task, pictures, predictions);
}

}  // namespace

void add_predict(CommandLine& program) {
  Command command =
      program.command("predict", "Ask a run for the classes of some pictures, or its numbers for other examples");
  const auto arguments = std::make_shared<PredictArguments>();
  command.run(arguments->run, "a run directory", Command::Run::kRequired, &arguments->pictures);
  command
      .option(
          "PICTURE", arguments->pictures,
          "pictures, or other examples, by their numbers in the data set, from 0; or files of pictures, files of sounds or folders of these: `miniqat predict RUN 0 7 42`; none with --dataset: all of it")
      .value_name("...")
      .shown_default("");
  command.option("--dataset", arguments->source.dataset,
                 "a data set, also one whose answers nobody knows; default: the run's own");
  command.option("--data-dir", arguments->source.data_dir, kDataDirHelp);
  command
      .option("--split", arguments->source.split,
              "test, train, or validation: the training pictures that `train --validation` held out")
      .one_of({split_names().begin(), split_names().end()});
  add_skip_broken(command, arguments->skip_broken);
  command.option("--checkpoint", arguments->checkpoint,
                 "use the variables of this .safetensors file or run directory instead of the run's own");
  command.flag("--integer", arguments->integer, "ask the integer-only model instead of the simulation");
  command.option("--top", arguments->top, "number of classes to show for each picture").in_range(1, 1000);
  command.option("--threads", arguments->threads, kThreadsHelp).in_range(0, 1024);
  command.flag(
      "--json", arguments->json,
      "print one JSON object: a list of \"pictures\", or of \"examples\" where these are numbers, with the scores of all classes");
  command.action([arguments] { predict_pictures(*arguments); });
}

}  // namespace miniqat::cli
