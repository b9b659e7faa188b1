#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "cli/commands.h"
#include "cli/flags/command_line.h"
#include "cli/flags/setting_flags.h"
#include "cli/inputs.h"
#include "cli/model_start.h"
#include "cli/notes.h"
#include "core/engine/session.h"
#include "core/graph/source_ops.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "core/threads/parallel.h"
#include "datasets/known_datasets.h"
#include "quantize/quantizers.h"
#include "training/feeds.h"
#include "training/figures.h"
#include "training/model_source.h"
#include "training/run/asked_pictures.h"
#include "training/run/init_checkpoint.h"
#include "training/run/run_source.h"
#include "training/settings/train_settings.h"
#include "training/settings/usage_error.h"

namespace miniqat::cli {

using namespace training;

namespace {

struct RunArguments {
  std::string run;
  std::string graph;
  std::string image_size;
  std::string dataset;
  std::string data_dir;
  std::string split = "test";
  std::optional<std::int64_t> index;
  std::vector<std::string> fetch;
  std::string feeds;
  std::string checkpoint;
  std::string gradients_of;
  std::string out;
  std::optional<std::int64_t> step;
  std::int64_t seed = 1;
  int threads = 0;
  std::string backend = "fast";
  std::string precision = "float32";
  std::string arithmetic = "simulated";
  bool skip_broken = false;
  bool train = false;
  bool random_feeds = false;
  bool by_name = false;
};

/// Other programs write labels as int64 and arrays as float64: takes them where no value changes kind.
Tensor adapt(const std::string& name, const Tensor& tensor, DType wanted) {
  if (wanted == DType::kFloat32 && tensor.dtype() == DType::kFloat64) {
    for (const double value : tensor.values<double>())
      if (std::isfinite(value) && !std::isfinite(static_cast<float>(value)))
        fail("feed ", quote(name), ": ", value, " does not fit float32");
    return tensor.to(wanted);
  }
  if (wanted != DType::kInt32 || tensor.dtype() != DType::kInt64) return tensor;
  Tensor narrow(tensor.shape(), DType::kInt32);
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    const std::int64_t value = tensor.data<std::int64_t>()[i];
    if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max())
      fail("feed ", quote(name), ": ", value, " does not fit int32");
    narrow.data<std::int32_t>()[i] = static_cast<std::int32_t>(value);
  }
  return narrow;
}

Feeds read_feeds(const Graph& graph, const std::string& path) {
  Feeds feeds;
  if (path.empty()) return feeds;
  for (const auto& [name, tensor] : read_safetensors(path).tensors) {
    const Node* node = graph.find(name);
    if (node == nullptr) fail(path, ": the graph has no node ", quote(name), " to feed");
    const Output output = node->output();
    feeds.emplace_back(output, adapt(name, tensor, output.spec().dtype));
  }
  return feeds;
}

RunRequest make_request(const Graph& graph, const RunArguments& arguments, const Feeds& feeds) {
  RunRequest request;
  request.training = arguments.train;
  for (const std::string& name : arguments.fetch) request.fetches.push_back(graph.output_at(name));
  if (arguments.gradients_of.empty()) return request;
  request.gradients_of = graph.output_at(arguments.gradients_of);
  for (const Node* node : graph.nodes())
    if (const auto* variable = node->as<Variable>(); variable != nullptr && variable->trainable)
      request.gradient_targets.push_back(node->output());
  for (const auto& [output, tensor] : feeds)
    if (output.spec().dtype == DType::kFloat32) request.gradient_targets.push_back(output);
  return request;
}

bool same_bits(const Tensor& a, const Tensor& b) { return std::memcmp(a.raw(), b.raw(), a.bytes()) == 0; }

