#include "cli/advice.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>

#include "cli/display/terminal.h"
#include "core/files/files.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "datasets/known_datasets.h"
#include "models/models.h"
#include "training/listing/run_list.h"
#include "training/model_source.h"
#include "training/run/run_directory.h"
#include "training/settings/settings.h"

namespace miniqat::cli {

using namespace training;
namespace fs = std::filesystem;

namespace {

/// What other tools call a thing of ours, with single spaces between: the flags of PyTorch's and TensorFlow's examples,
/// of Keras, timm, Hugging Face, Ultralytics; and one letter as many programs have it.
struct Synonyms {
  const char* ours;
  const char* theirs;
};

constexpr Synonyms kFlags[] = {
    {"--learning-rate", "lr rate eta learning-rate-init initial-lr base-lr lr0"},
    {"--batch-size",
     "batch bs b batchsize train-batch-size mini-batch mini-batch-size per-device-train-batch-size images-per-batch"},
    {"--schedule",
     "lr-schedule lr-scheduler scheduler lr-scheduler-type lr-policy lr-decay-style sched learning-rate-schedule"},
    {"--schedule-factor", "gamma lr-gamma decay-rate lr-decay lr-factor"},
    {"--schedule-every", "step-size lr-step-size decay-steps lr-steps lr-step"},
    {"--warmup-steps", "warmup num-warmup-steps warm-up lr-warmup warmup-iters warmup-epochs lr-warmup-epochs"},
    {"--weight-decay", "wd decay l2 l2-regularization kernel-regularizer"},
    {"--optimizer", "opt optim optimiser"},
    {"--model", "arch a architecture network net model-name m backbone cfg"},
    {"--models", "arch a architecture network net model-name m model"},
    {"--dataset", "ds data-set dataset-name data-name task"},
    {"--data-dir", "data data-path data-root dataroot root data-folder dataset-dir dataset-path train-dir input-dir"},
    {"--out",
     "o output output-dir output-path out-dir outdir save save-dir save-path logdir log-dir model-dir run-name project dest export-path"},
    {"--run", "run-dir rundir r experiment"},
    {"--epochs", "e epoch num-epochs n-epochs nb-epoch max-epochs num-train-epochs"},
    {"--steps", "max-steps iterations iters num-steps steps-per-epoch max-iters train-steps n"},
    {"--threads", "j t workers num-workers jobs num-threads nproc cpus cores intra-op-threads"},
    {"--seed", "random-seed manual-seed random-state rng-seed"},
    {"--init-checkpoint",
     "pretrained pretrained-weights weights finetune fine-tune load load-weights ckpt checkpoint initial-checkpoint init resume-from"},
    {"--checkpoint", "ckpt weights load load-weights model-path"},
    {"--resume", "continue restart resume-training"},
    {"--overwrite", "f force overwrite-output-dir exist-ok replace"},
    {"--verbose", "v debug"},
    {"--float", "fp32 float32 no-quantization no-quant no-qat full-precision"},
    {"--weight-bits", "bits wbits w-bits nbits num-bits n-bits bit-width bitwidth bits-w weight-bit-width qbits"},
    {"--activation-bits", "abits a-bits act-bits bits-a activation-bit-width"},
    {"--bits", "wbits nbits num-bits n-bits bit-width weight-bits"},
    {"--per-channel", "channelwise channel-wise per-axis"},
    {"--ranges", "observer qat-range quantizer lsq"},
    {"--quant-delay", "quantization-delay qat-delay start-quant quant-start"},
    {"--validation", "val validation-split val-split valid-split test-size holdout hold-out validation-size val-size"},
    {"--image-size", "img-size imgsz input-size size resolution image-shape input-shape crop-size"},
    {"--augment", "augmentation data-augmentation aug augmentations"},
    {"--no-shuffle", "shuffle"},
    {"--label-smoothing", "smoothing"},
    {"--log-every", "print-freq log-interval log-freq logging-steps log-steps print-every"},
    {"--save-every", "save-freq save-interval save-steps checkpoint-interval checkpoint-every save-period"},
    {"--width", "width-multiplier width-mult multiplier channels-multiplier alpha"},
    {"--method", "calibration-method calib-method observer"},
    {"--batches", "calibration-batches calib-batches num-batches num-calib-batches calibration-steps"},
    {"--examples", "num-samples samples limit subset max-samples num-examples"},
    {"--split", "subset part partition"},
    {"--top", "k topk top-k"},
    {"--format", "type to target output-format"},
    {"--opset", "opset-version target-opset"},
    {"--integer", "int8 integers quantized"},
    {"--by-class", "per-class confusion-matrix classification-report"},
    {"--plot", "figure plot-out"},
};

constexpr Synonyms kCommandSynonyms[] = {
    {"train", "fit qat finetune fine-tune learn run-training"},
    {"eval", "evaluate test validate val accuracy score"},
    {"predict", "infer inference classify"},
    {"calibrate", "ptq post-training calib"},
    {"quantize", "quantise compress"},
    {"export", "convert save deploy to-onnx onnx tflite"},
    {"import", "load from-onnx"},
    {"bench", "benchmark perf profile speed time"},
    {"runs", "list ls history experiments compare"},
    {"report", "plot html show visualize tensorboard dashboard"},
    {"inspect", "summary info describe print netron"},
    {"models", "list-models zoo networks"},
    {"--version", "version v"},
};

/// Lower case, without the dashes in front and what follows a `=`, `-` for `_`: "batch-size" of "--Batch_Size=3".
std::string bare(std::string_view word) {
  std::string text(word.substr(std::min(word.find_first_not_of('-'), word.size())));
  text = text.substr(0, text.find('='));
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return c == '_' ? '-' : std::tolower(c); });
  return text;
}

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

