#include <chrono>
#include <set>

#include "core/engine/session.h"
#include "integer/reference/engine.h"
#include "tests/fuzz/cases.h"
#include "tests/fuzz/integer_case.h"

namespace miniqat::fuzz {
namespace {

using integer::Model;
using integer::Operation;

Tensor first_rows(const Tensor& tensor, std::int64_t n) {
  std::vector<std::int64_t> extents = tensor.shape().to_vector();
  extents[0] = n;
  return tensor.slice(0, Shape(extents)).clone();
}

/// The operations that lead to operation `index`, which ends the model.
Model ending_at(const Model& model, std::size_t index) {
  std::set<int> needed = {model.operations[index].output, model.input};
  for (std::size_t k = index + 1; k-- > 0;)
    if (needed.contains(model.operations[k].output))
      needed.insert(model.operations[k].inputs.begin(), model.operations[k].inputs.end());
  Model result{.name = model.name};
  std::vector<int> places(model.tensors.size());
  for (const int tensor : needed) {
    places[static_cast<std::size_t>(tensor)] = static_cast<int>(result.tensors.size());
    result.tensors.push_back(model.tensor(tensor));
  }
  const auto place = [&](int tensor) { return places[static_cast<std::size_t>(tensor)]; };
  for (std::size_t k = 0; k <= index; ++k) {
    Operation operation = model.operations[k];
    if (!needed.contains(operation.output)) continue;
    for (int& input : operation.inputs) input = place(input);
    operation.output = place(operation.output);
    result.operations.push_back(operation);
  }
  result.input = place(model.input);
  result.output = place(model.operations[index].output);
  return result;
}

/// The graph as far as a tensor, and its variables.
std::shared_ptr<const testing::TrainedNet> ending_at(const testing::TrainedNet& net, const std::string& tensor) {
  testing::TrainedNet result{.evaluation = net.evaluation.clone(), .variables = {}};
  Graph& graph = result.evaluation;
  graph.set_outputs({graph.at(tensor).output()});
  std::vector<Node*> nodes = graph.topological_order();
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node)
    if ((*node)->uses().empty() && (*node)->name() != tensor) graph.erase(**node);
  for (const auto& [name, value] : Session(graph).variables()) result.variables[name] = net.variables.at(name);
  return std::make_shared<testing::TrainedNet>(std::move(result));
}

IntegerCase ending_at(const IntegerCase& test, std::size_t index) {
  IntegerCase result = test;
  result.model = ending_at(test.model, index);
  if (test.net != nullptr) result.net = ending_at(*test.net, result.model.tensor(result.model.output).name);
  return result;
}

}  // namespace

IntegerCase alone(const IntegerCase& test, std::size_t index) {
  const Model& model = test.model;
  Operation operation = model.operations[index];
  const int input = operation.inputs.front();
  IntegerCase result = test;
  result.net = nullptr;
  result.images = integer::reference::run(model, test.images)[static_cast<std::size_t>(input)];
  result.model = {.name = operation.name, .tensors = {model.tensor(input), model.tensor(operation.output)}};
  result.model.output = 1;
  operation.inputs = {0};
  operation.output = 1;
  result.model.operations = {operation};
  return result;
}

IntegerCase shrink(IntegerCase test, const IntegerFails& fails, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  const auto attempt = [&](const auto& make) {
    if (Clock::now() >= end) return false;
    try {
      IntegerCase smaller = make();
      if (!fails(smaller)) return false;
      test = std::move(smaller);
      return true;
    } catch (const std::exception&) {
      return false;
    }
  };
  const std::size_t operations = test.model.operations.size();
  bool single = false;
  // The simulated graph computes no operation apart from what leads there.
  for (std::size_t k = 0; k < operations && !single && test.against != Against::kSimulation; ++k)
    single = test.model.operations[k].inputs.size() == 1 && attempt([&] { return alone(test, k); });
  for (std::size_t k = 0; k + 1 < operations && !single; ++k) single = attempt([&] { return ending_at(test, k); });
  const auto with_threads = [&](int threads) {
    IntegerCase fewer = test;
    fewer.threads = threads;
    return fewer;
  };
  for (int threads = 1; threads < test.threads; ++threads)
    if (attempt([&] { return with_threads(threads); })) break;
  const auto with_images = [&](std::int64_t n) {
    IntegerCase fewer = test;
    fewer.images = first_rows(test.images, n);
    return fewer;
  };
  // A graph's batch size is fixed.
  for (std::int64_t n = 1; n < test.images.shape()[0] && test.net == nullptr; ++n)
    if (attempt([&] { return with_images(n); })) break;
  return test;
}

}  // namespace miniqat::fuzz
