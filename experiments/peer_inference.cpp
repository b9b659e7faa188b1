// Our side of experiments/bench-integer: inference with the integer engine, or in float, on demand, so that it can take
// turns with another program on the same machine. It also writes the same model as an ONNX file for that program.
//
//   peer_inference integer|float MODEL SIDE BATCH THREADS
//   peer_inference export MODEL SIDE FILE
//
// SIDE is the pictures' height and width, 0 the model's own. Talks as experiments/serve.h has it. Exit status 1, and a
// line on standard error, when something is wrong.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/integer_models.h"
#include "core/engine/session.h"
#include "core/files/files.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "experiments/serve.h"
#include "exporters/onnx/onnx.h"
#include "integer/engine.h"
#include "integer/reference/engine.h"

namespace miniqat::benchmarks {
namespace {

Peer integer_peer(const InferenceWorkload& workload, std::int64_t batch) {
  const integer::Model model = integer_model(workload);
  const auto engine = std::make_shared<integer::Engine>(model);
  const Tensor one = noise(model, 1);
  if (!std::ranges::equal(engine->run(one).values<std::uint8_t>(),
                          integer::reference::run(model, one)[model.output].values<std::uint8_t>()))
    fail(workload.name(), ": the engine differs from the reference loops");
  return {.items = batch, .repeat = [engine, images = noise(model, batch)] { engine->run(images); }};
}

struct FloatInference {
  FloatInference(const InferenceWorkload& workload, std::int64_t batch)
      : graph(float_graph(workload, batch)), session(graph), pixels(graph.output_at("images").shape()) {
    std::ranges::fill(pixels.values<float>(), 0.5f);
  }
  void run() { session.run({.fetches = graph.outputs()}, {{graph.output_at("images"), pixels}}); }

  Graph graph;
  Session session;
  Tensor pixels;
};

Peer float_peer(const InferenceWorkload& workload, std::int64_t batch) {
  const auto inference = std::make_shared<FloatInference>(workload, batch);
  return {.items = batch, .repeat = [inference] { inference->run(); }};
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() == 4 && arguments[0] == "export") {
    write_file_atomically(arguments[3], exporters::onnx(integer_model({arguments[1], std::stol(arguments[2])})));
    return 0;
  }
  if (arguments.size() == 5 && (arguments[0] == "integer" || arguments[0] == "float")) {
    const InferenceWorkload workload{arguments[1], std::stol(arguments[2])};
    set_thread_count(std::stoi(arguments[4]));
    const std::int64_t batch = std::stol(arguments[3]);
    return serve(arguments[0] == "integer" ? integer_peer(workload, batch) : float_peer(workload, batch));
  }
  std::fprintf(stderr,
               "usage: peer_inference integer|float MODEL SIDE BATCH THREADS\n"
               "       peer_inference export MODEL SIDE FILE\n");
  return 2;
}

}  // namespace
}  // namespace miniqat::benchmarks

int main(int argc, char** argv) {
  return miniqat::benchmarks::run_peer("peer_inference", argc, argv, miniqat::benchmarks::run);
}
