#include "benchmarks/suite/registry/kernel_registry.h"

#include <algorithm>

#include "benchmarks/suite/registry/operation.h"
#include "core/error.h"
#include "core/text/quote.h"

namespace miniqat::benchmarks {
namespace {

/// A static of a function: kernels register before main(), in any order of files.
std::vector<NamedKernel>& kernel_list() {
  static std::vector<NamedKernel> kernels;
  return kernels;
}

bool is_good_name(const std::string& name) {
  const auto is_good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !name.empty() && std::ranges::all_of(name, is_good);
}

}  // namespace

bool register_fake_quant_kernel(const std::string& name, ForwardFunction forward) {
  fake_quant_kernel kernel = {};
  kernel.forward = forward;
  kernel_list().push_back({name, kernel, nullptr});
  return true;
}

bool register_fake_quant_kernel(const fake_quant_kernel& kernel) {
  kernel_list().push_back({kernel.name == nullptr ? "" : kernel.name, kernel, nullptr});
  return true;
}

void require_good_names(const std::vector<NamedKernel>& kernels, const std::string& whose) {
  for (auto kernel = kernels.begin(); kernel != kernels.end(); ++kernel) {
    const std::string& name = kernel->name;
    if (!is_good_name(name))
      fail(whose, ": the name of a kernel must be of letters, digits, _ and -, is ", quote(name));
    if (find_operation(name) || name == kOurName) fail(whose, ": no kernel may have the name ", quote(name));
    if (std::any_of(kernels.begin(), kernel, [&](const NamedKernel& other) { return other.name == name; }))
      fail(whose, ": two kernels have the name ", quote(name));
    const auto has = [&](const OperationTraits& operation) { return can_do(kernel->functions, operation.operation); };
    if (std::ranges::none_of(operations(), has)) fail(whose, ": the kernel ", quote(name), " has no function");
  }
}

std::vector<NamedKernel> registered_kernels() {
  std::vector<NamedKernel> kernels = kernel_list();
  std::ranges::sort(kernels, {}, &NamedKernel::name);
  require_good_names(kernels, "benchmarks/kernels");
  return kernels;
}

std::vector<std::string> registered_names() {
  std::vector<std::string> names;
  for (const NamedKernel& kernel : kernel_list()) names.push_back(kernel.name);
  std::ranges::sort(names);
  return names;
}

bool is_supported(const NamedKernel& kernel) {
  return kernel.functions.supported == nullptr || kernel.functions.supported() != 0;
}

}  // namespace miniqat::benchmarks
