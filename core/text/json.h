#pragma once

// nlohmann's JSON, with the same layout of ordered_json in every compiler: version 3.11 asks clang for
// [[no_unique_address]] in a way to which only GCC says yes, so an object that one made would be 8 bytes longer for the
// other. A program of clang links libraries that GCC made (Debian packages), and tests do so here. Include this file
// instead of <nlohmann/json.hpp>; <nlohmann/json_fwd.hpp> is as good as ever.

#if __has_include(<nlohmann/detail/macro_scope.hpp>)
#include <nlohmann/detail/macro_scope.hpp>
#undef JSON_NO_UNIQUE_ADDRESS
#define JSON_NO_UNIQUE_ADDRESS [[no_unique_address]]
#endif
#include <nlohmann/json.hpp>

static_assert(sizeof(nlohmann::ordered_json::object_t) == sizeof(nlohmann::ordered_json::array_t),
              "an object of ordered JSON is a vector and nothing else");