NamedTensors run_once(Session& session, const RunRequest& request, const Feeds& feeds, const RunArguments& arguments) {
  NamedTensors before;
  if (arguments.train)
    for (const auto& [name, value] : session.variables()) before.emplace(name, value.clone());
  const RunResult result = session.run(request, feeds);
  NamedTensors out;
  for (std::size_t k = 0; k < request.fetches.size(); ++k) out[arguments.fetch[k]] = result.fetched[k];
  for (std::size_t k = 0; k < request.gradient_targets.size(); ++k)
    out["grad/" + request.gradient_targets[k].node->name()] = result.gradients[k];
  for (const auto& [name, value] : session.variables())
    if (arguments.train && !same_bits(value, before.at(name))) out["variable/" + name] = value;
  return out;
}

/// "logits [4,10], grad/x [4,8]": of many the first.
std::string contents(const NamedTensors& tensors) {
  constexpr std::size_t kShown = 6;
  std::vector<std::string> parts;
  for (const auto& [name, tensor] : tensors) {
    if (parts.size() == kShown) {
      parts.push_back(concat("and ", tensors.size() - kShown, " more"));
      break;
    }
    parts.push_back(concat(printable(shortened(name)), " ", tensor.shape()));
  }
  return parts.empty() ? "no tensor" : joined(parts);
}

/// What runs: a graph file, or one of a run's graphs.
struct RunSubject {
  std::string graph;
  /// "" for fresh variables.
  std::string checkpoint;
  std::string note;
  std::optional<RunSource> run = {};
};

RunSubject subject_of(const RunArguments& arguments) {
  if (arguments.run.empty() == arguments.graph.empty()) throw MissingArgument("give one of --run and --graph");
  if (!arguments.run.empty() && !arguments.image_size.empty())
    refuse_ignored("--image-size", "a run, which has its sizes");
  if (arguments.run.empty()) {
    if (arguments.checkpoint.empty()) return {.graph = arguments.graph, .checkpoint = {}, .note = {}};
    const TrainedVariables variables = trained_variables(arguments.checkpoint);
    return {.graph = arguments.graph, .checkpoint = variables.file.string(), .note = variables.note};
  }
  RunSource run =
      with_skip_broken(open_run(arguments.run, arguments.checkpoint), arguments.skip_broken, arguments.dataset);
  const RunDirectory& directory = run.directory;
  return {.graph = (arguments.train ? directory.train_graph() : directory.eval_graph()).string(),
          .checkpoint = run.checkpoint,
          .note = run.note,
          .run = std::move(run)};
}

void check_pictures(const RunArguments& arguments, const Command& command) {
  for (const char* flag : {"--dataset", "--data-dir", "--skip-broken", "--split"})
    if (command.was_given(flag) && !arguments.index) throw UsageError(concat(flag, " goes with --index"));
  if (arguments.index && arguments.run.empty() && arguments.dataset.empty())
    throw UsageError("--index needs a run or --dataset");
  if (arguments.split == "validation" && arguments.run.empty())
    throw UsageError("--split validation is for a run: a graph has no such part");
}

datasets::Splits read_data(const RunArguments& arguments, const RunSubject& subject, const Graph& graph) {
  if (subject.run) {
    require_split(*subject.run, arguments.split, arguments.dataset);
    return load_data(*subject.run, arguments.dataset, arguments.data_dir);
  }
  check_dataset(arguments.dataset, arguments.data_dir);
  const Output images = find_images(graph, subject.graph);
  datasets::LoadOptions options{.skip_broken = arguments.skip_broken};
  if (const Shape shape = images.shape(); shape.rank() == 4)
    datasets::set_shape(options.pictures, {shape[1], shape[2], shape[3]});
  options.accept = [&](const Shape& example) {
    require_pictures_fit(images, example, arguments.dataset, subject.graph);
  };
  return datasets::load(arguments.dataset, arguments.data_dir, options);
}

/// `left`: the pictures from the first one on.
void note_repeated(std::int64_t left, std::int64_t batch) {
  if (left < batch)
    print_note(concat("note: ", counted(left, "picture"), " up to the end of the data; the rest of the batch of ",
                      batch, " repeats the last one"));
}

