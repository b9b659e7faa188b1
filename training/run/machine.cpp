#include "training/run/machine.h"

#include <oneapi/dnnl/dnnl.hpp>
#include <utility>

#include "core/kernels/instruction_set.h"
#include "core/platform/cpu_name.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/threads/parallel.h"

namespace miniqat::training {
namespace {

constexpr const char* kCompiler =
#ifdef __clang__
    "clang " __clang_version__;
#else
    "GCC " __VERSION__;
#endif

std::string& program_commit() {
  static std::string commit;
  return commit;
}

}  // namespace

void set_program_commit(std::string commit) { program_commit() = std::move(commit); }

nlohmann::ordered_json machine_to_json() {
  const dnnl_version_t* onednn = dnnl_version();
  return {{"program", "miniqat " MINIQAT_VERSION},
          {"commit", program_commit()},
          {"cpu", cpu_name()},
          {"cores", available_cores()},
          {"instruction_set", std::string(name_of(instruction_set()))},
          {"onednn", concat(onednn->major, ".", onednn->minor, ".", onednn->patch)},
          {"compiler", kCompiler}};
}

}  // namespace miniqat::training
