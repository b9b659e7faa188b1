// Our side of experiments/bench-kernels: one case of fake quantization, on demand.
//
//   peer_kernels OPERATION BITS CHANNELS ELEMENTS THREADS
//   peer_kernels about            build and machine, as JSON of `miniqat bench` has them
//
// Talks as experiments/serve.h has it. Exit status 1, and a line on standard error, when something is wrong.

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bench/measure/this_machine.h"
#include "bench/timed_case.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/threads/parallel.h"
#include "experiments/serve.h"

namespace miniqat::benchmarks {
namespace {

using namespace bench;

/// A case with its tensors and our kernel.
struct PeerCase {
  explicit PeerCase(const BenchCase& what)
      : tensors(what.elements),
        kernel(our_kernel()),
        timed(tensors, what, is_limit(what.operation) ? nullptr : &kernel) {
    timed.verify();
  }
  PeerCase(const PeerCase&) = delete;

  BenchTensors tensors;
  NamedKernel kernel;
  TimedCase timed;
};

int print_about() {
  nlohmann::ordered_json json = build_json();
  json["machine"] = this_machine().json();
  std::printf("%s\n", json.dump(-1, ' ', false, nlohmann::detail::error_handler_t::replace).c_str());
  return 0;
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() == 1 && arguments[0] == "about") return print_about();
  if (arguments.size() != 5) {
    std::fprintf(stderr, "usage: peer_kernels OPERATION BITS CHANNELS ELEMENTS THREADS\n");
    return 2;
  }
  const auto operation = find_operation(arguments[0]);
  if (!operation) fail("unknown operation \"", arguments[0], "\"");
  set_thread_count(std::stoi(arguments[4]));
  const auto one = std::make_shared<PeerCase>(
      BenchCase{*operation, std::stoi(arguments[1]), std::stol(arguments[2]), std::stol(arguments[3])});
  return serve({.items = one->timed.what().elements, .repeat = [one] { one->timed.run(); }});
}

}  // namespace
}  // namespace miniqat::benchmarks

int main(int argc, char** argv) {
  return miniqat::benchmarks::run_peer("peer_kernels", argc, argv, miniqat::benchmarks::run);
}
