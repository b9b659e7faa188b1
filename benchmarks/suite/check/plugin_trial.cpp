#include "benchmarks/suite/check/plugin_trial.h"

#include "benchmarks/suite/check/trial.h"
#include "core/error.h"

namespace miniqat::benchmarks {

std::vector<NamedKernel> load_tried_plugin(const std::string& path) {
  const std::string fault = run_trial([&] {
    trial_step(path + ": loading it and calling miniqat_fake_quant_plugin");
    load_plugin(path);
    return std::string();
  });
  if (!fault.empty()) fail(fault);
  return load_plugin(path);
}

bool is_supported_when_tried(const NamedKernel& kernel) {
  const std::string fault = run_trial([&] {
    trial_step(concat("kernel ", kernel.name, ": supported"));
    is_supported(kernel);
    return std::string();
  });
  if (!fault.empty()) fail(fault);
  return is_supported(kernel);
}

}  // namespace miniqat::benchmarks
