#include "training/report/report.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "core/engine/session.h"
#include "core/files/files.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "datasets/class_counts.h"
#include "quantize/op_roles.h"
#include "quantize/quantizers.h"
#include "training/evaluate/evaluator.h"
#include "training/listing/run_list.h"
#include "training/quantize/quantization_plan.h"
#include "training/report/graph_drawing.h"
#include "training/report/outputs_report.h"
#include "training/report/results.h"
#include "training/run/data_of_run.h"
#include "training/run/integer_source.h"
#include "training/run/run_directory.h"
#include "training/run/run_source.h"
#include "training/settings/settings.h"
#include "training/settings/usage_error.h"

namespace miniqat::training {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// The run to look at: of a `quantize` that has not chosen a network yet, the run of its last stage.
std::string run_at(const std::string& path) {
  if (is_there(fs::path(path) / "config.json") || !is_there(fs::path(path) / "quantize.json")) return path;
  for (const char* stage : {"trained", "calibrated"})
    if (const fs::path folder = fs::path(path) / stage; is_there(folder / "config.json")) return folder.string();
  return path;
}

/// With a number behind each name that comes more than once: "run (2)".
std::vector<std::string> numbered(const std::vector<std::string>& names) {
  std::vector<std::string> all;
  std::multiset<std::string> given(names.begin(), names.end()), used = given;
  for (const std::string& name : names) {
    std::string own = name;
    if (given.count(name) > 1)
      for (int i = 1; used.contains(own); ++i) own = concat(name, " (", i, ")");
    used.insert(own);
    all.push_back(own);
  }
  return all;
}

/// The last part of each path, or the paths where these are not different.
std::vector<std::string> names_of(const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  std::set<std::string> different;
  for (const std::string& path : paths) {
    std::error_code failure;
    const fs::path whole = fs::weakly_canonical(path, failure);
    names.push_back(failure || whole.filename().empty() ? path : whole.filename().string());
    different.insert(names.back());
  }
  return different.size() == paths.size() ? names : paths;
}

Json read_sensitivity(const std::string& path) {
  if (path.empty()) return {};
  std::error_code failure;
  const fs::path file = fs::is_directory(path, failure) ? fs::path(path) / "sensitivity.json" : fs::path(path);
  Json json = read_json(file);
  if (!json.is_object() || !json.contains("quantizers"))
    fail(file.string(), " is not a file of `miniqat sensitivity`: \"quantizers\" is missing");
  require_shape(json, shape_of_sensitivity(), file.string());
  return json;
}

/// The network before any rewrite, as the settings describe it.
Graph network_of(const RunDirectory& run, TrainSettings settings, const Classifier& evaluation) {
  use_model_copy(settings, run);
  const Shape& images = evaluation.images.shape();
  datasets::Dataset pictures;
  pictures.name = settings.dataset;
  std::vector<std::int64_t> one(images.extents().begin(), images.extents().end());
  one.front() = 1;
  pictures.images = Tensor(Shape(one), images.rank() == 4 ? DType::kUInt8 : DType::kFloat32);
  // Only the number of the answers matters.
  pictures.classes = static_cast<int>(evaluation.outputs());
  pictures.labels = Tensor(Shape{1}, DType::kInt32);
  pictures.targets = Tensor(Shape{1, evaluation.outputs()});
  return make_classifier({.model = settings.model,
                          .model_graph = settings.model_graph,
                          .width = settings.width,
                          .batch_size = images[0],
                          .task = evaluation.task},
                         pictures)
      .graph;
}

class RunExamination {
 public:
  RunExamination(const std::string& path, const std::string& name, const ReportRequest& request,
                 const ReportProgress& progress)
      : request_(request), directory_(RunDirectory::open(path)) {
    report_.name = name;
    report_.path = path;
    report_.before = report_.after = draw_graph({});
    progress_ = [name, &progress](const std::string& doing) { progress(concat(name, ": ", doing)); };
  }

  RunReport run() {
    progress_("files");
    report_.config = read_json(directory_.config());
    settings_ = recorded_settings(report_.config, directory_.config().string());
    report_.task = &task_of(settings_);
    const std::vector<ListedRun> listed = list_runs(directory_.path());
    if (listed.size() != 1) fail(directory_.config().string(), " is not that of a run");
    report_.listed = listed.front().json();
    report_.command = listed.front().command;
    report_.summary = json_if_there(directory_.summary());
    attempt("no list of skipped files: ", [&] { report_.skipped_files = json_if_there(directory_.skipped_files()); });
    attempt("no machine: ", [&] { read_machine(); });
    attempt("no curves: ", [&] { read_curves_of_run(); });
    attempt("", [&] { read_network_of_run(); });
    attempt("no graph before the rewrite: ", [&] {
      if (evaluation_) read_float_network();
    });
    attempt("no verification: ", [&] { read_verification(); });
    attempt("", [&] { open_variables(); });
    if (source_ && evaluation_) look();
    report_.results = result_rows(directory_, report_, costs_);
    return std::move(report_);
  }

