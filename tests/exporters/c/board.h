#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/tensors/tensor.h"
#include "exporters/c/front_end.h"
#include "exporters/c/source.h"
#include "integer/model.h"
#include "tests/temp_dir.h"

namespace miniqat::testing {

/// A processor with its tools, which tests/exporters/c/boards/build and run know.
struct BoardTarget {
  std::string name;
  std::vector<std::string> tools;
};
extern const std::array<BoardTarget, 2> kBoardTargets;

/// Names of the target's tools that are not installed; empty when all are.
std::string missing_tools(const BoardTarget& target);

/// A model with its examples: images [n, ...] uint8 or, of a model with a front end, samples of n sounds.
struct OnBoard {
  integer::Model model;
  Tensor images = {};
  std::optional<exporters::CFrontEnd> front_end = {};
  std::vector<std::int16_t> sounds = {};
  exporters::CFootprint footprint = {};

  std::int64_t examples() const;
  /// Whether the answer to a sound is a class.
  bool gives_class() const { return front_end && model.task.empty(); }
  /// What the board prints behind the model's name if the first example takes so many instructions: as the reference
  /// loops compute it.
  std::vector<long> expected(long instructions) const;
};

/// Models as C on an emulated board, and a program that prints of each the self test's result, the instructions of an
/// example, the outputs' zero point and the bits of their scale, and of each example the outputs and, of a sound, its
/// class.
class Board {
 public:
  /// The model's C with random examples or, with a front end, the sound of its self test.
  void add(const std::string& prefix, const integer::Model& model,
           const std::optional<exporters::CFrontEnd>& front_end = {});
  /// C files with names that begin with `prefix`, as somebody made them.
  void add(const std::string& prefix, const OnBoard& exported, const std::string& header, const std::string& source);
  const std::map<std::string, OnBoard>& models() const { return models_; }

  /// What the program prints by model; empty when it does not compile or end well.
  std::map<std::string, std::vector<long>> run(const BoardTarget& target, const std::string& flags = "") const;
  /// Expects of run() what the models give by themselves, and returns it.
  std::map<std::string, std::vector<long>> expect_integers(const BoardTarget& target,
                                                           const std::string& flags = "") const;

  /// The functions of the compiler's library for floating point that a model's object file calls; "none".
  std::string float_calls(const BoardTarget& target, const std::string& prefix) const;
  /// The sizes of what lies in a model's object file, by kind of memory, without code.
  exporters::CFootprint compiled(const BoardTarget& target, const std::string& prefix) const;

 private:
  std::string in_place(const std::string& command) const {
    return "cd '" + directory_.path().string() + "' && " + command;
  }
  std::string main() const;

  TempDir directory_;
  std::map<std::string, OnBoard> models_;
};

}  // namespace miniqat::testing
