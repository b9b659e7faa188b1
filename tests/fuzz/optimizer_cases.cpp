#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "core/tensors/random.h"
#include "core/tensors/tensor.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "optim/adam.h"
#include "optim/log_adam.h"
#include "optim/sgd.h"
#include "tests/fuzz/cases.h"

namespace miniqat::fuzz {
namespace {

/// float32's rounding, and what may underflow.
constexpr double kU = 0x1p-24, kTiny = 0x1p-125;

struct Number {
  double value = 0;
  double error = 0;
};

/// One element before a step, and what belongs after it.
struct Element {
  double w, g, first, second;
};
struct Updated {
  Number w, first, second;
};

Number decayed(const Element& x, double decay) {
  return {x.g + decay * x.w, 4 * kU * (std::abs(x.g) + std::abs(decay * x.w))};
}

Updated sgd(const Element& x, const optim::SgdOptions& options, double decay) {
  const Number g = decayed(x, decay);
  const double kept = options.momentum * x.first;
  const Number v = {kept + g.value, g.error + 4 * kU * (std::abs(kept) + std::abs(g.value))};
  Number by = v;
  if (options.nesterov) {
    const double ahead = options.momentum * v.value;
    by = {g.value + ahead, g.error + v.error + 4 * kU * (std::abs(g.value) + std::abs(ahead))};
  }
  const double rate = options.learning_rate;
  return {.w = {x.w - rate * by.value, rate * (by.error + 4 * kU * std::abs(by.value)) + 2 * kU * std::abs(x.w)},
          .first = v,
          .second = {}};
}

Updated adam(const Element& x, const optim::AdamOptions& options, double decay, double step) {
  const Number g = decayed(x, decay);
  const double b1 = options.beta1, b2 = options.beta2;
  const Number m = {b1 * x.first + (1 - b1) * g.value,
                    (1 - b1) * g.error + 4 * kU * (b1 * std::abs(x.first) + std::abs(g.value))};
  const Number v = {b2 * x.second + (1 - b2) * g.value * g.value,
                    (1 - b2) * g.error * (2 * std::abs(g.value) + g.error) +
                        4 * kU * (b2 * x.second + (1 - b2) * g.value * g.value) + kTiny};
  const double rate = options.learning_rate / (1 - std::pow(b1, step));
  const double correction = 1 / std::sqrt(1 - std::pow(b2, step));
  const auto divisor = [&](double second) { return std::sqrt(std::max(second, 0.0)) * correction + options.epsilon; };
  const double by = rate * m.value / divisor(v.value);
  const double least = divisor(v.value - v.error);
  const double error =
      rate * (m.error / least + std::abs(m.value) * (1 / least - 1 / divisor(v.value))) + 16 * kU * std::abs(by);
  return {.w = {x.w - by, error + 2 * kU * std::abs(x.w)}, .first = m, .second = v};
}

Updated log_adam(const Element& x, const optim::LogAdamOptions& options, double step) {
  const double b1 = options.beta1, b2 = options.beta2, slope = x.g * x.w;
  const double m = b1 * x.first + (1 - b1) * slope, v = b2 * x.second + (1 - b2) * slope * slope;
  const Updated result = {.w = {}, .first = {m, 2 * kU * std::abs(m) + kTiny}, .second = {v, 2 * kU * v + kTiny}};
  const double rate = options.learning_rate / (1 - std::pow(b1, step)), correction = 1 / (1 - std::pow(b2, step));
  const auto divisor = [&](double second) { return std::sqrt(std::max(second, 0.0) * correction) + 1e-12; };
  const double by = rate * m / divisor(v), least = divisor(v - result.second.error);
  const double error = rate * (result.first.error / least + std::abs(m) * (1 / least - 1 / divisor(v)));
  const double w = x.w * std::exp(-by);
  return {.w = {w, std::abs(w) * std::expm1(error)}, .first = result.first, .second = result.second};
}

bool differs(double found, const Number& wanted) {
  return !(std::abs(found - wanted.value) <= wanted.error + 2 * kU * std::abs(wanted.value) + kTiny);
}

enum class Kind { kSgd, kAdam, kLogAdam };

/// A case under way.
struct Run {
  Random random;
  optim::SgdOptions sgd = {};
  optim::AdamOptions adam = {};
  optim::LogAdamOptions log_adam = {};
  Kind kind = Kind::kSgd;
  std::unique_ptr<Optimizer> optimizer = nullptr;
  std::vector<Tensor> slots = {};

