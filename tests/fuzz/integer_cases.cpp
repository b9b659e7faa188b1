#include "tests/fuzz/integer_cases.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/files.h"
#include "core/instruction_set.h"
#include "core/parallel.h"
#include "core/random.h"
#include "core/safetensors.h"
#include "exporters/onnx.h"
#include "integer/engine.h"
#include "integer/model_file.h"
#include "integer/reference/engine.h"
#include "quantize/convert.h"
#include "tests/exporters/c_project.h"
#include "tests/integer/random_model.h"
#include "tests/quantize/integer_check.h"
#include "tests/quantize/random_net.h"
#include "tests/quantize/trained_net.h"
#include "tests/runtimes/judge.h"

namespace miniqat::fuzz {
namespace {

using integer::Model;
using integer::Operation;

std::int64_t any(Random& random, std::initializer_list<std::int64_t> list) {
  return list.begin()[random.below(list.size())];
}

Model random_model(std::uint64_t seed) {
  Random random(mix(seed, hash_text("model")));
  if (random.below(5) == 0) return testing::random_network(seed);
  const bool image = random.below(5) != 0;
  const Shape input = image ? Shape{any(random, {1, 2, 3, 5, 7, 8, 13, 17}), any(random, {1, 2, 3, 5, 7, 8, 11, 16}),
                                    any(random, {1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 33, 64, 67})}
                            : Shape{any(random, {1, 2, 3, 7, 16, 31, 64, 65, 127, 300})};
  testing::RandomModel net(seed, input, {.only_8_bits = random.below(4) == 0});
  for (std::uint64_t k = 1 + random.below(5); k > 0; --k) net.anything();
  if (random.below(4) == 0) net.mul(net.last(), net.last());
  if (random.below(3) == 0) net.fully_connected(any(random, {1, 2, 5, 16, 17, 33}));
  return net.finish();
}

quantize::RewriteOptions random_options(Random& random) {
  quantize::RewriteOptions options;
  options.weight_bits = 2 + static_cast<int>(random.below(7));
  options.activation_bits = 2 + static_cast<int>(random.below(7));
  options.symmetric = random.below(3) == 0;
  options.symmetric_weights = random.below(3) == 0;
  options.per_channel = random.below(2) == 0;
  options.quantize_input = random.below(2) == 0;
  options.bn_fold = random.below(2) == 0 ? quantize::BnFold::kTf : quantize::BnFold::kSingle;
  return options;
}

Tensor rows(const Tensor& tensor, std::int64_t n) {
  std::vector<std::int64_t> extents = tensor.shape().to_vector();
  extents[0] = n;
  return Tensor::view(tensor.raw(), {Shape(extents), tensor.dtype()}).clone();
}

/// Where the fast engine differs from the reference loops first; "" where nowhere.
struct Difference {
  std::string text;
  /// Of the operation.
  std::size_t index = 0;
};

Difference first_difference(const Model& model, const Tensor& images) {
  const std::vector<Tensor> expected = integer::reference::run(model, images);
  integer::Engine engine(model);
  const std::vector<Tensor> found = engine.run_all(images);
  for (std::size_t k = 0; k < model.operations.size(); ++k) {
    const Tensor& a = found[static_cast<std::size_t>(model.operations[k].output)];
    const Tensor& b = expected[static_cast<std::size_t>(model.operations[k].output)];
    for (std::int64_t i = 0; i < b.elements(); ++i)
      if (a.data<std::uint8_t>()[i] != b.data<std::uint8_t>()[i])
        return {concat("operation \"", model.operations[k].name, "\" gives ", int{a.data<std::uint8_t>()[i]}, " at ", i,
                       " of ", b.shape(), ", the reference loops ", int{b.data<std::uint8_t>()[i]}),
                k};
  }
  const Tensor& output = engine.run(images);
  const Tensor& expected_output = expected[static_cast<std::size_t>(model.output)];
  if (std::memcmp(output.raw(), expected_output.raw(), output.bytes()) != 0)
    return {"run() gives another output than run_all()", model.operations.size()};
  return {};
}

/// The operation alone, where it has one input, and what it was given.
std::pair<Model, Tensor> alone(const Model& model, std::size_t index, const Tensor& images) {
  Operation operation = model.operations[index];
  const auto input = static_cast<std::size_t>(operation.inputs.front());
  Model single{.name = operation.name,
               .tensors = {model.tensors[input], model.tensors[static_cast<std::size_t>(operation.output)]},
               .input = 0,
               .output = 1};
  const Tensor given = integer::reference::run(model, images)[input];
  operation.inputs = {0};
  operation.output = 1;
  single.operations = {operation};
  return {single, given};
}

std::string judge_engine(const Model& model, const Tensor& images, const std::filesystem::path& directory,
                         const std::string& name) {
  const Difference found = first_difference(model, images);
  if (found.text.empty()) return "";
  Model smaller = model;
  Tensor given = images;
  if (found.index < model.operations.size() && model.operations[found.index].inputs.size() == 1) {
    const auto [single, single_input] = alone(model, found.index, images);
    if (!first_difference(single, single_input).text.empty()) {
      smaller = single;
      given = single_input;
    }
  }
  int threads = thread_count();
  for (int fewer = 1; fewer < threads; ++fewer) {
    set_thread_count(fewer);
    if (!first_difference(smaller, given).text.empty()) threads = fewer;
  }
  set_thread_count(threads);
  for (std::int64_t n = 1; n < given.shape()[0]; ++n)
    if (!first_difference(smaller, rows(given, n)).text.empty()) given = rows(given, n);
  const std::string stem = (directory / name).string();
  std::filesystem::create_directories(directory);
  write_file_atomically(stem + ".miniqat", integer::to_bytes(smaller));
  write_safetensors(stem + ".images.safetensors",
                    {.tensors = {{"images", given}}, .metadata = {{"threads", std::to_string(threads)}}});
  return concat("the fast engine, ", threads, " threads, batch ", given.shape()[0], ": ",
                first_difference(smaller, given).text, "\n  miniqat_differential --replay ", stem, ".miniqat");
}

/// The simulated graph beside the integers.
std::string judge_simulation(const testing::TrainedNet& net, const Model& model, const Tensor& images) {
  for (const testing::OperationCheck& check : testing::check_operations(net.evaluation, net.variables, model, images))
    if (check.largest > 1 + std::floor(check.bias_steps))
      return concat("operation \"", check.operation, "\": integers and simulated graph are ", check.largest,
                    " steps apart given equal inputs, ", 1 + std::floor(check.bias_steps), " are explained; ",
                    check.different, " of ", check.elements, " differ");
  return "";
}

}  // namespace

std::string judge_integers(std::uint64_t seed, const std::filesystem::path& directory, const std::string& name) {
  Random random(seed);
  set_thread_count(1 + static_cast<int>(random.below(8)));
  if (random.below(8) != 0) {
    const Model model = random_model(seed);
    return judge_engine(model, testing::random_images(random, model, any(random, {1, 1, 2, 3, 5, 7})), directory, name);
  }
  const testing::TrainedNet net = testing::train_briefly(testing::well_formed_net(seed), random_options(random), seed);
  const Model model = quantize::convert(net.evaluation, net.variables, {.input = testing::kPictures});
  const Tensor images = testing::images_for(net.evaluation, model, seed);
  const std::string wrong = judge_engine(model, images, directory, name);
  return wrong.empty() ? judge_simulation(net, model, images) : wrong;
}

std::string replay_integers(const std::filesystem::path& path) {
  const std::string stem = std::filesystem::path(path).replace_extension().string();
  const Safetensors images = read_safetensors(stem + ".images.safetensors");
  set_thread_count(std::stoi(images.metadata.at("threads")));
  return first_difference(integer::read_model(path), images.tensors.at("images")).text;
}

namespace {

constexpr int kExported = 12;

std::string judge_c(const std::vector<Model>& models, Random& random) {
  testing::CProject project;
  for (std::size_t k = 0; k < models.size(); ++k)
    project.add(concat("m", k), models[k], testing::random_images(random, models[k], 3));
  if (!project.compile("-std=c99 -O1")) return "the exported C does not compile";
  for (std::size_t k = 0; k < models.size(); ++k)
    if (const int status = project.self_test(concat("m", k)); status != 0)
      return concat("C of ", models[k].name, ": operation ", status, " gives other integers than the reference loops");
  return "";
}

/// One operation each: ties are rounded otherwise there, and what follows may magnify the step that this makes.
Model random_operation(std::uint64_t seed) {
  Random random(mix(seed, hash_text("operation")));
  const Shape input{any(random, {1, 3, 5, 8, 13}), any(random, {1, 2, 5, 7}), any(random, {1, 2, 3, 8, 17})};
  testing::RandomModel net(seed, input);
  net.anything();
  return net.finish();
}

std::string judge_onnx(const std::vector<Model>& models, Random& random) {
  if (!testing::why_no_runtimes().empty()) return "";
  std::vector<testing::Case> cases;
  for (const Model& model : models) cases.push_back({exporters::onnx(model), testing::random_images(random, model, 3)});
  const testing::Verdict verdict = testing::judge(testing::kOnnxRuntime, cases);
  if (verdict.status != 0) return "ONNX Runtime: " + verdict.err;
  for (std::size_t k = 0; k < models.size(); ++k) {
    const integer::Grid& grid = models[k].tensor(models[k].output).grid;
    const Tensor expected =
        integer::reference::run(models[k], cases[k].images)[static_cast<std::size_t>(models[k].output)];
    const auto* reals = reinterpret_cast<const float*>(verdict.outputs[k].data());
    for (std::int64_t i = 0; i < expected.elements(); ++i) {
      const long found = std::lround(reals[i] / grid.scale) + grid.zero_point;
      const long wanted = expected.data<std::uint8_t>()[i];
      if (std::labs(found - wanted) > 1)
        return concat("ONNX Runtime: ", models[k].name, " gives ", found, " at ", i, ", the reference loops ", wanted);
    }
  }
  return "";
}

}  // namespace

std::string judge_exports(std::uint64_t seed) {
  Random random(seed);
  std::vector<Model> models;
  for (std::uint64_t k = 0; k < kExported; ++k) models.push_back(random_model(mix(seed, k)));
  const std::string wrong = judge_c(models, random);
  if (!wrong.empty()) return wrong;
  models.clear();
  for (std::uint64_t k = 0; k < 2 * kExported; ++k) models.push_back(random_operation(mix(seed, k)));
  return judge_onnx(models, random);
}

}  // namespace miniqat::fuzz
