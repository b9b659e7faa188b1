// Your function for `miniqat bench --plugin`.

#include "labs/10-kernel-ladder/lab.h"

namespace {

const fake_quant_kernel kKernel = {.name = "lab_10",
                                   .forward = lab10::round_tensor,
                                   .forward_mask = nullptr,
                                   .backward_mask = nullptr,
                                   .min_max = nullptr,
                                   .backward_learned = nullptr,
                                   .set_threads = nullptr,
                                   .supported = nullptr};
const fake_quant_plugin kPlugin = {FAKE_QUANT_PLUGIN_VERSION, 1, &kKernel};

}  // namespace

const fake_quant_plugin* miniqat_fake_quant_plugin() { return &kPlugin; }
