#include "cli/bench/bench_kernel_choice.h"

#include <algorithm>

#include "benchmarks/suite/check/plugin_trial.h"
#include "cli/bench/bench_modes.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "training/settings/usage_error.h"

namespace miniqat::cli {

using namespace training;

namespace {

using benchmarks::NamedKernel;
using benchmarks::Operation;
using benchmarks::OperationTraits;

[[noreturn]] void refuse_name(const std::string& name, const std::vector<NamedKernel>& known) {
  std::vector<std::string> words;
  for (const OperationTraits& one : benchmarks::operations()) words.emplace_back(one.name);
  for (const NamedKernel& kernel : known) words.push_back(kernel.name);
  throw UsageError(concat("--kernel: ", unknown_name("operation or kernel", name, words)));
}

bool is_in(const std::vector<std::string>& names, const NamedKernel& kernel) {
  return std::ranges::find(names, kernel.name) != names.end();
}

void require_supported(const NamedKernel& kernel) {
  if (!as_usage([&] { return benchmarks::is_supported_when_tried(kernel); }))
    throw UsageError(concat("the kernel ", quote(kernel.name), " says that this processor cannot run it"));
}

}  // namespace

KernelChoice choose_kernels(const std::vector<std::string>& names, const std::string& plugin) {
  std::vector<NamedKernel> known = as_usage(benchmarks::registered_kernels), own;
  const auto of_plugin =
      plugin.empty() ? std::vector<NamedKernel>{} : as_usage([&] { return benchmarks::load_tried_plugin(plugin); });
  const bool names_one =
      std::ranges::any_of(of_plugin, [&](const NamedKernel& kernel) { return is_in(names, kernel); });
  for (const NamedKernel& kernel : of_plugin)
    if (!names_one || is_in(names, kernel)) own.push_back(kernel);
  // A plugin may hold a newer form of a kernel of the program.
  std::erase_if(known, [&](const NamedKernel& kernel) {
    return std::ranges::any_of(of_plugin, [&](const NamedKernel& other) { return other.name == kernel.name; });
  });
  for (const NamedKernel& kernel : known)
    if (is_in(names, kernel)) own.push_back(kernel);
  std::ranges::for_each(own, require_supported);

  known.insert(known.end(), of_plugin.begin(), of_plugin.end());
  KernelChoice choice;
  for (const std::string& name : names) {
    const auto operation = benchmarks::find_operation(name);
    if (operation) choice.operations.push_back(*operation);
    if (!operation && std::ranges::find(known, name, &NamedKernel::name) == known.end()) refuse_name(name, known);
  }
  const auto can_be_done = [&](Operation operation) {
    return own.empty() ||
           std::ranges::any_of(own, [&](const NamedKernel& kernel) { return can_do(kernel.functions, operation); });
  };
  if (choice.operations.empty())
    for (const OperationTraits& one : benchmarks::operations())
      if (benchmarks::is_limit(one.operation) || can_be_done(one.operation)) choice.operations.push_back(one.operation);
  choice.kernels.push_back(benchmarks::our_kernel());
  choice.kernels.insert(choice.kernels.end(), own.begin(), own.end());
  return choice;
}

std::string kernel_help() {
  std::string text = "operations and kernels beside ours; default: all operations by ours. Operations:\n";
  for (const OperationTraits& one : benchmarks::operations()) text += concat("  ", one.name, ": ", one.help, "\n");
  text += "Kernels: ";
  const std::string list = joined(benchmarks::registered_names());
  return text + (list.empty() ? "none" : list);
}

}  // namespace miniqat::cli