/// The three kinds of feeds, what is given before what is made.
Feeds all_feeds(const RunArguments& arguments, const RunSubject& subject, const Graph& graph) {
  Feeds feeds = read_feeds(graph, arguments.feeds);
  if (arguments.index) {
    const datasets::Splits data = read_data(arguments, subject, graph);
    const datasets::Dataset& split = split_of(data, arguments.split);
    // A picture that is not there is a mistake of the command line.
    as_usage([&] { return datasets::examples_at(split, std::vector{*arguments.index}); });
    std::ranges::move(picture_feeds(graph, feeds, split, *arguments.index, subject.graph), std::back_inserter(feeds));
    print_file_notes(data.remarks());
    note_repeated(split.size() - *arguments.index, find_images(graph, subject.graph).shape()[0]);
  }
  if (arguments.random_feeds) std::ranges::move(random_feeds(graph, feeds, arguments.seed), std::back_inserter(feeds));
  return feeds;
}

void restore_variables(const RunArguments& arguments, const RunSubject& subject, Session& session) {
  if (subject.checkpoint.empty() && is_onnx_file(subject.graph)) start_from(subject.graph, session);
  if (subject.checkpoint.empty()) return;
  const auto mode = arguments.by_name ? Session::Restore::kByName : Session::Restore::kVariables;
  const auto report = session.restore(read_safetensors(subject.checkpoint), mode, subject.checkpoint);
  print_note(subject.note);
  if (arguments.by_name)
    std::printf("From %s: %s restored, %zu new, %zu unused.\n", printable(subject.checkpoint).c_str(),
                counted(report.restored.size(), "variable").c_str(), report.fresh.size(), report.unused.size());
}

/// Only --train freezes batch norms.
void require_step_counts(const Graph& graph, const RunArguments& arguments, const std::string& source) {
  bool freezes = false;
  for (const Node* node : graph.nodes()) {
    freezes = freezes || quantize::freeze_delay_of(*node);
    if (quantize::quant_delay_of(*node) || (freezes && arguments.train)) return;
  }
  refuse_ignored(
      concat("--step ", *arguments.step),
      concat(arguments.run.empty() ? "--graph " : "", source,
             freezes ? ", where only batch norms count steps, with --train" : ", in which nothing counts steps"));
}

void run(const RunArguments& arguments) {
  if (arguments.precision == "float64" && arguments.backend != "reference")
    throw UsageError("--precision float64 needs --backend reference");
  const bool fast = arguments.backend == "fast", on_integers = arguments.arithmetic == "integer";
  if (!fast && on_integers)
    refuse_ignored("--arithmetic integer", "--backend reference, which has the specification only");
  if (!fast && arguments.threads > 1)
    refuse_ignored(concat("--threads ", arguments.threads), "--backend reference, whose loops run on one thread");
  set_thread_count(fast && arguments.threads == 0 ? default_thread_count() : std::max(arguments.threads, 1));
  const RunSubject subject = subject_of(arguments);
  require_no_input("--out", arguments.out,
                   {subject.graph, subject.checkpoint, arguments.feeds, arguments.run, arguments.checkpoint,
                    arguments.dataset, arguments.data_dir});
  auto [graph, notes] = read_graph_file(subject.graph, arguments.image_size);
  if (arguments.fetch.empty() && arguments.gradients_of.empty() && !arguments.train && graph.outputs().empty())
    throw UsageError(concat(subject.graph, " names no outputs: give --fetch, --gradients-of or --train"));
  if (arguments.step) require_step_counts(graph, arguments, subject.graph);
  Session session(graph, {.seed = static_cast<std::uint64_t>(arguments.seed),
                          .backend = fast ? Backend::kFast : Backend::kReference,
                          .arithmetic = on_integers ? Arithmetic::kInteger : Arithmetic::kSimulated,
                          .precision = dtype_from_name(arguments.precision)});
  restore_variables(arguments, subject, session);
  if (arguments.step) session.set_quantization_step(*arguments.step);
  const Feeds feeds = all_feeds(arguments, subject, graph);
  RunRequest request = make_request(graph, arguments, feeds);
  RunArguments named = arguments;
  if (request.fetches.empty() && !request.gradients_of) {
    request.fetches = graph.outputs();
    for (const Output& output : graph.outputs()) named.fetch.push_back(output.name());
  }
  const NamedTensors results = run_once(session, request, feeds, named);
  write_safetensors(arguments.out, {.tensors = results, .metadata = {}});
  print_notes(notes);
  std::printf("wrote %s: %s\n", printable(arguments.out).c_str(), contents(results).c_str());
  std::printf("ran %s\n", memory_text(session.plan_memory()).c_str());
}

}  // namespace

