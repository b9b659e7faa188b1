#include "cli/export.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/flags/command_line.h"
#include "cli/flags/setting_flags.h"
#include "cli/inputs.h"
#include "cli/model_start.h"
#include "cli/notes.h"
#include "core/files/files.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "exporters/json.h"
#include "exporters/onnx/onnx.h"
#include "exporters/tflite/tflite.h"
#include "integer/format/model_file.h"
#include "integer/model.h"
#include "training/run/integer_source.h"
#include "training/run/run_source.h"
#include "training/settings/train_settings.h"
#include "training/settings/usage_error.h"

namespace miniqat::cli {

using namespace training;

namespace {

namespace fs = std::filesystem;

OutFiles tflite_file(const ExportedRun& exported) {
  const ExportArguments& arguments = exported.arguments;
  const exporters::TfliteOptions options{
      .float_io = arguments.float_io, .int8 = arguments.int8, .int4 = arguments.int4};
  return {.files = {{arguments.out, exporters::tflite(exported.model, options)}},
          .shift = exporters::is_int8(exported.model, options) ? 128 : 0};
}

OutFiles onnx_file(const ExportedRun& exported) {
  const ExportArguments& arguments = exported.arguments;
  return {.files = {{arguments.out, exporters::onnx(exported.model, {.packed_4_bits = !arguments.unpacked,
                                                                     .opset = arguments.opset})}}};
}

OutFiles json_file(const ExportedRun& exported) {
  return {.files = {{exported.arguments.out, exporters::json(exported.model, exported.bytes)}}};
}

OutFiles miniqat_file(const ExportedRun& exported) {
  return {.files = {{exported.arguments.out, integer::to_bytes(exported.model)}},
          .words = concat("weights: ", counted(exported.model.weight_bytes(), "byte"), ", packed to their bits\n")};
}

struct Format {
  std::string name;
  /// The ending of its files; the first format with an ending is the one that it chooses.
  std::string ending;
  std::string help;
  /// Nothing is written where one throws. Null: the format holds the float network.
  OutFiles (*files)(const ExportedRun&);
  /// Flags that it takes and not every format does.
  std::vector<std::string> flags;
  /// Whether the files map the pictures' bytes to the input's integers (input_from_byte).
  bool maps_bytes;
};

/// A row for each --format: --help, errors and `miniqat export` itself go by it.
const std::vector<Format>& formats() {
  static const std::vector<Format> kFormats = {
      {"miniqat", ".miniqat", "for the engine here, weights packed to their bits", miniqat_file, {}, false},
      {"tflite",
       ".tflite",
       "TensorFlow Lite (LiteRT), 8 bits, weights of 4 with --int4",
       tflite_file,
       {"--float-io", "--int8", "--int4"},
       false},
      {"onnx", ".onnx", "ONNX Runtime, QDQ", onnx_file, {"--8-bit-weights", "--opset"}, false},
      {"onnx-float", ".onnx", "the float network", nullptr, {"--graph", "--image-size", "--opset"}, false},
      {"c",
       ".c",
       "C99 source and header",
       c_files,
       {"--prefix", "--test-vectors", "--dataset", "--data-dir", "--skip-broken"},
       true},
      {"json", ".json", "plain integers", json_file, {}, true},
      {"html",
       ".html",
       "a page that runs the integers in a browser",
       html_file,
       {"--compare", "--test-vectors", "--dataset", "--data-dir", "--skip-broken"},
       true}};
  return kFormats;
}

const Format& format_of(const ExportArguments& arguments) {
  return *std::ranges::find(formats(), arguments.format, &Format::name);
}

/// The ending of --out chooses where --format does not, and may not name another format.
void settle_format(ExportArguments& arguments) {
  const std::string ending = fs::path(arguments.out).extension().string();
  const auto named = std::ranges::find(formats(), ending, &Format::ending);
  if (named == formats().end()) {
    if (!arguments.format.empty()) return;
    std::vector<std::string> endings;
    for (const Format& format : formats())
      if (std::ranges::find(endings, format.ending) == endings.end()) endings.push_back(format.ending);
    throw UsageError(
        concat("--format is required: --out ", quote(arguments.out), " does not end in ", alternatives(endings)));
  }
  if (arguments.format.empty()) arguments.format = named->name;
  if (format_of(arguments).ending != ending)
    throw UsageError(concat("--format ", arguments.format, " contradicts --out ", quote(arguments.out),
                            ", which names the format ", named->name));
}

/// "c or html".
std::string formats_with(const std::string& flag) {
  std::vector<std::string> names;
  for (const Format& format : formats())
    if (std::ranges::find(format.flags, flag) != format.flags.end()) names.push_back(format.name);
  return alternatives(names);
}

/// A flag that means nothing to the chosen format is a misunderstanding.
void check(const ExportArguments& arguments, const Command& command) {
  const std::vector<std::string>& own = format_of(arguments).flags;
  for (const Format& format : formats())
    for (const std::string& flag : format.flags)
      if (command.was_given(flag) && std::ranges::find(own, flag) == own.end())
        throw UsageError(concat(flag, " is for --format ", formats_with(flag)));
  const bool is_float = format_of(arguments).files == nullptr;
  if (is_float && command.was_given("--input-scale"))
    throw UsageError("--input-scale is for formats of integers: the float network takes real numbers");
  if (!is_float && arguments.run.empty()) throw MissingArgument("--run is required: RUN or --run RUN");
  if (arguments.run.empty() && arguments.graph.empty()) throw UsageError("give a run, or --graph");
  if (!arguments.run.empty() && !arguments.graph.empty()) throw UsageError("give a run or --graph, not both");
  if (command.was_given("--image-size") && arguments.graph.empty())
    throw UsageError("--image-size goes with --graph: a run has its own");
  if (arguments.format == "html" && command.was_given("--input-scale"))
    throw UsageError(
        "--input-scale is not for --format html: the pictures on the page are bytes of the run's data set");
  if (command.was_given("--input-zero-point") && !command.was_given("--input-scale"))
    throw UsageError("--input-zero-point goes with --input-scale");
  std::vector<fs::path> inputs = {arguments.run, arguments.graph, arguments.checkpoint, arguments.dataset,
                                  arguments.data_dir};
  inputs.insert(inputs.end(), arguments.compare.begin(), arguments.compare.end());
  require_no_input("--out", arguments.out, inputs);
  if (arguments.input_scale && (!std::isnormal(*arguments.input_scale) || *arguments.input_scale < 0))
    throw UsageError(concat("--input-scale must be a positive number, not ", *arguments.input_scale));
}

/// `bytes` is the grid of the pictures' bytes; none of numbers.
integer::Model convert_for(const RunSource& run, const std::optional<integer::Grid>& bytes, bool input_is_given) {
  if (quantization_of(run.directory).is_float())
    fail(run.directory.eval_graph().string(), ": this is a float network, no tensor of it has a range: ",
         "`miniqat calibrate` or `miniqat quantize` makes integers of it; --format onnx-float exports it as it is");
  integer::Model model = convert_run(run.directory, run.checkpoint, bytes);
  if (input_is_given && model.tensor(model.input).grid != bytes)
    fail(run.directory.eval_graph().string(), ": the network quantizes its input itself: leave out --input-scale");
  return model;
}

void make_folder_of(const fs::path& file) {
  std::error_code failure;
  if (file.has_parent_path()) fs::create_directories(file.parent_path(), failure);
  if (failure) fail(printable(file.parent_path().string()), ": ", failure.message());
}

void export_float(const ExportArguments& arguments) {
  const FloatNetwork network = float_network(arguments);
  make_folder_of(arguments.out);
  write_file_atomically(arguments.out, network.bytes);
  print_notes(network.notes);
  std::printf("%s: %s float32, %s\n", printable(arguments.out).c_str(), printable(network.name).c_str(),
              counted(network.bytes.size(), "byte").c_str());
  std::printf("%s", network.words.c_str());
}

std::string grid_text(const integer::Grid& grid, int shift) {
  return concat("integers from ", -shift, " to ", grid.quant_max() - shift, ", scale ", exact(grid.scale),
                ", zero point ", grid.zero_point - shift);
}

/// What an input of numbers is, or an output that is none of classes, and what goes between it and the data's units.
void print_grid(const ExportArguments& arguments, const std::string& end, const integer::Grid& grid, int shift,
                bool standardised) {
  const bool is_input = end == "input";
  std::string text = concat(end, ": ");
  if (arguments.float_io || (arguments.format == "onnx" && !is_input))
    text += "float32";
  else
    text += grid_text(grid, shift);
  if (standardised) {
    text += ", standardised";
    if (arguments.format == "c")
      text += concat(": ", c_prefix_of(arguments),
                     is_input ? "_quantize makes them of numbers in the units of the data"
                              : "_dequantize gives the numbers in the units of the data");
    else
      text += concat(" with ", end, "_mean and ", end, "_std, which the file has");
  }
  std::printf("%s\n", printable(text).c_str());
}

void export_run(const ExportArguments& arguments) {
  const RunSource run =
      with_skip_broken(open_run(arguments.run, arguments.checkpoint), arguments.skip_broken, arguments.dataset);
  const std::optional<integer::Grid> of_pictures =
      arguments.input_scale
          ? integer::Grid{.scale = *arguments.input_scale, .zero_point = arguments.input_zero_point, .bits = 8}
          : recorded_input(run);
  const integer::Model model = convert_for(run, of_pictures, arguments.input_scale.has_value());
  const integer::Grid bytes = of_pictures.value_or(model.tensor(model.input).grid);
  const Format& format = format_of(arguments);
  const OutFiles out = format.files({arguments, run, model, bytes});
  std::vector<FileContent> contents;
  std::size_t size = 0;
  for (const OutFile& file : out.files) {
    contents.push_back({.path = file.path, .bytes = file.bytes});
    size += file.bytes.size();
  }
  make_folder_of(arguments.out);
  write_files_atomically(contents);
  print_note(run.note);
  std::printf("%s: %s %s, %s, %s\n", printable(arguments.out).c_str(), printable(run.settings.model).c_str(),
              quantization_of(run.directory).label().c_str(), counted(model.operations.size(), "operation").c_str(),
              counted(size, "byte").c_str());
  std::printf("%s", out.words.c_str());
  const integer::Grid& input = model.tensor(model.input).grid;
  if (input != bytes && !arguments.float_io)
    std::printf("input: %s: not the pictures' bytes, %s%s\n", grid_text(input, out.shift).c_str(),
                format.maps_bytes ? "which input_from_byte maps to them"
                                  : "which the table that --format json writes as input_from_byte maps to them",
                out.shift == 0 ? "" : concat(", ", out.shift, " more than these").c_str());
  if (!of_pictures && !out.has_input)
    print_grid(arguments, "input", input, out.shift, model.input_standard.has_value());
  if (!model.task.empty())
    print_grid(arguments, "output", model.tensor(model.output).grid, out.shift, model.output_standard.has_value());
}

}  // namespace

void add_export(CommandLine& program) {
  Command command =
      program.command("export", "Write a run as an integer-only model for other runtimes, or its float network");
  const auto arguments = std::make_shared<ExportArguments>();
  command.run(arguments->run, "a run directory", Command::Run::kOptional);
  std::vector<std::string> names;
  std::string help;
  for (const Format& format : formats()) {
    names.push_back(format.name);
    help += concat(help.empty() ? "" : "; ", format.name, ": ", format.help);
  }
  command.option("--format", arguments->format, help + "; default: the ending of --out").one_of(names);
  command.option("--out", arguments->out, "the file to write or replace").required();
  command.option("--checkpoint", arguments->checkpoint,
                 "use the variables of this .safetensors file or run directory instead of the run's own");
  command.option("--graph", arguments->graph,
                 "onnx-float: a graph JSON with --checkpoint, or an ONNX model, instead of a run");
  command.option("--image-size", arguments->image_size, concat("with --graph, ", kImageSizeHelp));
  command.option("--input-scale", arguments->input_scale,
                 "the real number of one step of the input's bytes; default: as in the run's data set");
  command.option("--input-zero-point", arguments->input_zero_point, "with --input-scale: the byte of real 0")
      .in_range(0, 255);
  command.flag("--float-io", arguments->float_io, "tflite: float32 input and output instead of integers");
  command.flag(
      "--int8", arguments->int8,
      "tflite: int8 also where uint8 would do; weights of 8 bits need --symmetric-weights of train or calibrate for it");
  command.flag(
      "--int4", arguments->int4,
      "tflite: weights of at most 4 bits as INT4, two in a byte, beside int8; they need --symmetric-weights of train or calibrate");
  command.flag("--8-bit-weights", arguments->unpacked, "onnx: weights of 4 bits in 8-bit tensors");
  command
      .option(
          "--opset", arguments->opset,
          "onnx, onnx-float: the version of ONNX's operators, with the IR version of its time; default: the lowest that holds the network")
      .in_range(exporters::kOldestOpset, exporters::kNewestOpset);
  command.option("--prefix,--name", arguments->prefix, "c: the beginning of every name; default: the file's name");
  command
      .option("--test-vectors", arguments->test_vectors,
              concat("c: number of test pictures with expected integers, default ", kTestVectorsOfC,
                     "; html: of test pictures to choose from, default ", kPicturesOfHtml))
      .in_range(1, 1000);
  command.option("--dataset", arguments->dataset, "c, html: the data set of the test pictures; default: the run's own");
  command.option("--data-dir", arguments->data_dir, concat("c, html: ", kDataDirHelp));
  add_skip_broken(command, arguments->skip_broken);
  command
      .option("--compare", arguments->compare,
              "html: other runs on the same pictures, separated by commas; a slider on the page changes between them")
      .separated_by(',')
      .value_name("RUN,...")
      .shown_default("");
  command.action([arguments, command] {
    settle_format(*arguments);
    check(*arguments, command);
    format_of(*arguments).files == nullptr ? export_float(*arguments) : export_run(*arguments);
  });
}

}  // namespace miniqat::cli
