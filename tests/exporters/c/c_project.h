#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/tensors/tensor.h"
#include "integer/model.h"
#include "tests/temp_dir.h"

namespace miniqat::testing {

/// Flags with which exported C must compile.
inline constexpr const char* kStrict =
    "-std=c99 -pedantic -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -Werror";

/// C files of several models in one directory, and a program that runs them all.
class CProject {
 public:
  void add(const std::string& prefix, const integer::Model& model, const Tensor& tests,
           const std::optional<integer::Grid>& bytes = {});

  /// Replaces text in a source that was added, once.
  void edit(const std::string& prefix, const std::string& from, const std::string& to);

  /// Compiles everything; false with the compiler's words printed when it does not like it.
  bool compile(const std::string& flags);

  /// The exit status of the program: 0 or the number of the operation that the self test blames.
  int self_test(const std::string& prefix) { return run("./program " + prefix); }

  /// The outputs of all examples and the classes returned, both one behind another.
  std::pair<std::string, std::string> outputs(const std::string& prefix, const Tensor& images);

  std::filesystem::path path(const std::string& name) const { return directory_.path() / name; }

 private:
  int run(const std::string& command);

  TempDir directory_;
  std::map<std::string, integer::Model> models_;
};

}  // namespace miniqat::testing
