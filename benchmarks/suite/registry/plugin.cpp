#include <dlfcn.h>

#include <filesystem>

#include "benchmarks/suite/registry/kernel_registry.h"
#include "core/error.h"

namespace miniqat::benchmarks {
namespace {

using PluginFunction = const fake_quant_plugin* (*)();

}  // namespace

std::vector<NamedKernel> load_plugin(const std::string& path) {
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

}  // namespace miniqat::benchmarks