 private:
  /// Before the end of a run summary.json is missing, or of the machine on which the run was stopped earlier.
  void read_machine() {
    const bool complete = report_.listed.value("complete", false);
    if (report_.summary.is_object() && report_.summary.contains("machine"))
      report_.machine = report_.summary["machine"];
    if (!complete && is_there(directory_.machine())) report_.machine = read_json(directory_.machine());
  }

  /// What cannot be had becomes a note.
  void attempt(const std::string& lacking, const std::function<void()>& section) {
    try {
      section();
    } catch (const UsageError&) {
      throw;
    } catch (const Error& error) {
      report_.notes.push_back(lacking + error.what());
    }
  }

  /// A run of `quantize` that holds the calibrated network has trained all the same.
  void read_curves_of_run() {
    report_.curves = read_curves(directory_);
    add_note(report_.curves.damage);
    if (report_.curves.lines > 0 || !is_there(trained_in(directory_) / "config.json")) return;
    report_.curves = read_curves(RunDirectory::open(trained_in(directory_)));
    report_.notes.emplace_back("the curves are those of the training, whose network is not the one in the run");
  }

  void read_float_network() {
    const Graph graph = network_of(directory_, settings_, *evaluation_);
    report_.before = draw_graph(graph);
    costs_.in_float = cost_of(graph, evaluation_->images.shape()[0]);
  }

  void read_network_of_run() {
    const std::string graph = directory_.eval_graph().string();
    evaluation_ = std::make_unique<Classifier>(find_classifier(read_network(graph), graph, task_of(settings_)));
    is_float_ = quantize::quantization_of(evaluation_->graph).is_float();
    report_.after = draw_graph(evaluation_->graph);
    costs_.own = cost_of(evaluation_->graph, evaluation_->images.shape()[0]);
  }

  void open_variables() {
    source_ = std::make_unique<RunSource>(open_run(report_.path, ""));
    source_->settings.skip_broken = source_->settings.skip_broken || request_.skip_broken;
    add_note(source_->note);
    variables_ = read_safetensors(source_->checkpoint);
  }

  void add_note(std::string note) {
    constexpr std::string_view kNote = "note: ";
    if (note.starts_with(kNote)) note.erase(0, kNote.size());
    if (!note.empty()) report_.notes.push_back(std::move(note));
  }

  void read_verification() {
    if (!is_there(directory_.verification())) return;
    report_.verification = read_json(directory_.verification());
    const auto hash = report_.verification.find("variables");
    report_.verification_is_current =
        hash != report_.verification.end() && *hash == variables_hash(directory_.checkpoint());
  }

  /// The pictures; an unfinished run that holds a part out is not measured on the test pictures.
  void read_data() {
    progress_("data");
    data_ = std::make_unique<datasets::Splits>(load_data(*source_, request_.dataset, request_.data_dir));
    for (const std::string& note : data_->remarks().notes) add_note(note);
    report_.part = source_->note.empty() || !data_->validation ? "test" : "validation";
    report_.part_examples = pictures().size();
    report_.noun = pictures().noun();
    for (int i = 0; i < pictures().classes; ++i) report_.class_names.push_back(pictures().class_name(i));
  }

  const datasets::Dataset& pictures() const { return report_.part == "validation" ? *data_->validation : data_->test; }

  void look() {
    const bool must_be_there = !request_.dataset.empty() || !request_.data_dir.empty();
    if (must_be_there)
      read_data();
    else
      attempt("no pictures: ", [&] { read_data(); });
    attempt("no figures of layers: ", [&] { look_at_layers(); });
    if (data_) attempt("no answers: ", [&] { ask_networks(); });
  }

  void look_at_layers() {
    LayerSubject subject{.network = *evaluation_, .variables = variables_.tensors, .examples = request_.examples};
    if (data_) {
      subject.pictures = &pictures();
      report_.layer_examples = std::min(request_.examples, pictures().size());
    }
    report_.layers = layer_figures(subject, progress_);
  }

  /// How a network is asked about examples.
  using AskNetwork = std::function<Evaluation(const datasets::Dataset& examples, const OnLogits& on_logits)>;

  void ask(const std::string& name, const AskNetwork& network) {
    constexpr std::int64_t kOften = 500;
    NetworkAnswers answers(asked_, *report_.task);
    answers.evaluation = network(asked_, [&](std::int64_t i, std::span<const float> row) {
      if (i % kOften == 0) progress_(concat(name, ", ", i, " of ", counted(asked_.size(), asked_.noun())));
      answers.add(i, row);
    });
    answers.worst = worst_examples(answers.evaluation, static_cast<std::size_t>(request_.pictures));
    if (report_.task == &reconstruction() && !answers.worst.empty())
      network(datasets::examples_at(asked_, answers.worst), [&](std::int64_t, std::span<const float> row) {
        answers.given_for_worst.emplace_back(row.begin(), row.end());
      });
    report_.answers.push_back({name, std::move(answers)});
  }

