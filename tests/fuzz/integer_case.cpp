#include "tests/fuzz/integer_case.h"

#include <array>
#include <cmath>
#include <cstring>

#include "core/files/files.h"
#include "core/files/safetensors.h"
#include "core/graph/graph_json.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "exporters/onnx/onnx.h"
#include "integer/engine.h"
#include "integer/format/model_file.h"
#include "integer/reference/engine.h"
#include "tests/exporters/c/c_project.h"
#include "tests/quantize/convert/integer_check.h"
#include "tests/runtimes/judge.h"

namespace miniqat::fuzz {
namespace {

using integer::Model;

constexpr std::array<const char*, 4> kNames = {"engine", "simulation", "c", "onnx"};

std::string judge_engine(const IntegerCase& test) {
  set_thread_count(test.threads);
  const Model& model = test.model;
  const std::vector<Tensor> expected = integer::reference::run(model, test.images);
  integer::Engine engine(model);
  const std::vector<Tensor> found = engine.run_all(test.images);
  const std::string who = concat("the fast engine, ", test.threads, " threads, batch ", test.images.shape()[0], ": ");
  for (const integer::Operation& operation : model.operations) {
    const auto output = static_cast<std::size_t>(operation.output);
    const auto a = found[output].values<std::uint8_t>(), b = expected[output].values<std::uint8_t>();
    for (std::size_t i = 0; i < b.size(); ++i)
      if (a[i] != b[i])
        return concat(who, "operation \"", operation.name, "\" gives ", int{a[i]}, " at ", i, " of ",
                      expected[output].shape(), ", the reference loops ", int{b[i]});
  }
  const Tensor& output = engine.run(test.images);
  const Tensor& expected_output = expected[static_cast<std::size_t>(model.output)];
  if (std::memcmp(output.raw(), expected_output.raw(), output.bytes()) != 0)
    return who + "run() gives another output than run_all()";
  return "";
}

std::string judge_simulation(const IntegerCase& test) {
  set_thread_count(test.threads);
  for (const testing::OperationCheck& check :
       testing::check_operations(test.net->evaluation, test.net->variables, test.model, test.images))
    if (check.largest > 1 + std::floor(check.bias_steps))
      return concat("operation \"", check.operation, "\": integers and simulated graph are ", check.largest,
                    " steps apart given equal inputs, ", 1 + std::floor(check.bias_steps), " are explained; ",
                    check.different, " of ", check.elements, " differ");
  return "";
}

std::vector<std::string> judge_c(const std::vector<IntegerCase>& cases) {
  testing::CProject project;
  for (std::size_t k = 0; k < cases.size(); ++k) project.add(concat("m", k), cases[k].model, cases[k].images);
  std::vector<std::string> wrong(cases.size());
  if (!project.compile("-std=c99 -O1")) {
    if (cases.size() == 1) return {"the exported C does not compile"};
    for (std::size_t k = 0; k < cases.size(); ++k) wrong[k] = judge(cases[k]);
    return wrong;
  }
  for (std::size_t k = 0; k < cases.size(); ++k)
    if (const int status = project.self_test(concat("m", k)); status != 0)
      wrong[k] = concat("C: operation ", status, " gives other integers than the reference loops");
  return wrong;
}

std::string judge_onnx_output(const IntegerCase& test, const std::string& output) {
  const integer::Grid& grid = test.model.tensor(test.model.output).grid;
  const Tensor expected = integer::reference::run(test.model, test.images)[static_cast<std::size_t>(test.model.output)];
  const auto wanted = expected.values<std::uint8_t>();
  if (output.size() != wanted.size() * sizeof(float)) return concat("ONNX Runtime gives ", output.size(), " bytes");
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    float real = 0;
    std::memcpy(&real, output.data() + i * sizeof real, sizeof real);
    const long found = std::lround(real / grid.scale) + grid.zero_point;
    // It rounds ties otherwise.
    if (std::labs(found - wanted[i]) > 1)
      return concat("ONNX Runtime: operation \"", test.model.operations.back().name, "\" gives ", found, " at ", i,
                    ", the reference loops ", int{wanted[i]});
  }
  return "";
}

std::vector<std::string> judge_onnx(const std::vector<IntegerCase>& cases) {
  if (const std::string why = testing::why_no_runtimes(); !why.empty()) fail("ONNX Runtime is not installed: ", why);
  std::vector<testing::Case> files;
  for (const IntegerCase& test : cases) files.push_back({exporters::onnx(test.model), test.images});
  const testing::Verdict verdict = testing::judge(testing::kOnnxRuntime, files);
  std::vector<std::string> wrong(cases.size());
  if (verdict.status != 0) {
    if (cases.size() == 1) return {"ONNX Runtime: " + verdict.err};
    for (std::size_t k = 0; k < cases.size(); ++k) wrong[k] = judge(cases[k]);
    return wrong;
  }
  for (std::size_t k = 0; k < cases.size(); ++k) wrong[k] = judge_onnx_output(cases[k], verdict.outputs[k]);
  return wrong;
}

}  // namespace

std::vector<std::string> judge(const std::vector<IntegerCase>& cases) {
  if (cases.empty()) return {};
  const Against against = cases.front().against;
  if (against == Against::kC) return judge_c(cases);
  if (against == Against::kOnnx) return judge_onnx(cases);
  std::vector<std::string> wrong;
  for (const IntegerCase& test : cases)
    wrong.push_back(against == Against::kEngine ? judge_engine(test) : judge_simulation(test));
  return wrong;
}

std::string judge(const IntegerCase& test) {
  try {
    return judge(std::vector{test}).front();
  } catch (const std::exception& error) {
    return concat("throws ", error.what());
  }
}

std::string save(const IntegerCase& test, const std::filesystem::path& directory, const std::string& name) {
  std::filesystem::create_directories(directory);
  const std::string stem = (directory / name).string();
  write_file_atomically(stem + ".miniqat", integer::to_bytes(test.model));
  write_safetensors(stem + ".images.safetensors",
                    {.tensors = {{"images", test.images}},
                     .metadata = {{"threads", std::to_string(test.threads)},
                                  {"against", kNames[static_cast<std::size_t>(test.against)]}}});
  if (test.net != nullptr) {
    write_graph(stem + ".graph.json", test.net->evaluation);
    write_safetensors(stem + ".variables.safetensors", {.tensors = test.net->variables, .metadata = {}});
  }
  return stem + ".miniqat";
}

IntegerCase load_integers(const std::filesystem::path& path) {
  const std::string stem = std::filesystem::path(path).replace_extension().string();
  const Safetensors images = read_safetensors(stem + ".images.safetensors");
  IntegerCase test{.model = integer::read_model(path), .images = images.tensors.at("images")};
  test.threads = std::stoi(images.metadata.at("threads"));
  for (std::size_t k = 0; k < kNames.size(); ++k)
    if (images.metadata.at("against") == kNames[k]) test.against = static_cast<Against>(k);
  if (test.against == Against::kSimulation)
    test.net = std::make_shared<testing::TrainedNet>(testing::TrainedNet{
        read_graph(stem + ".graph.json"), read_safetensors(stem + ".variables.safetensors").tensors});
  return test;
}

}  // namespace miniqat::fuzz
