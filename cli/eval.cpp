#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/display/print_note.h"
#include "cli/flags/command_line.h"
#include "cli/flags/flag_checks.h"
#include "core/parallel.h"
#include "core/quote.h"
#include "integer/format/model_file.h"
#include "training/evaluate/evaluator.h"
#include "training/evaluate/integer_evaluator.h"
#include "training/run/evaluation_session.h"
#include "training/run/integer_source.h"
#include "training/run/run_source.h"
#include "training/settings/settings.h"
#include "training/settings/threads_help.h"
#include "training/settings/usage_error.h"
#include "training/verify/integer_bits.h"

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
  bool integer = false;
  bool json = false;
};

/// What is evaluated, in words.
struct Subject {
  std::string model;
  std::string quantization;
  /// {"weights": 8, "activations": 8}; null for a float network.
  Json bits;
  bool integer = false;
};

Evaluation evaluate_in_integers(const integer::Model& model, const std::string& source,
                                const datasets::Dataset& split) {
  require_fit(model, split, source);
  return evaluate_integers(model, split);
}

/// `split`: all its pictures, also where only the first were evaluated.
void print(const EvalArguments& arguments, const Subject& subject, const datasets::Dataset& split,
           const Evaluation& result) {
  const std::string part = result.examples < split.size() ? concat("first ", result.examples, " of ") : "";
  if (arguments.json)
    std::printf("%s\n", Json({{"model", subject.model},
                              {"dataset", split.name},
                              {"split", arguments.split},
                              {"quantization", subject.quantization},
                              {"bits", subject.bits},
                              {"integer", subject.integer},
                              {"examples", result.examples},
                              {"correct", result.correct},
                              {"accuracy", result.accuracy()},
                              {"loss", result.loss}})
                            .dump()
                            .c_str());
  else
    std::printf("%s %s%s on %s (%s%s): accuracy %.2f%% (%ld of %ld), loss %.4f\n", printable(subject.model).c_str(),
                subject.quantization.c_str(), subject.integer ? " integers" : "", split.name.c_str(), part.c_str(),
                arguments.split.c_str(), 100 * result.accuracy(), static_cast<long>(result.correct),
                static_cast<long>(result.examples), result.loss);
}

const datasets::Dataset& chosen_split(const EvalArguments& arguments, const datasets::Splits& data) {
  if (arguments.split == "validation" && !data.validation)
    throw UsageError(concat("--split validation: the run in ", arguments.run,
                            " has no validation part (train --validation N holds one out)"));
  if (arguments.split == "validation") return *data.validation;
  return arguments.split == "train" ? data.train : data.test;
}

/// A validation part is what a run held out of its own training pictures, or what its own data have.
void require_own_data(const EvalArguments& arguments, const TrainSettings& settings) {
  if (arguments.split != "validation") return;
  if (!arguments.dataset.empty() && resolved_dataset(arguments.dataset) != settings.dataset)
    throw UsageError(concat("--split validation: the validation part is of the run's own data set, ", settings.dataset,
                            ", not of --dataset ", arguments.dataset));
}

datasets::Dataset chosen_pictures(const EvalArguments& arguments, const datasets::Dataset& split) {
  return arguments.limit > 0 ? first_examples(split, arguments.limit) : split;
}

void evaluate_run(const EvalArguments& arguments) {
  const RunSource run = open_run(arguments.run, arguments.checkpoint);
  require_own_data(arguments, run.settings);
  const datasets::Splits data = load_data(run, arguments.dataset, arguments.data_dir);
  const datasets::Dataset& split = chosen_split(arguments, data);
  const datasets::Dataset pictures = chosen_pictures(arguments, split);
  const quantize::Quantization quantization = quantization_of(run.directory);
  Subject subject{.model = run.settings.model,
                  .quantization = quantization.label(),
                  .bits = quantization.bits(),
                  .integer = arguments.integer};
  Evaluation result;
  if (arguments.integer) {
    const integer::Model model = convert_run(run.directory, run.checkpoint, grid_of(split));
    subject.bits = bits_of(model).json();
    result = evaluate_in_integers(model, run.directory.eval_graph().string(), pictures);
  } else {
    EvaluationSession simulation(run, pictures);
    result = evaluate(simulation.session, simulation.classifier, pictures);
  }
  print_note(run.note);
  print(arguments, subject, split, result);
}

