// oneDNN's parallel regions, computed by our teams. Debian's oneDNN calls OpenMP's library for them, and threads of
// that library wait, spinning, for whichever of them has no core: beside programs that use the cores, that made
// training twenty times slower. The functions below have the names that oneDNN calls. The program's own come before
// those of a library, so that calls arrive here; all that is not oneDNN's goes on to OpenMP's library.
//
// This file is part of our programs and of the Python module, not of a library of ours: whoever links one of those
// keeps OpenMP's functions as they are, and gets these by linking miniqat::openmp_calls as well.
//
// These six are all that primitives of oneDNN 2.6 and 3.7 call (tests/core/team/team_test.cpp looks), and the order of
// its sums depends on the number of parts alone. A part may wait for another, as those of some gradients of filters do:
// run_in_team() allows for that.

#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "core/platform/openmp.h"
#include "core/team/team.h"

namespace miniqat {
namespace {

using Region = void (*)(void* data);

template <class Function>
Function* function_of_openmp(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) std::abort();
  return reinterpret_cast<Function*>(found);
}

/// Where oneDNN's machine code is. [first, second); empty if it is not a library of its own.
std::pair<std::uintptr_t, std::uintptr_t> onednn_code() {
  std::pair<std::uintptr_t, std::uintptr_t> code;
  const auto look = [](dl_phdr_info* library, std::size_t, void* result) {
    if (std::string_view(library->dlpi_name).find("libdnnl") == std::string_view::npos) return 0;
    for (int i = 0; i < library->dlpi_phnum; ++i) {
      const ElfW(Phdr)& segment = library->dlpi_phdr[i];
      if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
      const std::uintptr_t begin = library->dlpi_addr + segment.p_vaddr;
      *static_cast<decltype(code)*>(result) = {begin, begin + segment.p_memsz};
    }
    return 1;
  };
  dl_iterate_phdr(look, &code);
  return code;
}

bool is_of_onednn(Region region) {
  static const auto code = onednn_code();
  const auto address = reinterpret_cast<std::uintptr_t>(region);
  return address >= code.first && address < code.second;
}

bool holds(const dl_phdr_info& library, const void* place) {
  const auto address = reinterpret_cast<std::uintptr_t>(place);
  for (int i = 0; i < library.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = library.dlpi_phdr[i];
    const std::uintptr_t begin = library.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address >= begin && address < begin + segment.p_memsz) return true;
  }
  return false;
}

/// Whether oneDNN calls the functions below. It does not if another module of Python, such as PyTorch, has loaded it
/// before ours, or has given all modules the functions of OpenMP's library.
bool are_called() {
  // Libraries come in the order in which they were loaded.
  const auto look = [](dl_phdr_info* library, std::size_t, void* result) {
    static const char own = 0;
    const bool is_ours = holds(*library, &own);
    if (!is_ours && std::string_view(library->dlpi_name).find("libdnnl") == std::string_view::npos) return 0;
    *static_cast<bool*>(result) = is_ours && holds(*library, reinterpret_cast<const void*>(&GOMP_parallel));
    return 1;
  };
  bool result = false;
  dl_iterate_phdr(look, &result);
  return result;
}

[[maybe_unused]] const bool said = are_called() && (expect_regions_of_onednn(), true);

struct RegionOfOneDnn {
  Region region;
  void* data;
};

}  // namespace
}  // namespace miniqat

using miniqat::function_of_openmp;

extern "C" {

int omp_get_thread_num() noexcept {
  static auto* const otherwise = function_of_openmp<int()>("omp_get_thread_num");
  return miniqat::in_team() ? miniqat::team_place().part : otherwise();
}

int omp_get_num_threads() noexcept {
  static auto* const otherwise = function_of_openmp<int()>("omp_get_num_threads");
  return miniqat::in_team() ? miniqat::team_place().parts : otherwise();
}

/// A kernel that is compiled in a part is for that part's thread alone: it would wait for others in vain.
int omp_get_max_threads() noexcept {
  static auto* const otherwise = function_of_openmp<int()>("omp_get_max_threads");
  return miniqat::in_team() ? 1 : otherwise();
}

int omp_in_parallel() noexcept {
  static auto* const otherwise = function_of_openmp<int()>("omp_in_parallel");
  return miniqat::in_team() ? 1 : otherwise();
}

void GOMP_barrier() {
  static auto* const otherwise = function_of_openmp<void()>("GOMP_barrier");
  miniqat::in_team() ? miniqat::team_barrier() : otherwise();
}

void GOMP_parallel(miniqat::Region region, void* data, unsigned threads, unsigned flags) {
  static auto* const otherwise = function_of_openmp<void(miniqat::Region, void*, unsigned, unsigned)>("GOMP_parallel");
  if (miniqat::in_team()) {
    const miniqat::NestedRegion nested;
    return region(data);
  }
  const int parts = threads == 0 ? omp_get_max_threads() : static_cast<int>(threads);
  if (parts == 1 || !miniqat::is_of_onednn(region) || omp_in_parallel() != 0)
    return otherwise(region, data, threads, flags);
  miniqat::RegionOfOneDnn whole{region, data};
  const auto run_part = [](void* erased, int) {
    const auto& it = *static_cast<const miniqat::RegionOfOneDnn*>(erased);
    it.region(it.data);
  };
  miniqat::run_in_team(parts, run_part, &whole, miniqat::parts_of_onednn());
}

}  // extern "C"