/// Ours for a word of other tools, if the command has it; "" without.
std::string ours_for(const std::string& word, std::span<const Synonyms> table, const std::vector<std::string>& known) {
  const std::string wanted = bare(word);
  for (const Synonyms& row : table) {
    std::istringstream theirs(row.theirs);
    for (std::string one; theirs >> one;)
      if (one == wanted && has(known, row.ours)) return row.ours;
  }
  return "";
}

/// What did_you_mean() has between its quotes; "" where nothing comes near.
std::string nearest(const std::string& word, const std::vector<std::string>& names) {
  const std::string question = did_you_mean(word, names);
  for (const std::string& name : names)
    if (!question.empty() && did_you_mean(word, {&name, 1}) == question) return name;
  return "";
}

/// `--model lenet5` for a bare name; "" for a word that is none.
std::string named_thing(const std::string& word, const std::vector<std::string>& known) {
  const auto with = [&](const char* flag, const std::string& name) {
    return has(known, flag) ? concat(flag, " ", name) : std::string();
  };
  const std::vector<std::string> models = models::model_names(), datasets = datasets::dataset_names();
  const std::string model = training::is_graph_file(word) ? word : nearest(word, models);
  const std::string dataset = nearest(word, datasets);
  // A whole name before one that comes near.
  if (!dataset.empty() && (model.empty() || has(datasets, word))) return with("--dataset", dataset);
  // Beside a run, --model is a file of another kind.
  if (model.empty() || has(known, "--run")) return "";
  const std::string one = with("--model", model);
  return one.empty() ? with("--models", model) : one;
}

std::string asked(const std::string& words) { return concat("; did you mean ", quote(words), "?"); }

/// Where `train` puts its runs.
constexpr const char* kRuns = "runs";

enum class Fit { kAny, kFloat, kQuantized, kBatchNorms };

/// A command and the runs that it takes. Behind the run come the flags and, where there is an ending, what is written:
/// the name of the run with that ending.
struct RunCommand {
  std::string_view name;
  Fit fit;
  const char* flags;
  std::string_view ending;
};

constexpr RunCommand kRunCommands[] = {
    {"eval", Fit::kAny, "", ""},
    {"predict", Fit::kAny, " 0", ""},
    {"inspect", Fit::kAny, "", ""},
    {"runs", Fit::kAny, "", ""},
    {"verify", Fit::kQuantized, "", ""},
    {"report", Fit::kAny, " --out ", ".html"},
    {"export", Fit::kQuantized, " --out ", ".onnx"},
    {"export", Fit::kFloat, " --format onnx-float --out ", ".onnx"},
    {"calibrate", Fit::kFloat, " --out ", "-calibrated"},
    {"quantize", Fit::kFloat, " --out ", "-quantized"},
    {"sensitivity", Fit::kFloat, " --out ", "-sensitivity"},
    {"reestimate", Fit::kBatchNorms, " --out ", "-reestimated"},
};

bool has_batch_norms(const ListedRun& run) {
  const fs::path graph = RunDirectory::open(run.path).train_graph();
  return is_there(graph) && read_file(graph).find("BatchNorm") != std::string::npos;
}

bool fits(const RunCommand& command, const ListedRun& run) {
  const bool has_end = run.complete || run.state.starts_with("stopped");
  if (!has_end || command.fit == Fit::kAny) return has_end;
  if (command.fit == Fit::kBatchNorms) return run.complete && has_batch_norms(run);
  return (command.fit == Fit::kFloat) == (run.quantization == "float");
}

std::string command_line_of(const RunCommand& command, const ListedRun& run) {
  const std::string folder = run.path.string();
  const std::string made = command.ending.empty() ? "" : shell_path(concat(folder, command.ending));
  return concat("miniqat ", command.name, " ", shell_path(folder), command.flags, made);
}

/// "" if no run below runs/ fits.
std::string line_for_newest_run(const std::string& command) {
  std::error_code failure;
  if (!fs::is_directory(kRuns, failure)) return "";
  const std::vector<ListedRun> runs = list_runs(kRuns);
  for (auto run = runs.rbegin(); run != runs.rend(); ++run)
    for (const RunCommand& known : kRunCommands)
      if (command == known.name && fits(known, *run)) return command_line_of(known, *run);
  return "";
}