  void ask_session(const std::string& name, Session& session, const Classifier& network) {
    ask(name, [&](const datasets::Dataset& examples, const OnLogits& on_logits) {
      return evaluate(session, network, examples, on_logits);
    });
  }

  /// The float run that this one came from, or this one's variables without quantizers.
  void ask_float() {
    if (std::optional<FloatRun> origin = float_origin(directory_)) {
      try {
        require_fit(origin->evaluation, asked_, origin->graph_name);
        Session session(origin->evaluation.graph);
        session.restore(origin->checkpoint, Session::Restore::kVariables, origin->checkpoint_name);
        ask_session("float", session, origin->evaluation);
        report_.float_run = origin->path;
        return;
      } catch (const Error&) {
        // Another network has come to its place.
      }
    }
    Classifier in_float = without_quantizers(*evaluation_);
    Session session(in_float.graph);
    session.restore(variables_, Session::Restore::kByName, source_->checkpoint);
    ask_session("float", session, in_float);
  }

  /// All pictures; of a network with so many layers that this would take minutes, as many as keep their product.
  void choose_pictures() {
    constexpr std::int64_t kManyLayers = 250, kAnswersOfLayers = 125'000;
    const std::int64_t all = pictures().size();
    const auto layers =
        std::ranges::count_if(evaluation_->graph.nodes(), [](const Node* node) { return quantize::is_layer(*node); });
    const std::int64_t asked_for = request_.examples > ReportRequest::kExamples ? request_.examples : 1;
    const std::int64_t most = layers > kManyLayers ? std::max(kAnswersOfLayers / layers, asked_for) : all;
    asked_ = datasets::first_examples(pictures(), std::min(most, all));
    if (asked_.size() == all) return;
    add_note(concat("the network has ", layers, " layers: for this page it has answered the first ", asked_.size(),
                    " of ", all, " ", report_.part, " ", report_.noun, "s; --examples ", all,
                    " (in Python examples=", all, ") asks for all"));
    add_note(datasets::note_on_first(asked_, pictures()));
  }

  void ask_networks() {
    choose_pictures();
    require_fit(*evaluation_, asked_, directory_.eval_graph().string());
    if (!is_float_) ask_float();
    EvaluationSession simulation(*source_, asked_);
    ask_session(is_float_ ? "float" : own_stage(directory_, report_), simulation.session, simulation.classifier);
    if (!is_float_) attempt("no integers: ", [&] { ask_integers(); });
    report_.outputs = outputs_to_json(report_.answers, asked_, *report_.task);
    if (is_float_ || report_.task != &classification()) return;
    report_.comparison = compare(report_.answers.front().answers, report_.answers.back().answers, asked_,
                                 static_cast<std::size_t>(request_.pictures));
  }

  void ask_integers() {
    const integer::Model model = convert_run(directory_, source_->checkpoint, grid_of(asked_));
    require_fit(model, *evaluation_->task, asked_, directory_.eval_graph().string());
    ask("integers", [&](const datasets::Dataset& examples, const OnLogits& on_logits) {
      return evaluate_integers(model, *evaluation_->task, examples, on_logits);
    });
  }

  const ReportRequest& request_;
  const RunDirectory directory_;
  ReportProgress progress_;
  RunReport report_;
  TrainSettings settings_;
  RunCosts costs_;
  bool is_float_ = true;
  /// Null where they cannot be had.
  std::unique_ptr<Classifier> evaluation_;
  std::unique_ptr<RunSource> source_;
  std::unique_ptr<datasets::Splits> data_;
  /// The pictures that the networks answer.
  datasets::Dataset asked_;
  Safetensors variables_;
};

}  // namespace

Report gather_report(const ReportRequest& request, const ReportProgress& progress) {
  if (request.runs.empty()) throw UsageError("give at least one run");
  Report report{.runs = {}, .sensitivity = read_sensitivity(request.sensitivity)};
  set_thread_count(request.threads == 0 ? default_thread_count() : request.threads);
  std::vector<std::string> paths;
  for (const std::string& path : request.runs) paths.push_back(run_at(path));
  // What is no run is found before minutes of evaluations.
  for (const std::string& path : paths) RunDirectory::open(path);
  const std::vector<std::string> names = numbered(names_of(request.runs));
  for (std::size_t i = 0; i < paths.size(); ++i)
    report.runs.push_back(examine_run(paths[i], names[i], request, progress));
  return report;
}

RunReport examine_run(const std::string& path, const std::string& name, const ReportRequest& request,
                      const ReportProgress& progress) {
  return RunExamination(path, name, request, progress).run();
}

}  // namespace miniqat::training
