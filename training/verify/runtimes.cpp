#include "training/verify/runtimes.h"

#include <cstring>
#include <system_error>

#include "core/files/files.h"
#include "core/platform/system.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/json_text.h"
#include "training/verify/subprocess.h"
#include "training/verify/verifier.h"

namespace miniqat::training {
namespace {

namespace fs = std::filesystem;

const fs::path kSourceFolder = fs::path(MINIQAT_SOURCE_DIR) / "runtimes";

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// The raw output as the integers of the output's grid.
Tensor integers_from(const std::string& raw, const std::string& dtype, std::int64_t n,
                     const integer::TensorInfo& output) {
  const Shape shape = integer::batch_shape(n, output.shape);
  const bool real = dtype == "float32";
  const std::size_t expected = static_cast<std::size_t>(shape.elements()) * (real ? sizeof(float) : 1);
  if (raw.size() != expected) fail("the runtime wrote ", counted(raw.size(), "byte"), " instead of ", expected);
  if (real) {
    Tensor values(shape);
    std::memcpy(values.raw(), raw.data(), raw.size());
    return integers_of(values, output.grid);
  }
  if (dtype != "uint8" && dtype != "int8") fail("the runtime wrote ", dtype);
  Tensor integers(shape, DType::kUInt8);
  const int offset = dtype == "int8" ? 128 : 0;
  for (std::size_t i = 0; i < raw.size(); ++i)
    integers.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(static_cast<std::uint8_t>(raw[i]) + offset);
  return integers;
}

/// Reads pictures from one file and writes outputs to another. The compiler is told to include model.h first.
constexpr const char* kMain = R"c(#include <stdio.h>

static uint8_t input[MODEL_INPUT_SIZE], output[MODEL_OUTPUT_SIZE];

int main(int argc, char **argv) {
  FILE *pictures, *outputs;
  if (argc != 3) return 2;
  pictures = fopen(argv[1], "rb");
  outputs = fopen(argv[2], "wb");
  if (pictures == NULL || outputs == NULL) return 3;
  while (fread(input, 1, sizeof input, pictures) == sizeof input) {
    model_run(input, output);
    if (fwrite(output, 1, sizeof output, outputs) != sizeof output) return 4;
  }
  return fclose(outputs) == 0 ? 0 : 5;
}
)c";

void run_or_fail(const std::string& what, const std::vector<std::string>& command, std::chrono::seconds limit,
                 const std::function<void()>& check) {
  const Finished finished = run_program(command, limit, check);
  if (finished.timed_out)
    fail(what, " did not end within ", limit.count(), " s and was killed (--runtime-timeout gives it longer)");
  if (finished.status != 0)
    fail(what, " ended with status ", finished.status, finished.err.empty() ? "" : ": ",
         finished.err.substr(0, finished.err.find('\n')));
}

}  // namespace

fs::path Runtimes::default_folder() {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  const fs::path installed = program.parent_path().parent_path() / MINIQAT_RUNTIMES_FOLDER;
  for (const fs::path& folder : {installed, kSourceFolder})
    if (fs::exists(folder, ignored)) return folder;
  return fs::path(MINIQAT_INSTALL_PREFIX) / MINIQAT_RUNTIMES_FOLDER;
}

std::string Runtimes::missing() const {
  if (!fs::exists(folder_ / "onnxruntime.mjs")) return concat("no onnxruntime.mjs in ", folder_.string());
  const Finished node = run_program({"node", "--version"}, limit_, check_);
  if (node.timed_out) return concat("`node --version` did not end within ", limit_.count(), " s");
  if (node.status != 0) return "no Node.js (Debian's package nodejs)";
  if (!fs::exists(folder_ / "node_modules"))
    return concat("no node_modules in ", folder_.string(),
                  folder_ == kSourceFolder
                      ? ": run scripts/install-runtimes"
                      : ": run `npm ci` there, or in a copy of the folder that --runtimes names (docs/install.md)");
  return {};
}

RuntimeResult Runtimes::run(const std::string& format, const std::string& file, const integer::Model& model,
                            const Tensor& images, int threads) const {
  const WorkingDirectory work;
  const fs::path model_path = work / ("model." + format), images_path = work / "images", output_path = work / "output";
  write_file_atomically(model_path, file);
  write_file_atomically(images_path, {static_cast<const char*>(images.raw()), images.bytes()});
  const fs::path script = folder_ / (format == "onnx" ? "onnxruntime.mjs" : "litert.mjs");
  const std::int64_t n = images.shape()[0];
  std::vector<std::string> command = {
      "node", script.string(), model_path.string(), images_path.string(), std::to_string(n), output_path.string()};
  // LiteRT's WebAssembly build has one thread.
  if (format == "onnx") command.insert(command.end(), {"--threads", std::to_string(threads)});
  const Finished finished = run_program(command, limit_, check_);
  if (finished.timed_out)
    fail(script.filename().string(), " did not end within ", limit_.count(),
         " s and was killed (--runtime-timeout gives it longer)");
  if (finished.status != 0)
    fail(script.filename().string(), " ended with status ", finished.status, finished.err.empty() ? "" : ": ",
         first_line(finished.err));
  try {
    const nlohmann::ordered_json report = parse_json(first_line(finished.out));
    const std::string raw = read_file(output_path);
    return {.runtime = concat(report.at("runtime").get<std::string>(), " ", report.at("version").get<std::string>()),
            .output = integers_from(raw, report.at("dtype").get<std::string>(), n, model.tensor(model.output))};
  } catch (const nlohmann::json::exception& error) {
    fail(script.filename().string(), " printed no report: ", error.what());
  }
}

std::string c_compiler() {
  const Finished finished = run_program({"cc", "-dumpversion"}, std::chrono::seconds(60));
  return finished.status == 0 ? concat("cc ", finished.out.substr(0, finished.out.find('\n'))) : "";
}

RuntimeResult run_c(const CFiles& files, const integer::Model& model, const Tensor& images, std::chrono::seconds limit,
                    const std::function<void()>& check) {
  const WorkingDirectory work;
  write_file_atomically(work / "model.h", files.header);
  write_file_atomically(work / "model.c", files.source);
  write_file_atomically(work / "main.c", kMain);
  write_file_atomically(work / "pictures", {static_cast<const char*>(images.raw()), images.bytes()});
  const std::string program = (work / "program").string();
  run_or_fail("cc",
              {"cc", "-O2", "-DMODEL_NO_SELF_TEST", "-include", (work / "model.h").string(), "-o", program,
               (work / "main.c").string(), (work / "model.c").string()},
              limit, check);
  run_or_fail("the C program", {program, (work / "pictures").string(), (work / "outputs").string()}, limit, check);
  const std::string bytes = read_large_file(work / "outputs");
  const Shape& example = model.tensor(model.output).shape;
  Tensor output(integer::batch_shape(images.shape()[0], example), DType::kUInt8);
  if (bytes.size() != output.bytes())
    fail("the C program wrote ", counted(bytes.size(), "byte"), " instead of ", output.bytes());
  std::memcpy(output.raw(), bytes.data(), bytes.size());
  return {.runtime = concat("C (", c_compiler(), ")"), .output = output};
}

}  // namespace miniqat::training
