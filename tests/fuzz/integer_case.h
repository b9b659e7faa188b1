#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "integer/model.h"
#include "tests/quantize/trained_net.h"

namespace miniqat::fuzz {

/// The other side of a comparison with the reference loops; with kSimulation the simulated graph, operation by
/// operation, given equal inputs.
enum class Against { kEngine, kSimulation, kC, kOnnx };

struct IntegerCase {
  integer::Model model;
  /// [n, ...] uint8
  Tensor images;
  Against against = Against::kEngine;
  int threads = 1;
  /// kSimulation: what the model was converted from.
  std::shared_ptr<const testing::TrainedNet> net = nullptr;
};

/// What is wrong with each, "" where all is well. C is compiled once for all, and ONNX Runtime started once, so all
/// must be `against` the same.
std::vector<std::string> judge(const std::vector<IntegerCase>& cases);
/// The same for one. An exception is something wrong.
std::string judge(const IntegerCase& test);

/// Whether a case shows the fault.
using IntegerFails = std::function<bool(const IntegerCase&)>;

/// A case that fails, too: an operation alone or the fewest that lead to it, fewer threads and images. Tries for at
/// most `seconds`.
IntegerCase shrink(IntegerCase test, const IntegerFails& fails, double seconds);

/// Writes DIR/NAME.miniqat and NAME.images.safetensors, for kSimulation also NAME.graph.json and
/// NAME.variables.safetensors. Returns the path of the first.
std::string save(const IntegerCase& test, const std::filesystem::path& directory, const std::string& name);
/// What save() wrote, by the path of NAME.miniqat.
IntegerCase load_integers(const std::filesystem::path& path);

}  // namespace miniqat::fuzz
