#include "training/range_start.h"

#include <algorithm>

#include "core/counted.h"
#include "core/graph/source_ops.h"
#include "datasets/loader.h"
#include "quantize/calibrate/calibrate.h"
#include "quantize/fake_quant.h"

namespace miniqat::training {
namespace {

constexpr std::int64_t kBatches = 16;

bool is_learned(const Node& node) {
  const auto* quantizer = node.as<quantize::FakeQuant>();
  return quantizer != nullptr && traits_of(quantizer->attributes().range).learned;
}

}  // namespace

RangeStart::RangeStart(TrainingTask& task, RunObserver& observer) : task_(task), observer_(observer) {
  for (const Node* node : task_.training.graph.nodes()) {
    if (!is_learned(*node)) continue;
    const std::int64_t delay = node->as<quantize::FakeQuant>()->attributes().delay;
    delay_ = learned_ == 0 ? delay : std::min(delay_, delay);
    ++learned_;
  }
}

bool RangeStart::begins_now() const {
  return task_.session.quantization_step() + 1 == std::max<std::int64_t>(delay_, 1);
}

bool RangeStart::is_at_initial_values() const {
  for (const Node* node : task_.training.graph.nodes()) {
    if (!is_learned(*node)) continue;
    const Node& max = *node->input(2).node;
    const auto* variable = max.as<Variable>();
    if (variable == nullptr) continue;
    const Tensor initial(max.output_specs()[0].shape);
    variable->attributes().initializer.fill(initial, 0);
    if (std::ranges::equal(task_.session.variable(max.name()).values<float>(), initial.values<float>())) return true;
  }
  return false;
}

void RangeStart::before_step() {
  if (learned_ == 0 || !begins_now()) return;
  if (delay_ <= 1 && !is_at_initial_values()) return;
  calibrate();
  observer_.say(concat(counted(learned_, "learned range"), " start", learned_ == 1 ? "s" : "",
                       " at least squares, after step ", task_.session.step()));
}

void RangeStart::at_epoch_end() {
  if (learned_ > 0 && task_.session.quantization_step() + 1 < delay_) calibrate();
}

void RangeStart::calibrate() {
  task_.test_session.restore(task_.session.checkpoint(), Session::Restore::kVariables, "the training graph");
  datasets::Loader loader(task_.data.train, {.batch_size = task_.settings.batch_size,
                                             .seed = static_cast<std::uint64_t>(task_.settings.seed)});
  quantize::Calibrator calibrator(task_.test_session, {quantize::CalibrationMethod::kMse});
  const std::int64_t batches = std::min(kBatches, task_.steps_per_epoch);
  for (std::int64_t batch = 0; batch < batches; ++batch)
    calibrator.observe({{task_.evaluation.images, loader.next().images}});
  for (const quantize::CalibratedRange& range : calibrator.finish()) {
    if (!traits_of(range.attributes.range).learned) continue;
    for (const char* end : {"/min", "/max"})
      task_.session.set_variable(range.quantizer + end, task_.test_session.variable(range.quantizer + end));
  }
}

}  // namespace miniqat::training
