#include "quantize/rewrite/rewrite.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/flags/command_line.h"
#include "cli/flags/setting_flags.h"
#include "cli/inputs.h"
#include "cli/model_start.h"
#include "cli/notes.h"
#include "core/graph/graph_json.h"
#include "core/text/error.h"
#include "training/run/run_source.h"
#include "training/settings/rewrite_settings.h"

namespace miniqat::cli {

using namespace training;

namespace {

struct RewriteArguments {
  std::string graph;
  std::string mode = "train";
  std::string out;
  std::string image_size;
  bool report = false;
};

void note_unchanged(const Graph& graph, const std::string& source) {
  const quantize::Quantization found = quantize::quantization_of(graph);
  if (!found.is_float())
    print_note(concat("note: ", source, " is quantized already (", found.label(), ", ",
                      counted(found.quantizers, "quantizer"), "); nothing changed"));
}

void rewrite(const RewriteArguments& arguments, const RewriteSettings& options, const std::vector<std::string>& given) {
  check_options<RewriteSettings>([&] { options.check(); });
  require_ending("--out", arguments.out, {".json"});
  // A graph may be rewritten in its own file, but an ONNX model is no graph JSON.
  require_no_input("--out", arguments.out, {options.bits_config, is_onnx_file(arguments.graph) ? arguments.graph : ""});
  auto [graph, notes] = read_graph_file(arguments.graph, arguments.image_size);
  require_scope(graph, options.scope, arguments.graph);
  if (arguments.mode == "train") quantize::require_observing(graph, arguments.graph);
  const std::string before = graph_to_json(graph);
  const quantize::RewriteReport report = arguments.mode == "train" ? quantize::create_training_graph(graph, options)
                                                                   : quantize::create_eval_graph(graph, options);
  require_as_asked(report, options, RewriteSettings(), given, arguments.graph);
  if (graph_to_json(graph) == before) note_unchanged(graph, arguments.graph);
  if (!arguments.out.empty()) write_graph(arguments.out, graph);
  for (const std::string& remark : report.remarks) std::erase(notes, "note: " + remark);
  print_notes(notes);
  if (arguments.report) {
    std::printf("%s", with_flags(report.text()).c_str());
    return;
  }
  std::fprintf(stderr, "%s", with_flags(report.notes()).c_str());
  if (arguments.out.empty()) {
    std::printf("%s", graph_to_json(graph).c_str());
    return;
  }
  const quantize::Quantization found = quantize::quantization_of(graph);
  std::printf("%s: %s (%s)\n", printable(arguments.out).c_str(), counted(found.quantizers, "quantizer").c_str(),
              found.label().c_str());
}

}  // namespace

void add_rewrite(CommandLine& program) {
  Command command =
      program.command("rewrite", "Fold batch norms into their layers and insert quantizers, in a graph file");
  const auto arguments = std::make_shared<RewriteArguments>();
  command.option("--graph", arguments->graph, "the graph to rewrite: a graph JSON, or an ONNX model").required();
  command.option("--image-size", arguments->image_size, kImageSizeHelp);
  command.option("--mode", arguments->mode, "train or eval").one_of({"train", "eval"});
  command.option("--out", arguments->out, "the file for the rewritten graph; default: printed, unless the report is");
  command.flag("--report", arguments->report, "print the matched, skipped and quantized nodes, with reasons");
  const auto flags = std::make_shared<SettingFlags<RewriteSettings>>(command, "Quantization");
  command.action([arguments, flags] {
    RewriteSettings options;
    flags->apply(options);
    const bool folds_late = options.bn_fold == quantize::BnFold::kLate;
    for (const char* setting : {"quant_delay", "freeze_bn_delay", "bn_fold", "ema_decay"})
      if (arguments->mode == "eval" && flags->was_given(setting) &&
          !(setting == std::string_view("bn_fold") && folds_late))
        refuse_ignored(flag_of(setting), "--mode eval");
    refuse_ignored_symmetry(*flags, options);
    load_layer_bits(options);
    rewrite(*arguments, options, flags->given());
  });
}

}  // namespace miniqat::cli
