#include "training/verify/c_program.h"

#include <cstring>
#include <string_view>

#include "core/files/files.h"
#include "core/platform/working_directory.h"
#include "core/text/error.h"
#include "integer/model.h"
#include "training/verify/subprocess.h"

namespace miniqat::training {
namespace {

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
  if (bytes.size() != output.bytes()) fail("the C program wrote ", bytes.size(), " bytes instead of ", output.bytes());
  std::memcpy(output.raw(), bytes.data(), bytes.size());
  return {.runtime = concat("C (", c_compiler(), ")"), .output = output};
}

}  // namespace miniqat::training