void add_run(CommandLine& program) {
  Command command = program.command("run", "Run any graph once and write its results");
  const auto arguments = std::make_shared<RunArguments>();
  command.run(arguments->run,
              "a run directory: its evaluation graph with its variables, or with --train its training graph",
              Command::Run::kOptional);
  command.option("--graph", arguments->graph, "graph JSON, or an ONNX model with its weights, instead of a run");
  command.option("--image-size", arguments->image_size, kImageSizeHelp);
  command
      .option("--fetch", arguments->fetch,
              "tensors to write, NAME or NAME:k, separated by commas; default: the graph's outputs")
      .separated_by(',')
      .shown_default("");
  command.option("--feeds", arguments->feeds, ".safetensors with a tensor for each placeholder, by name");
  command
      .option(
          "--index", arguments->index,
          "feed pictures of a data set, a batch from this number on, 0 the first, and their labels or targets; at the end of the data the last picture is repeated, with a note")
      .in_range(std::int64_t{0}, std::int64_t{1} << 31);
  command.option("--dataset", arguments->dataset, "with --index: a data set; default: the run's own");
  command.option("--data-dir", arguments->data_dir, kDataDirHelp);
  add_skip_broken(command, arguments->skip_broken);
  command
      .option("--split", arguments->split,
              "with --index: test, train, or validation: the training pictures that `train --validation` held out")
      .one_of({split_names().begin(), split_names().end()});
  command.flag("--random-feeds", arguments->random_feeds,
               "random numbers for placeholders that are not fed: normal ones, or labels of the loss");
  const Flag checkpoint =
      command.option("--checkpoint", arguments->checkpoint,
                     ".safetensors or run directory with the variables; default: the run's own; of a graph fresh ones");
  command
      .flag("--by-name", arguments->by_name,
            "restore only tensors whose names match, for example from a float checkpoint into a rewritten graph")
      .needs(checkpoint);
  command.flag(
      "--train", arguments->train,
      "as in a training step: batch statistics, observers, dropout; changed variables are written as variable/<name>");
  command.option("--step", arguments->step, "set the quantization step counter before the run (--train adds one)")
      .in_range(std::int64_t{0}, std::int64_t{1} << 62);
  command.option("--gradients-of", arguments->gradients_of,
                 "also write grad/<name> of this tensor (its sum) for trainable variables and fed placeholders");
  command.option("--out", arguments->out, "the .safetensors file to write").required();
  command.option("--seed", arguments->seed, "of initial values, dropout and random feeds")
      .in_range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max());
  command.option("--threads", arguments->threads, kThreadsHelp).in_range(0, 1024);
  command.option("--backend", arguments->backend, "fast, or the naive reference loops, on one thread")
      .one_of({"fast", "reference"});
  command.option("--precision", arguments->precision, "float32, or float64 on the reference loops")
      .one_of({"float32", "float64"});
  command
      .option("--arithmetic", arguments->arithmetic,
              "simulated, or integer: layers between quantizers of few bits multiply integers where that is faster")
      .one_of({"simulated", "integer"});
  command.action([arguments, command] {
    check_pictures(*arguments, command);
    run(*arguments);
  });
}

}  // namespace miniqat::cli
