#include "integer/engine.h"

#include <cstring>
#include <optional>

#include "core/error.h"
#include "integer/batch_shape.h"
#include "integer/execution.h"

namespace miniqat::integer {

class Engine::Program {
 public:
  explicit Program(const Model& model) : model_(checked(model)), execution_(model_, Execution::Keep::kOutput) {}

  const Model& model() const { return model_; }

  const Tensor& run(const Tensor& images) {
    const std::int64_t n = batch_size(images, model_.tensor(model_.input));
    execution_.run(images.data<std::uint8_t>(), n);
    const TensorSpec spec{batch_shape(n, model_.tensor(model_.output).shape), DType::kUInt8};
    output_ = Tensor::view(const_cast<std::uint8_t*>(execution_.tensor(model_.output)), spec);
    return output_;
  }

  std::vector<Tensor> run_all(const Tensor& images) {
    const std::int64_t n = batch_size(images, model_.tensor(model_.input));
    if (!everything_) everything_.emplace(model_, Execution::Keep::kAll);
    everything_->run(images.data<std::uint8_t>(), n);
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < model_.tensors.size(); ++i) {
      Tensor& tensor = tensors.emplace_back(batch_shape(n, model_.tensors[i].shape), DType::kUInt8);
      std::memcpy(tensor.raw(), everything_->tensor(static_cast<int>(i)), tensor.bytes());
    }
    return tensors;
  }

 private:
  static const Model& checked(const Model& model) {
    model.check();
    return model;
  }

  Model model_;
  Execution execution_;
  std::optional<Execution> everything_;
  Tensor output_;
};

Engine::Engine(const Model& model) : program_(std::make_unique<Program>(model)) {}
Engine::~Engine() = default;

const Model& Engine::model() const { return program_->model(); }
const Tensor& Engine::run(const Tensor& images) { return program_->run(images); }
std::vector<Tensor> Engine::run_all(const Tensor& images) { return program_->run_all(images); }

}  // namespace miniqat::integer
