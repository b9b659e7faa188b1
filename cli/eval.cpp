#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/evaluator.h"
#include "cli/integer_evaluator.h"
#include "cli/integer_source.h"
#include "cli/run_directory.h"
#include "cli/settings.h"
#include "cli/threads.h"
#include "cli/train_settings.h"
#include "core/graph_json.h"
#include "core/parallel.h"

namespace miniqat::cli {
namespace {

struct Arguments {
  std::string run;
  std::string dataset;
  std::string data_dir;
  std::string checkpoint;
  std::string split = "test";
  int threads = 0;
  bool integer = false;
  bool json = false;
};

Evaluation simulate(const RunDirectory& run, const std::string& checkpoint, const datasets::Dataset& split) {
  const std::string source = run.eval_graph().string();
  Classifier classifier = find_classifier(read_graph(source), source);
  require_fit(classifier, split, source);
  Session session(classifier.graph);
  session.restore(read_safetensors(checkpoint), Session::Restore::kVariables, checkpoint);
  return evaluate(session, classifier, split);
}

Evaluation evaluate_in_integers(const RunDirectory& run, const std::string& checkpoint,
                                const datasets::Dataset& split) {
  const integer::Model model = convert_run(run, checkpoint, grid_of(split));
  require_fit(model, split, run.eval_graph().string());
  return evaluate_integers(model, split);
}

void evaluate_run(Arguments arguments) {
  const RunDirectory run = RunDirectory::open(arguments.run);
  TrainSettings settings;
  settings_from_json(read_json(run.config()), settings, run.config().string());
  if (arguments.dataset.empty()) arguments.dataset = settings.dataset;
  if (arguments.data_dir.empty()) arguments.data_dir = settings.data_dir;
  const std::string checkpoint =
      checkpoint_file(arguments.checkpoint.empty() ? arguments.run : arguments.checkpoint).string();
  check_dataset(arguments.dataset);
  set_thread_count(arguments.threads == 0 ? default_thread_count() : arguments.threads);

  const datasets::Splits data = datasets::load(arguments.dataset, arguments.data_dir);
  const datasets::Dataset& split = arguments.split == "train" ? data.train : data.test;
  const Evaluation result =
      arguments.integer ? evaluate_in_integers(run, checkpoint, split) : simulate(run, checkpoint, split);
  const std::string label = quantization_label(settings) + (arguments.integer ? " integers" : "");
  if (arguments.json)
    std::printf("%s\n", Json({{"model", settings.model},
                              {"dataset", arguments.dataset},
                              {"split", arguments.split},
                              {"quantization", quantization_label(settings)},
                              {"integer", arguments.integer},
                              {"examples", result.examples},
                              {"correct", result.correct},
                              {"accuracy", result.accuracy()},
                              {"loss", result.loss}})
                            .dump()
                            .c_str());
  else
    std::printf("%s %s on %s (%s): accuracy %.2f%% (%ld of %ld), loss %.4f\n", settings.model.c_str(), label.c_str(),
                arguments.dataset.c_str(), arguments.split.c_str(), 100 * result.accuracy(),
                static_cast<long>(result.correct), static_cast<long>(result.examples), result.loss);
}

}  // namespace

void add_eval(CLI::App& program) {
  CLI::App* command = program.add_subcommand("eval", "Measure a run's accuracy with its evaluation graph");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("--run", arguments->run, "a run directory")->required();
  command->add_option("--dataset", arguments->dataset, "the run's own when left out");
  command->add_option("--data-dir", arguments->data_dir, "where the data set's files are (or MINIQAT_DATA_DIR)");
  command->add_option("--checkpoint", arguments->checkpoint,
                      "another .safetensors file or run directory than the run's own");
  command->add_option("--split", arguments->split, "test or train")->check(CLI::IsMember({"test", "train"}));
  command->add_option("--threads", arguments->threads, kThreadsHelp)->check(CLI::Range(0, 1024));
  command->add_flag("--integer", arguments->integer,
                    "convert the run to an integer-only model and measure that instead of the simulation");
  command->add_flag("--json", arguments->json, "print one JSON object");
  command->callback([arguments] { evaluate_run(*arguments); });
}

}  // namespace miniqat::cli
