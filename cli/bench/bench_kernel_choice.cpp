#include "cli/bench/bench_kernel_choice.h"

#include <algorithm>
#include <filesystem>

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

/// By its name, or by the one that it has in its plugin.
bool has_name(const NamedKernel& kernel, const std::string& name) {
  return kernel.name == name || (kernel.functions.name != nullptr && kernel.functions.name == name);
}

bool is_in(const std::vector<std::string>& names, const NamedKernel& kernel) {
  return std::ranges::any_of(names, [&](const std::string& name) { return has_name(kernel, name); });
}

/// The kernels of all plugins, under names that neither the others nor `known` have.
std::vector<NamedKernel> kernels_of(const std::vector<std::string>& plugins, const std::vector<NamedKernel>& known) {
  std::vector<NamedKernel> all;
  for (const std::string& plugin : plugins) {
    const auto some = as_usage([&] { return benchmarks::load_tried_plugin(plugin); });
    all.insert(all.end(), some.begin(), some.end());
  }
  const auto stem_of = [](const NamedKernel& kernel) { return std::filesystem::path(kernel.file).stem().string(); };
  for (NamedKernel& kernel : all) {
    const auto has_same = [&](const NamedKernel& other) {
      return &other != &kernel && has_name(other, kernel.functions.name);
    };
    const auto has_same_stem = [&](const NamedKernel& other) {
      return has_same(other) && stem_of(other) == stem_of(kernel);
    };
    if (std::ranges::any_of(all, has_same) || std::ranges::any_of(known, has_same))
      kernel.name += "@" + printable(std::ranges::any_of(all, has_same_stem) ? kernel.file : stem_of(kernel));
  }
  return all;
}

void require_supported(const NamedKernel& kernel) {
  if (!as_usage([&] { return benchmarks::is_supported_when_tried(kernel); }))
    throw UsageError(concat("the kernel ", quote(kernel.name), " says that this processor cannot run it"));
}

}  // namespace

KernelChoice choose_kernels(const std::vector<std::string>& names, const std::vector<std::string>& plugins) {
  std::vector<NamedKernel> known = as_usage(benchmarks::registered_kernels), own;
  const std::vector<NamedKernel> of_plugins = kernels_of(plugins, known);
  const bool names_one =
      std::ranges::any_of(of_plugins, [&](const NamedKernel& kernel) { return is_in(names, kernel); });
  for (const NamedKernel& kernel : of_plugins)
    if (!names_one || is_in(names, kernel)) own.push_back(kernel);
  for (const NamedKernel& kernel : known)
    if (is_in(names, kernel)) own.push_back(kernel);
  std::ranges::for_each(own, require_supported);

  known.insert(known.end(), of_plugins.begin(), of_plugins.end());
  KernelChoice choice;
  for (const std::string& name : names) {
    const auto operation = benchmarks::find_operation(name);
    if (operation) choice.operations.push_back(*operation);
    const auto is_named = [&](const NamedKernel& kernel) { return has_name(kernel, name); };
    if (!operation && std::ranges::none_of(known, is_named)) refuse_name(name, known);
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
