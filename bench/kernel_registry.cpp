#include "bench/kernel_registry.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>

#include "bench/foreign_code.h"
#include "bench/operation.h"
#include "core/kernels/scratch.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "quantize/kernels/fake_quant_kernels.h"

namespace miniqat::bench {
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

quantize::ChannelGrids row_of(const fake_quant_grid* grids, std::int64_t channels, ScratchScope& scope) {
  const auto affine = scope.take<quantize::Affine<float>>(static_cast<std::size_t>(channels));
  for (std::int64_t c = 0; c < channels; ++c) affine[c] = affine_of(grids[c]);
  return quantize::channel_grids(affine, scope);
}

void our_forward(const float* x, float* y, std::int64_t n, const fake_quant_grid* grids, std::int64_t channels) {
  ScratchScope scope;
  quantize::fake_quant_forward(x, y, n, row_of(grids, channels, scope), nullptr);
}

void our_forward_mask(const float* x, float* y, std::int64_t n, const fake_quant_grid* grids, std::int64_t channels,
                      void* mask) {
  ScratchScope scope;
  quantize::fake_quant_forward(x, y, n, row_of(grids, channels, scope), static_cast<std::uint32_t*>(mask));
}

void our_backward_mask(const float* dy, float* dx, std::int64_t n, const void* mask) {
  quantize::fake_quant_backward(dy, dx, n, static_cast<const std::uint32_t*>(mask));
}

int our_min_max(const float* x, std::int64_t n, std::int64_t channels, float* min, float* max) {
  return quantize::column_ranges(x, n, channels, min, max) ? 1 : 0;
}

void our_backward_learned(const float* x, const float* dy, float* dx, std::int64_t n, const fake_quant_grid* grids,
                          std::int64_t channels, fake_quant_sums* sums) {
  ScratchScope scope;
  const auto own = scope.take<quantize::RangeSums>(static_cast<std::size_t>(channels));
  quantize::fake_quant_backward(x, dy, n, row_of(grids, channels, scope), dx, own, true);
  for (std::int64_t c = 0; c < channels; ++c) sums[c] = {own[c].below, own[c].above, own[c].inside};
}

/// The number of threads is the whole program's.
void our_set_threads(std::int32_t) {}

using PluginFunction = const fake_quant_plugin* (*)();

std::vector<NamedKernel> load_at_once(const std::string& path) {
  // A name without a slash would be looked for among the system's libraries.
  const std::string file = std::filesystem::path(path).has_parent_path() ? path : "./" + path;
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  // dlerror() begins with the file.
  if (handle == nullptr) fail("cannot load the plugin: ", dlerror());
  const std::shared_ptr<void> library(handle, dlclose);
  const auto function = reinterpret_cast<PluginFunction>(dlsym(handle, "miniqat_fake_quant_plugin"));
  if (function == nullptr)
    fail(path, ": has no function miniqat_fake_quant_plugin (in C++ it must be extern \"C\"; docs/own-kernel.md)");
  const fake_quant_plugin* const plugin = function();
  if (plugin == nullptr) fail(path, ": miniqat_fake_quant_plugin returns null");
  if (plugin->version != FAKE_QUANT_PLUGIN_VERSION)
    fail(path, ": is made for version ", plugin->version, " of fake_quant_plugin.h, this program has version ",
         FAKE_QUANT_PLUGIN_VERSION);
  if (plugin->count < 1 || plugin->kernels == nullptr) fail(path, ": holds no kernels");
  std::vector<NamedKernel> kernels;
  for (std::int32_t i = 0; i < plugin->count; ++i) {
    const fake_quant_kernel& kernel = plugin->kernels[i];
    kernels.push_back({kernel.name == nullptr ? "" : kernel.name, kernel, library, path});
  }
  require_good_names(kernels, path);
  return kernels;
}

/// call(), if it gets through a trial of that name.
template <class Call>
auto tried(const std::string& step, const Call& call) {
  const std::string fault = run_trial([&] {
    trial_step(step);
    call();
  });
  if (!fault.empty()) fail(fault);
  return call();
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
  require_good_names(kernels, "bench/kernels");
  return kernels;
}

std::vector<std::string> registered_names() {
  std::vector<std::string> names;
  for (const NamedKernel& kernel : kernel_list()) names.push_back(kernel.name);
  std::ranges::sort(names);
  return names;
}

/// Our own loops with the functions of a plugin: verified, cut and timed as any other kernel. They share a tensor
/// between the threads by themselves.
NamedKernel our_kernel() {
  return {kOurName,
          {.name = kOurName,
           .forward = our_forward,
           .forward_mask = our_forward_mask,
           .backward_mask = our_backward_mask,
           .min_max = our_min_max,
           .backward_learned = our_backward_learned,
           .set_threads = our_set_threads,
           .supported = nullptr},
          nullptr};
}

std::vector<NamedKernel> load_plugin(const std::string& path) {
  return tried(path + ": loading it and calling miniqat_fake_quant_plugin", [&] { return load_at_once(path); });
}

bool is_supported(const NamedKernel& kernel) {
  const auto supported = kernel.functions.supported;
  return supported == nullptr || tried(concat("kernel ", kernel.name, ": supported"), supported) != 0;
}

}  // namespace miniqat::bench