  bool chance(std::uint64_t one_in) { return random.below(one_in) == 0; }
  template <class Options>
  void draw(Options& options) {
    options.learning_rate = std::pow(10.0, -static_cast<double>(random.below(5)));
    options.weight_decay = chance(2) ? 0 : 0.01;
    options.decay_all = chance(2);
  }
  template <class Options>
  void draw_memory(Options& options) {
    options.beta1 = chance(3) ? 0.5 : 0.9;
    options.beta2 = chance(3) ? 0.9 : 0.999;
  }
  Tensor numbers(const Shape& shape) {
    Tensor tensor(shape);
    for (float& value : tensor.values<float>()) value = random.uniform(-1, 1);
    return tensor;
  }
  Shape shape() {
    const auto extent = [&](std::uint64_t most) { return static_cast<std::int64_t>(1 + random.below(most)); };
    switch (random.below(4)) {
      case 0:
        // Several threads share the work from some ten thousand elements on.
        return {16300 + extent(20000)};
      case 1:
        return {extent(5), extent(5), extent(9), extent(17)};
      case 2:
        return {extent(70), extent(30)};
      default:
        return {extent(130)};
    }
  }
  void make() {
    kind = static_cast<Kind>(random.below(3));
    if (kind == Kind::kLogAdam) {
      log_adam.learning_rate = std::pow(10.0, -static_cast<double>(random.below(5)));
      draw_memory(log_adam);
      optimizer = std::make_unique<optim::LogAdam>(log_adam);
    } else if (kind == Kind::kAdam) {
      draw(adam);
      draw_memory(adam);
      adam.epsilon = chance(3) ? 1e-3 : 1e-8;
      optimizer = std::make_unique<optim::Adam>(adam);
    } else {
      draw(sgd);
      sgd.momentum = chance(3) ? 0 : 0.9;
      sgd.nesterov = sgd.momentum > 0 && chance(2);
      optimizer = std::make_unique<optim::Sgd>(sgd);
    }
  }
  double decay_of(const Tensor& value) const {
    const auto of = [&](const auto& options) {
      return value.shape().rank() >= 2 || options.decay_all ? options.weight_decay : 0;
    };
    return kind == Kind::kLogAdam ? 0 : kind == Kind::kAdam ? of(adam) : of(sgd);
  }
  Updated wanted(const Element& x, double decay, double step) const {
    if (kind == Kind::kLogAdam) return fuzz::log_adam(x, log_adam, step);
    return kind == Kind::kAdam ? fuzz::adam(x, adam, decay, step) : fuzz::sgd(x, sgd, decay);
  }
  std::string text(const Tensor& value) const {
    const auto memory = [](const auto& options) { return concat("beta1 ", options.beta1, ", beta2 ", options.beta2); };
    const std::string name = kind == Kind::kLogAdam ? concat("LogAdam, ", memory(log_adam))
                             : kind == Kind::kAdam
                                 ? concat("Adam, ", memory(adam), ", epsilon ", adam.epsilon)
                                 : concat("Sgd, momentum ", sgd.momentum, sgd.nesterov ? ", nesterov" : "");
    return concat(name, ", rate ", optimizer->learning_rate(1), ", weight decay ", decay_of(value), ", ", value.shape(),
                  ", ", thread_count(), " threads");
  }
};

/// One step; what differs first.
std::string judge_step(Run& run, Tensor& value, std::int64_t step) {
  const Tensor gradient = run.numbers(value.shape());
  const Tensor before = value.clone();
  std::vector<Tensor> slots_before;
  std::vector<Tensor*> slots;
  for (Tensor& slot : run.slots) {
    slots_before.push_back(slot.clone());
    slots.push_back(&slot);
  }
  run.optimizer->apply({.name = "v", .value = &value, .gradient = &gradient, .slots = slots, .step = step});
  const double decay = run.decay_of(value);
  for (std::int64_t i = 0; i < value.elements(); ++i) {
    const auto slot = [&](std::size_t k) { return k < slots.size() ? double{slots_before[k].data<float>()[i]} : 0; };
    const Element x = {before.data<float>()[i], gradient.data<float>()[i], slot(0), slot(1)};
    // LogAdam counts from an element's first gradient on.
    const bool counts = run.kind == Kind::kLogAdam;
    const double passed = !counts ? 0 : x.first == 0 && x.second == 0 ? static_cast<double>(step - 1) : slot(2);
    const Updated wanted = run.wanted(x, decay, static_cast<double>(step) - passed);
    const auto complaint = [&](std::string_view what, float found, const Number& number) {
      return concat(run.text(value), ", step ", step, ": ", what, " is ", found, " at ", i, ", should be ",
                    number.value, "; ", number.error, " would be rounding");
    };
    if (differs(value.data<float>()[i], wanted.w)) return complaint("the variable", value.data<float>()[i], wanted.w);
    for (std::size_t k = 0; k < slots.size(); ++k)
      if (const Number& number = k == 0   ? wanted.first
                                 : k == 1 ? wanted.second
                                          : Number{passed};
          differs(slots[k]->data<float>()[i], number))
        return complaint(run.optimizer->slot_names()[k], slots[k]->data<float>()[i], number);
  }
  return "";
}

}  // namespace

std::string judge_optimizer(std::uint64_t seed, std::int64_t& compared) {
  Run run{.random = Random(seed)};
  set_thread_count(1 + static_cast<int>(run.random.below(8)));
  run.make();
  Tensor value = run.numbers(run.shape());
  for (std::size_t k = 0; k < run.optimizer->slot_names().size(); ++k) run.slots.emplace_back(value.shape());
  const auto first = static_cast<std::int64_t>(1 + run.random.below(run.chance(2) ? 1 : 1000));
  for (std::int64_t step = first; step < first + 3; ++step) {
    const std::string wrong = judge_step(run, value, step);
    compared += value.elements() * static_cast<std::int64_t>(1 + run.slots.size());
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace miniqat::fuzz
