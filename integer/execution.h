#pragma once

#include <memory>
#include <vector>

#include "core/tensor.h"
#include "integer/model.h"
#include "integer/step.h"

namespace miniqat::integer {

/// A model's steps in order and the memory they share. Activations live as long as somebody reads them and lie in one
/// arena; a batch goes through in parts that keep the arena in the caches.
class Execution {
 public:
  enum class Keep {
    /// Only the output: pools are fused into layers, memory is used again.
    kOutput,
    /// Every tensor of the batch, until the next run.
    kAll,
  };
  /// The model must have passed Model::check() and must stay.
  Execution(const Model& model, Keep keep);

  /// Of n examples. With kOutput, `tensor(model.output)` is valid afterwards, with kAll every tensor.
  void run(const std::uint8_t* images, std::int64_t n);
  /// [n, shape...] of the last run.
  const std::uint8_t* tensor(int index) const;
  /// Bytes of the arena and the output.
  std::size_t memory() const;

 private:
  struct Entry {
    std::unique_ptr<Step> step;
    std::vector<int> inputs;
    int output;
    /// Working memory for run(): where the inputs are.
    std::vector<const std::uint8_t*> pointers;
  };

  void add_steps();
  void find_lifetimes();
  void reserve(std::int64_t n);
  void reserve_guarded(std::int64_t n);
  const std::uint8_t* source(int buffer, std::int64_t first_example) const;
  /// Of any buffer but the images.
  std::uint8_t* target(int buffer, std::int64_t first_example);
  std::int64_t bytes(int tensor) const { return model_.tensor(tensor).shape.elements(); }
  int consumers(int tensor) const;

  const Model& model_;
  Keep keep_;
  std::vector<Entry> entries_;
  /// For each tensor the one in whose memory it lies: its own, or that of a Reshape's input.
  std::vector<int> buffers_;
  struct Life {
    int tensor, first, last;
  };
  std::vector<Life> lives_;
  /// Examples of a part, at most.
  std::int64_t part_ = 1;

  const std::uint8_t* images_ = nullptr;
  std::vector<std::size_t> offsets_;
  Tensor arena_, output_;
  /// While memory is guarded (core/guarded_memory.h), in place of the arena: by tensor, as large as the part at hand.
  std::vector<Tensor> stretches_;
  /// Examples that arena and output have room for.
  std::int64_t arena_examples_ = 0, output_examples_ = 0;
};

}  // namespace miniqat::integer
