// Our side of scripts/bench-peers: prepares a case, says so, and then runs it on demand, so that it can take turns with
// another program on the same machine. Started by that script.
//
//   peer_steps train MODEL BATCH SIDE float|tf|single THREADS
//   peer_steps fake_quant forward|backward|learned CHANNELS ELEMENTS THREADS
//
// Talks as benchmarks/serve.h has it. Exit status 1, and a line on standard error, when something is wrong.

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/fake_quant_step.h"
#include "benchmarks/serve.h"
#include "benchmarks/training.h"
#include "core/error.h"
#include "core/parallel.h"

namespace miniqat::benchmarks {
namespace {

/// "float", or "tf" or "single": quantizing, batch norms folded so.
Arithmetic arithmetic_of(const std::string& name) {
  if (name == "float") return kFloatArithmetic;
  if (name == "tf" || name == "single")
    return {.name = name,
            .phase = Phase::kQuantizing,
            .bn_fold = name == "tf" ? quantize::BnFold::kTf : quantize::BnFold::kSingle};
  fail("unknown arithmetic \"", name, "\"");
}

Peer training_peer(const std::vector<std::string>& arguments) {
  const Workload workload = {.model = arguments.at(0),
                             .batch = std::stol(arguments.at(1)),
                             .side = std::stol(arguments.at(2)),
                             .learning_rate = arguments.at(0).starts_with("lenet") ? 0.005 : 0.02};
  const auto training =
      std::make_shared<Training>(workload, arithmetic_of(arguments.at(3)), std::stoi(arguments.at(4)));
  constexpr int kWarmUp = 10;
  if (const std::string fault = training->warm_up(kWarmUp); !fault.empty()) fail(workload.model, ": ", fault);
  return {.items = workload.batch, .repeat = [training] { training->step(); }};
}

Peer fake_quant_peer(const std::vector<std::string>& arguments) {
  set_thread_count(std::stoi(arguments.at(3)));
  const auto work = std::make_shared<FakeQuantStep>(std::stol(arguments.at(2)), std::stol(arguments.at(1)),
                                                    arguments.at(0) == "learned");
  if (arguments.at(0) == "forward") return {.items = work->elements(), .repeat = [work] { work->forward(); }};
  return {.items = work->elements(), .repeat = [work] {
            work->forward();
            work->backward();
          }};
}

int run(const std::vector<std::string>& arguments) {
  const std::vector<std::string> rest(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end());
  if (rest.size() == 5 && arguments[0] == "train") return serve(training_peer(rest));
  if (rest.size() == 4 && arguments[0] == "fake_quant") return serve(fake_quant_peer(rest));
  std::fprintf(stderr,
               "usage: peer_steps train MODEL BATCH SIDE float|tf|single THREADS\n"
               "       peer_steps fake_quant forward|backward|learned CHANNELS ELEMENTS THREADS\n");
  return 2;
}

}  // namespace
}  // namespace miniqat::benchmarks

int main(int argc, char** argv) {
  return miniqat::benchmarks::run_peer("peer_steps", argc, argv, miniqat::benchmarks::run);
}
