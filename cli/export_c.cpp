#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "cli/export.h"
#include "cli/notes.h"
#include "core/tensors/random.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "exporters/c/source.h"
#include "exporters/c/text.h"
#include "training/model_source.h"
#include "training/run/data_of_run.h"
#include "training/run/integer_source.h"
#include "training/settings/usage_error.h"
#include "training/task/task.h"

namespace miniqat::cli {

using namespace training;
using Json = nlohmann::ordered_json;

namespace {

namespace fs = std::filesystem;

/// The first test examples of the run's data set or, where it is not at hand, random ones.
Tensor test_images(const ExportArguments& arguments, const RunSource& run, const integer::Model& model) {
  const integer::TensorInfo& input = model.tensor(model.input);
  const std::int64_t count = arguments.test_vectors.value_or(kTestVectorsOfC);
  try {
    const datasets::Dataset test = load_data(run, arguments.dataset, arguments.data_dir).test;
    require_pictures_fit(model, test, run.directory.eval_graph().string());
    print_file_notes(test);
    return input_batch(test, input.grid, 0, std::min(count, test.size()));
  } catch (const Error& error) {
    if (!arguments.dataset.empty() || !arguments.data_dir.empty()) throw;
    std::fprintf(stderr, "miniqat export: test vectors from random pictures (%s)\n", printable(error.what()).c_str());
  }
  Random random(1);
  Tensor images(integer::batch_shape(count, input.shape), DType::kUInt8);
  for (std::uint8_t& value : images.values<std::uint8_t>())
    value = static_cast<std::uint8_t>(random.below(input.grid.quant_max() + 1));
  return images;
}

/// For the comment of the C files: what decides of the task, as the run's summary has it of its own variables.
std::string figure_line(const RunSource& run) {
  if (run.checkpoint != run.directory.checkpoint()) return "";
  const Json summary = json_if_there(run.directory.summary());
  const char* examples = recorded_of_data(run.directory, "inputs") == "numbers" ? "examples" : "pictures";
  for (const MeasureKind& kind : task_of(run.settings).measures)
    if (const std::optional<double> value = number_at(summary, concat("test_", kind.key).c_str())) {
      std::string name = kind.brief;
      name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
      return concat(name, " of the run on test ", examples, ": ", Measure{.kind = &kind, .value = *value}.text(), " (",
                    quantization_of(run.directory).label(), ").");
    }
  return "";
}

/// The memory of C code.
std::string memory_lines(const exporters::CFootprint& bytes, const integer::Model& model) {
  return concat("flash: ", counted(bytes.weights, "byte"), " of weights, ", bytes.constants,
                " of other constants, and the code, whose size depends on the compiler\n",
                "RAM: ", counted(bytes.arena, "byte"), " of activations, ", bytes.scratch,
                " of scratch, and the stack; the caller has the input (", model.tensor(model.input).shape.elements(),
                ") and the output (", model.tensor(model.output).shape.elements(), ")\n");
}

/// What makes the model's input of a run that was trained on sounds.
std::optional<exporters::CFrontEnd> front_end_of(const RunSource& run, const integer::Model& model) {
  if (recorded_of_data(run.directory, "sounds") != true) return {};
  const datasets::SoundOptions options = run.settings.sounds.options(run.settings.dataset);
  const Shape example = options.example_shape();
  if (example != model.tensor(model.input).shape) return {};
  if (options.features == datasets::Features::kRaw)
    return exporters::CFrontEnd{
        .rate = options.rate, .window = 1, .stride = 1, .steps = example[0], .bands = 0, .coefficients = 0};
  return exporters::CFrontEnd{.rate = options.rate,
                              .window = options.window(),
                              .stride = options.stride(),
                              .steps = example[0],
                              .bands = options.bands,
                              .coefficients = options.features == datasets::Features::kMfcc ? options.coefficients : 0,
                              .low_hz = options.low_hz,
                              .high_hz = options.high_hz,
                              .slaney = options.mel_scale == datasets::MelScale::kSlaney};
}

}  // namespace

std::string c_prefix_of(const ExportArguments& arguments) {
  return arguments.prefix.empty() ? exporters::identifier(fs::path(arguments.out).stem().string()) : arguments.prefix;
}

OutFiles c_files(const ExportedRun& exported) {
  const fs::path source = exported.arguments.out;
  if (source.extension() != ".c") throw UsageError("--out must end in .c (the header goes beside it)");
  const std::string& given = exported.arguments.prefix;
  const std::string prefix = c_prefix_of(exported.arguments);
  if (!exporters::is_identifier(prefix))
    throw UsageError(given.empty() ? concat("the names in the C file would begin with ", quote(prefix),
                                            ", which is not a C identifier: give --prefix")
                                   : concat("--prefix ", quote(given), " (or --name) is not a C identifier"));
  fs::path header = source;
  header.replace_extension(".h");
  const std::optional<exporters::CFrontEnd> front_end = front_end_of(exported.run, exported.model);
  exporters::CSource code = exporters::c_source(exported.model, prefix, header.filename().string(),
                                                test_images(exported.arguments, exported.run, exported.model),
                                                exported.bytes, figure_line(exported.run), front_end);
  OutFiles out{.files = {{header, std::move(code.header)}, {source, std::move(code.source)}},
               .words = memory_lines(code.footprint, exported.model)};
  if (front_end) {
    out.words += concat("sound: ", prefix, "_run_sound takes ", counted(front_end->samples(), "sample"),
                        " of 16 bits, ", front_end->rate, " a second\n");
    out.has_input = true;
  }
  return out;
}

}  // namespace miniqat::cli
