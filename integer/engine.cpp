#include "integer/engine.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/memory/arena.h"
#include "core/memory/guarded_memory.h"
#include "core/platform/interruption.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "integer/kernels/convolution.h"

namespace miniqat::integer {
namespace {

/// The size limit of a part's activations: much less than a third-level cache, but enough for many examples of a small
/// network, so that weights are read seldom.
constexpr std::int64_t kPartBytes = std::int64_t{1} << 20;

}  // namespace

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

  /// Runs the model on n examples. With kOutput, `tensor(model.output)` is valid afterwards, with kAll every tensor.
  void run(const std::uint8_t* images, std::int64_t n);
  /// [n, shape...] of the last run.
  const std::uint8_t* tensor(int index) const;

 private:
  struct Entry {
    Step step;
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
  /// Where to write in any buffer but the images.
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
  /// While memory is guarded (core/memory/guarded_memory.h), in place of the arena: by tensor, as large as the part at
  /// hand.
  std::vector<Tensor> stretches_;
  /// Examples that arena and output have room for.
  std::int64_t arena_examples_ = 0, output_examples_ = 0;
};

Execution::Execution(const Model& model, Keep keep) : model_(model), keep_(keep) {
  for (std::size_t i = 0; i < model.tensors.size(); ++i) buffers_.push_back(static_cast<int>(i));
  add_steps();
  find_lifetimes();
  reserve(1);
}

int Execution::consumers(int tensor) const {
  int count = tensor == model_.output ? 1 : 0;
  for (const Operation& operation : model_.operations)
    count += static_cast<int>(std::ranges::count(operation.inputs, tensor));
  return count;
}

void Execution::add_steps() {
  std::vector<bool> fused(model_.operations.size(), false);
  for (std::size_t i = 0; i < model_.operations.size(); ++i) {
    if (fused[i]) continue;
    const Operation& operation = model_.operations[i];
    const Operation* pool = nullptr;
    const auto* layer = std::get_if<Layer>(&operation.action);
    if (keep_ == Keep::kOutput && layer != nullptr && consumers(operation.output) == 1)
      for (std::size_t k = i + 1; k < model_.operations.size() && pool == nullptr; ++k) {
        const Operation& next = model_.operations[k];
        const auto* action = std::get_if<MaxPool>(&next.action);
        if (action == nullptr || next.inputs[0] != operation.output || !Convolution::fuses(*layer, *action)) continue;
        pool = &next;
        fused[k] = true;
      }
    Step step = pool != nullptr
                    ? layer->make_step(model_, operation, pool)
                    : std::visit([&](const auto& kind) { return kind.make_step(model_, operation); }, operation.action);
    if (step == nullptr) {
      buffers_[operation.output] = buffers_[operation.inputs[0]];
      continue;
    }
    entries_.push_back({.step = std::move(step),
                        .inputs = operation.inputs,
                        .output = pool != nullptr ? pool->output : operation.output,
                        .pointers = std::vector<const std::uint8_t*>(operation.inputs.size())});
  }
}

void Execution::find_lifetimes() {
  const int end = static_cast<int>(entries_.size());
  for (int i = 0; i < end; ++i) {
    const int buffer = entries_[i].output;
    if (buffer == buffers_[model_.output] && keep_ == Keep::kOutput) continue;
    int last = keep_ == Keep::kAll ? end : i;
    for (int k = i + 1; k < end; ++k)
      for (const int input : entries_[k].inputs)
        if (buffers_[input] == buffer) last = std::max(last, k);
    lives_.push_back({.tensor = buffer, .first = i, .last = last});
  }
  std::int64_t most = 1;
  for (int i = 0; i < end; ++i) {
    std::int64_t alive = 0;
    for (const Life& life : lives_)
      if (life.first <= i && i <= life.last) alive += bytes(life.tensor);
    most = std::max(most, alive);
  }
  part_ = keep_ == Keep::kAll ? INT64_MAX : std::max<std::int64_t>(1, kPartBytes / most);
}

/// Every tensor ends where the examples at hand end.
void Execution::reserve_guarded(std::int64_t n) {
  stretches_.clear();
  stretches_.resize(model_.tensors.size());
  for (const Life& life : lives_) {
    Tensor& stretch = stretches_[life.tensor] = Tensor(Shape{n * bytes(life.tensor)}, DType::kUInt8);
    poison({static_cast<std::byte*>(stretch.raw()), stretch.bytes()});
  }
}

void Execution::reserve(std::int64_t n) {
  if (n > output_examples_ || (is_guarding() && n != output_examples_)) {
    output_ = Tensor(Shape{n * bytes(model_.output)}, DType::kUInt8);
    output_examples_ = n;
  }
  const std::int64_t part = std::min(n, part_);
  if (part <= arena_examples_) return;
  std::vector<Lifetime> lifetimes;
  for (const Life& life : lives_)
    lifetimes.push_back(
        {.bytes = static_cast<std::size_t>(part * bytes(life.tensor)), .first = life.first, .last = life.last});
  const ArenaLayout layout = place_in_arena(lifetimes);
  offsets_.assign(model_.tensors.size(), 0);
  for (std::size_t i = 0; i < lives_.size(); ++i) offsets_[lives_[i].tensor] = layout.offsets[i];
  arena_ = {};
  arena_ = Tensor(Shape{static_cast<std::int64_t>(layout.bytes)}, DType::kUInt8);
  arena_examples_ = part;
}

const std::uint8_t* Execution::source(int buffer, std::int64_t first_example) const {
  if (buffer == model_.input) return images_ + first_example * bytes(buffer);
  if (buffer == buffers_[model_.output] && keep_ == Keep::kOutput)
    return output_.data<std::uint8_t>() + first_example * bytes(buffer);
  return is_guarding() ? stretches_[buffer].data<std::uint8_t>() : arena_.data<std::uint8_t>() + offsets_[buffer];
}

std::uint8_t* Execution::target(int buffer, std::int64_t first_example) {
  return const_cast<std::uint8_t*>(source(buffer, first_example));
}

void Execution::run(const std::uint8_t* images, std::int64_t n) {
  const ComputeScope computing;
  const GuardedRun guarded_run;
  reserve(n);
  images_ = images;
  const std::int64_t parts = (n - 1) / part_ + 1;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t first = n * part / parts, count = n * (part + 1) / parts - first;
    if (is_guarding()) reserve_guarded(count);
    for (Entry& entry : entries_) {
      interruption_point();
      for (std::size_t i = 0; i < entry.inputs.size(); ++i)
        entry.pointers[i] = source(buffers_[entry.inputs[i]], first);
      std::uint8_t* const output = target(entry.output, first);
      const GuardedStep guarded([&] { return concat("integer operation \"", model_.tensor(entry.output).name, "\""); },
                                [&] {
                                  std::vector<const void*> given(entry.pointers.begin(), entry.pointers.end());
                                  given.push_back(output);
                                  return given;
                                });
      entry.step(count, entry.pointers, output);
    }
  }
  if (keep_ == Keep::kOutput && buffers_[model_.output] == model_.input)
    std::memcpy(output_.raw(), images, n * bytes(model_.output));
}