/// What makes a run that fits, in a folder that is not there yet: minutes for the data set that needs no files.
std::string first_command(Fit fit) {
  const std::string name = concat(kRuns, "/first");
  std::string folder = name;
  for (int i = 2; is_there(folder); ++i) folder = concat(name, "-", i);
  const char* flags = fit == Fit::kFloat ? " --float" : fit == Fit::kBatchNorms ? " --model lenet_bn" : "";
  return concat("miniqat train", flags, " --epochs 1 --out ", folder);
}

/// Where the shorter first command puts its run: the default folder is the whole training's.
constexpr const char* kFirstRun = "runs/first";

struct Estimate {
  double seconds = 0;
  std::string run;
};

std::string length_text(double seconds) {
  constexpr double kMinute = 60, kHour = 3600;
  if (seconds < 2 * kMinute) return counted(std::max(std::lround(seconds), 1L), "second");
  return seconds < 2 * kHour ? concat(std::lround(seconds / kMinute), " minutes")
                             : concat(std::lround(seconds / kHour), " hours");
}

/// A run whose settings differ in nothing but the number of epochs, the seed and what it logs and saves.
bool has_the_same_epochs(const TrainSettings& settings, TrainSettings other) {
  if (other.steps > 0) return false;
  other.epochs = settings.epochs;
  other.seed = settings.seed;
  other.log_every = settings.log_every;
  other.save_every = settings.save_every;
  return settings_to_json(other) == settings_to_json(settings);
}

std::optional<Estimate> estimate_of(const TrainSettings& settings, const ListedRun& run) {
  if (!run.complete || !run.seconds) return {};
  const fs::path config = RunDirectory::open(run.path).config();
  const TrainSettings other = recorded_settings(read_json(config), config.string());
  if (!has_the_same_epochs(settings, other)) return {};
  return Estimate{.seconds = *run.seconds * static_cast<double>(settings.epochs) / static_cast<double>(other.epochs),
                  .run = run.path.string()};
}

/// The length that the newest run tells.
std::optional<Estimate> known_length(const TrainSettings& settings) {
  std::error_code failure;
  if (!fs::is_directory("runs", failure)) return {};
  try {
    const std::vector<ListedRun> runs = list_runs("runs");
    for (auto run = runs.rbegin(); run != runs.rend(); ++run)
      if (const std::optional<Estimate> estimate = estimate_of(settings, *run)) return estimate;
  } catch (const Error&) {
    // A run that cannot be read tells nothing.
  }
  return {};
}

}  // namespace

std::string suggestion_for(const std::string& word, const std::vector<std::string>& known) {
  const bool is_flag = word.starts_with('-'), is_command = has(known, "train");
  if (is_flag || is_command) {
    const std::string ours = is_command ? ours_for(word, kCommandSynonyms, known) : ours_for(word, kFlags, known);
    if (!ours.empty()) return asked(ours);
    const std::string near = did_you_mean(word.substr(0, word.find('=')), known);
    if (!near.empty() || is_flag) return near;
    const std::string thing = named_thing(word, {"--model", "--dataset"});
    return thing.empty() ? "" : asked(concat("train ", thing));
  }
  const std::string thing = named_thing(word, known);
  return thing.empty() ? did_you_mean(word, known) : asked(thing);
}

std::string advice_for_newest_run(const std::string& command) {
  const auto known = std::ranges::find(kRunCommands, command, &RunCommand::name);
  if (known == std::ranges::end(kRunCommands)) return "";
  try {
    const std::string line = line_for_newest_run(command);
    if (!line.empty()) return "for the newest run: " + line;
  } catch (const Error&) {
    // Advice is no reason for another error.
  }
  return concat("no run below ", kRuns, "/ is for this yet; this makes one: ", first_command(known->fit));
}

std::string plan_of_defaults(const TrainSettings& settings, const fs::path& out) {
  const std::optional<Estimate> known = known_length(settings);
  std::string text =
      concat("No settings are given: this trains ", settings.model, " on ", settings.dataset,
             settings.dataset == "synthetic" ? " (digits that miniqat draws)" : "", ", with ",
             settings.rewrite.weight_bits, "-bit weights and ", settings.rewrite.activation_bits,
             "-bit activations, for ", counted(settings.epochs, "epoch"), ", into ", printable(out.string()), ".\n");
  text += known ? concat("It takes about ", length_text(known->seconds), ", as ", printable(known->run), " tells")
                : std::string("How long it takes is told beside its first steps");
  text += "; after Ctrl-C, train --resume goes on.";
  text = joined(wrapped(text, text_columns()), "\n") + "\n";
  if (!is_there(kFirstRun)) text += concat("A shorter first command: miniqat train --epochs 1 --out ", kFirstRun, "\n");
  return text + "\n";
}

}  // namespace miniqat::cli
