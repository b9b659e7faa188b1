#pragma once

extern "C" void __asan_init() __attribute__((weak));

namespace miniqat::testing {

/// Whether what is tested was built with AddressSanitizer. The tests themselves may have been built without.
inline bool is_sanitized() { return __asan_init != nullptr; }

}  // namespace miniqat::testing