const std::uint8_t* Execution::tensor(int index) const {
  if (keep_ == Keep::kOutput) return output_.data<std::uint8_t>();
  return source(buffers_[index], 0);
}

struct Engine::Program {
  explicit Program(const Model& checked) : model(checked), execution(model, Execution::Keep::kOutput) {}

  Model model;
  Execution execution;
  std::optional<Execution> everything;
  Tensor output;
};

Engine::Engine(const Model& model) {
  model.check();
  program_ = std::make_unique<Program>(model);
}
Engine::~Engine() = default;

const Model& Engine::model() const { return program_->model; }

const Tensor& Engine::run(const Tensor& images) {
  auto& [model, execution, everything, output] = *program_;
  const std::int64_t n = batch_size(images, model.tensor(model.input));
  execution.run(images.data<std::uint8_t>(), n);
  const TensorSpec spec{batch_shape(n, model.tensor(model.output).shape), DType::kUInt8};
  output = Tensor::view(const_cast<std::uint8_t*>(execution.tensor(model.output)), spec);
  return output;
}

std::vector<Tensor> Engine::run_all(const Tensor& images) {
  auto& [model, execution, everything, output] = *program_;
  const std::int64_t n = batch_size(images, model.tensor(model.input));
  if (!everything) everything.emplace(model, Execution::Keep::kAll);
  everything->run(images.data<std::uint8_t>(), n);
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < model.tensors.size(); ++i) {
    Tensor& tensor = tensors.emplace_back(batch_shape(n, model.tensors[i].shape), DType::kUInt8);
    std::memcpy(tensor.raw(), everything->tensor(static_cast<int>(i)), tensor.bytes());
  }
  return tensors;
}

}  // namespace miniqat::integer
