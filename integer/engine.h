#pragma once

#include <memory>
#include <vector>

#include "core/tensors/tensor.h"
#include "integer/model.h"

namespace miniqat::integer {

/// The fast integer engine: the integers of integer/reference/engine.h, bit by bit, on any instruction set and thread
/// count. Weights are laid out for this CPU when it is made; memory is kept from run to run. One run at a time.
class Engine {
 public:
  /// Throws what Model::check() throws.
  explicit Engine(const Model& model);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Model& model() const;
  /// Images [n, shape of the input...] uint8 to the model's output [n, ...] uint8, valid until the next run. Throws
  /// Error for images of another shape or type.
  const Tensor& run(const Tensor& images);
  /// Runs as run() does and gives every tensor, in the order of Model::tensors: for comparisons.
  std::vector<Tensor> run_all(const Tensor& images);

 private:
  struct Program;
  std::unique_ptr<Program> program_;
};

}  // namespace miniqat::integer