/// Own files take on the size and the colour of the model's input, and its grid if that is their bytes'. (A network
/// that quantizes its input itself does not say what the bytes were.)
datasets::LoadOptions load_options(const integer::Model& model) {
  const integer::TensorInfo& input = model.tensor(model.input);
  datasets::LoadOptions options{.least_classes = static_cast<int>(model.tensor(model.output).shape.elements()),
                                .class_names = model.class_names};
  if (input.shape.rank() == 3) datasets::set_shape(options.pictures, input.shape);
  if (input.grid.bits == 8) datasets::set_grid(options.pictures, input.grid.scale, input.grid.zero_point);
  return options;
}

/// A model.miniqat file knows its integers, but no data set.
void evaluate_file(const EvalArguments& arguments) {
  if (arguments.dataset.empty()) throw UsageError("--model needs --dataset");
  if (!arguments.checkpoint.empty()) throw UsageError("--checkpoint is for --run");
  if (arguments.split == "validation") throw UsageError("--split validation is for --run: a file has no such part");
  check_dataset(arguments.dataset, arguments.data_dir);
  const integer::Model model = integer::read_model(arguments.model);
  datasets::LoadOptions options = load_options(model);
  options.accept = [&](const Shape& example) {
    require_pictures_fit(model, example, arguments.dataset, arguments.model);
  };
  const datasets::Splits data = datasets::load(arguments.dataset, arguments.data_dir, options);
  const datasets::Dataset& split = chosen_split(arguments, data);
  const IntegerBits bits = bits_of(model);
  const Subject subject{.model = model.name.empty() ? arguments.model : model.name,
                        .quantization = bits.label(),
                        .bits = bits.json(),
                        .integer = true};
  print(arguments, subject, split, evaluate_in_integers(model, arguments.model, chosen_pictures(arguments, split)));
}

void evaluate_what_was_given(const EvalArguments& arguments) {
  if (arguments.run.empty() == arguments.model.empty()) throw UsageError("give one of --run and --model");
  set_thread_count(arguments.threads == 0 ? default_thread_count() : arguments.threads);
  if (arguments.run.empty())
    evaluate_file(arguments);
  else
    evaluate_run(arguments);
}

}  // namespace

void add_eval(CommandLine& program) {
  Command command = program.command("eval", "Measure a run's accuracy with its evaluation graph, or as integers");
  const auto arguments = std::make_shared<EvalArguments>();
  command.option("--run", arguments->run, "a run directory");
  command.option("--model", arguments->model, "a file that `export --format miniqat` wrote, instead of a run");
  command.option("--dataset", arguments->dataset, "a data set; default: the run's own; --model needs it");
  command.option("--data-dir", arguments->data_dir, "where the data set's files are (or MINIQAT_DATA_DIR)");
  command.option("--checkpoint", arguments->checkpoint,
                 "use the variables of this .safetensors file or run directory instead of the run's own");
  command
      .option("--split", arguments->split,
              "test, train, or validation: the training pictures that `train --validation` held out")
      .one_of({"test", "train", "validation"});
  command.option("--examples", arguments->limit, "number of pictures, from the first of the split on; 0: all")
      .in_range(std::int64_t{0}, std::int64_t{1} << 31);
  command.option("--threads", arguments->threads, kThreadsHelp).in_range(0, 1024);
  command.flag("--integer", arguments->integer,
               "convert the run to an integer-only model and measure that instead of the simulation");
  command.flag("--json", arguments->json, "print one JSON object");
  command.action([arguments] { evaluate_what_was_given(*arguments); });
}

}  // namespace miniqat::cli
