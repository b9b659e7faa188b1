#include <algorithm>
#include <cmath>

#include "labs/09-calibration-and-training/lab.h"
#include "labs/chart.h"
#include "quantize/affine.h"

namespace lab09 {
namespace {

namespace quantize = miniqat::quantize;

quantize::Affine<double> affine(const Grid& grid) {
  return quantize::grid_of<double>({-grid.end, grid.end}, {.bits = grid.bits, .narrow_range = true, .symmetric = true});
}

Values rounded(const Values& weights, const Grid& grid) {
  Values result;
  for (const double w : weights) result.push_back(fake_quantize(grid, w));
  return result;
}

Values outputs(const Batch& batch, const Values& weights) {
  Values result;
  for (const Values& x : batch.x) {
    double sum = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) sum += x[i] * weights[i];
    result.push_back(sum);
  }
  return result;
}

/// The gradient of the loss with respect to weights that are used as they are.
Values gradient_at(const Batch& batch, const Values& weights) {
  const Values y = outputs(batch, weights);
  Values gradient(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i)
    for (std::size_t n = 0; n < y.size(); ++n)
      gradient[i] += 2 * (y[n] - batch.target[n]) * batch.x[n][i] / static_cast<double>(y.size());
  return gradient;
}

double loss_of(const Batch& batch, const Values& weights) {
  const Values y = outputs(batch, weights);
  double sum = 0;
  for (std::size_t n = 0; n < y.size(); ++n) sum += (y[n] - batch.target[n]) * (y[n] - batch.target[n]);
  return sum / static_cast<double>(y.size());
}

/// `from` minus `rate` times the gradient at `used`, where `passes` says so of the float weights.
template <class Passes>
Values stepped(const Values& from, const Values& used, const Values& weights, const Batch& batch, double rate,
               Passes passes) {
  const Values gradient = gradient_at(batch, used);
  Values result = from;
  for (std::size_t i = 0; i < result.size(); ++i)
    if (passes(weights[i])) result[i] -= rate * gradient[i];
  return result;
}

Values right_step(const Values& weights, const Grid& grid, const Batch& batch, double rate) {
  return stepped(weights, rounded(weights, grid), weights, batch, rate,
                 [&](double w) { return quantize::gradient_passes(affine(grid), w); });
}

/// Inputs that depend on each other, as pixels and channels do, and the outputs of a neuron that is known.
Batch batch_of(std::size_t count, const Values& neuron, unsigned seed) {
  Batch batch;
  const std::vector<float> numbers = lab::bell(count * (neuron.size() + 1), seed);
  for (std::size_t n = 0; n < count; ++n) {
    const float* own = numbers.data() + n * (neuron.size() + 1);
    Values x;
    for (std::size_t i = 0; i < neuron.size(); ++i) x.push_back(own[0] + 0.5 * own[i] + 0.5 * own[i + 1]);
    batch.x.push_back(x);
  }
  batch.target = outputs(batch, neuron);
  return batch;
}

Values neuron_of(std::size_t inputs, unsigned seed) {
  Values weights;
  for (const float w : lab::bell(inputs, seed)) weights.push_back(0.5 * w);
  return weights;
}

/// All that the function is given.
struct Question {
  Values weights;
  Grid grid;
  Batch batch;
  double rate = 0;

  double examples() const { return static_cast<double>(batch.x.size()); }
  Values used() const { return rounded(weights, grid); }
};

bool always(double) { return true; }

/// A step from `from` by the gradient at `used`, with `factor` times the rate.
Values step_of(const Question& q, const Values& from, const Values& used, double factor) {
  return stepped(from, used, q.weights, q.batch, q.rate * factor, [&](double w) { return gradient_passes(q.grid, w); });
}

Values no_range_step(const Question& q, const Values& from, const Values& used) {
  return stepped(from, used, q.weights, q.batch, q.rate, always);
}

/// A step for each example, with `factor` times the rate.
Values steps_by_example(const Question& q, double factor) {
  Question one = q;
  for (std::size_t n = 0; n < q.batch.x.size(); ++n) {
    one.batch = {{q.batch.x[n]}, {q.batch.target[n]}};
    one.weights = step_of(one, one.weights, one.used(), factor);
  }
  return one.weights;
}

struct Mistake {
  Values (*weights)(const Question& q);
  const char* hint;
};

constexpr const char* kFloatForward =
    "You compute the output with float weights. Then training sees nothing of the rounding: use fake_quantize(grid, w) in the sum.";
constexpr const char* kRounds =
    "You change the rounded weights. The small update must be added to the float weight, or the next rounding undoes it and nothing is ever learned.";
constexpr const char* kByExample =
    "You change the weights after each example. A step takes the whole batch: first sum the gradient over all examples, then change each weight once.";

const Mistake kMistakes[] = {
    {[](const Question& q) { return step_of(q, q.weights, q.weights, 1); }, kFloatForward},
    {[](const Question& q) { return no_range_step(q, q.weights, q.weights); }, kFloatForward},
    {[](const Question& q) { return step_of(q, q.used(), q.used(), 1); }, kRounds},
    {[](const Question& q) { return no_range_step(q, q.used(), q.used()); }, kRounds},
    {[](const Question& q) { return rounded(step_of(q, q.weights, q.used(), 1), q.grid); },
     "You round the new weights. They stay floats, or an update smaller than half a step is lost; the next step rounds them for itself."},
    {[](const Question& q) { return no_range_step(q, q.weights, q.used()); },
     "Your step lets the gradient pass beyond the grid. Where gradient_passes(grid, w) says no, the weight stays (lab 4). Ask it of the float weight: a rounded one is never beyond."},
    {[](const Question& q) {
       return stepped(q.weights, q.used(), q.weights, q.batch, q.rate,
                      [&](double w) { return !gradient_passes(q.grid, w); });
     },
     "You change the weights that should stay. Where gradient_passes(grid, w) says yes, the weight moves."},
    {[](const Question& q) { return step_of(q, q.weights, q.used(), -1); },
     "You go uphill. A step is minus the rate times the gradient."},
    {[](const Question& q) { return step_of(q, q.weights, q.used(), q.examples()); },
     "You add up the examples. The loss is their mean: divide by their number."},
    {[](const Question& q) { return step_of(q, q.weights, q.used(), 0.5); },
     "Your steps are half as long as they should be. The derivative of the square has a factor 2: 2 * (output - target) * x[i]."},
    {[](const Question& q) { return step_of(q, q.weights, q.used(), 1 / q.rate); },
     "You leave out the rate. A step is the rate times the gradient."},
    {[](const Question& q) { return steps_by_example(q, 1); }, kByExample},
    {[](const Question& q) { return steps_by_example(q, 1 / q.examples()); }, kByExample},
    {[](const Question& q) { return q.weights; },
     "Your weights do not change. Each becomes w - rate * gradient, where gradient_passes(grid, w) says yes."},
    {[](const Question& q) { return gradient_at(q.batch, q.used()); },
     "You return the gradient. What is asked for is the new weights: w - rate * gradient."}};

lab::Case case_for(const std::string& question, const Question& q, decltype(&train_step) answer) {
  lab::Case result = {.question = question + " at " + lab::text(q.grid.bits) + " bits, rate " + lab::text(q.rate),
                      .right = right_step(q.weights, q.grid, q.batch, q.rate),
                      .got = answer(q.weights, q.grid, q.batch, q.rate),
                      .mistaken = {}};
  for (const Mistake& mistake : kMistakes) result.mistaken.push_back(mistake.weights(q));
  return result;
}

lab::Case random_case(std::size_t inputs, const Grid& grid, double rate, unsigned seed, decltype(&train_step) answer) {
  const Question q = {neuron_of(inputs, seed + 2), grid, batch_of(5, neuron_of(inputs, seed), seed + 1), rate};
  return case_for(lab::text(static_cast<double>(inputs)) + " weights, 5 examples", q, answer);
}

/// The page's example: two weights, one example.
const Question kSmall = {{0.25, 0.32}, {2, 0.6}, {{{1, 2}}, {0.5}}, 0.05};

constexpr std::size_t kInputs = 16, kNeurons = 8;

/// A layer: neurons that read the same inputs and share one grid.
struct Task {
  std::vector<Values> neurons;
  std::vector<Batch> train, test;
};

Task task() {
  Task made;
  for (unsigned n = 0; n < kNeurons; ++n) {
    made.neurons.push_back(neuron_of(kInputs, 91 + n));
    made.train.push_back(batch_of(100, made.neurons.back(), 191));
    made.test.push_back(batch_of(300, made.neurons.back(), 192));
  }
  return made;
}

/// The mean loss of all neurons.
double loss_of(const std::vector<Batch>& batches, const std::vector<Values>& neurons, const Grid& grid) {
  double sum = 0;
  for (std::size_t n = 0; n < neurons.size(); ++n) sum += loss_of(batches[n], rounded(neurons[n], grid));
  return sum / static_cast<double>(neurons.size());
}

/// The range with the least loss of the float weights, of 60.
Grid calibrated_grid(int bits, const Task& task) {
  double largest = 0;
  for (const Values& neuron : task.neurons)
    for (const double w : neuron) largest = std::max(largest, std::abs(w));
  Grid best = {bits, largest};
  for (int i = 1; i <= 60; ++i) {
    const Grid grid = {bits, largest * i / 60};
    if (loss_of(task.train, task.neurons, grid) < loss_of(task.train, task.neurons, best)) best = grid;
  }
  return best;
}

/// The float weights of one neuron after training, from the step whose rounded weights have the least loss.
Values trained(Values weights, const Grid& grid, const Batch& batch) {
  Values best = weights;
  double least = loss_of(batch, rounded(best, grid));
  for (int step = 0; step < 200; ++step) {
    weights = right_step(weights, grid, batch, 0.01);
    const double loss = loss_of(batch, rounded(weights, grid));
    if (loss < least) {
      least = loss;
      best = weights;
    }
  }
  return best;
}

struct Comparison {
  Grid grid;
  double calibrated = 0, trained = 0;
};

/// Tested on examples that neither calibration nor training saw.
Comparison compare(int bits) {
  Task layer = task();
  const Grid grid = calibrated_grid(bits, layer);
  const double calibrated = loss_of(layer.test, layer.neurons, grid);
  for (std::size_t n = 0; n < kNeurons; ++n) layer.neurons[n] = trained(layer.neurons[n], grid, layer.train[n]);
  return {grid, calibrated, loss_of(layer.test, layer.neurons, grid)};
}

double loss_of_zero() {
  const Task layer = task();
  return loss_of(layer.test, std::vector<Values>(kNeurons, Values(kInputs)), {});
}

}  // namespace

double fake_quantize(const Grid& grid, double w) { return quantize::fake_quantize(affine(grid), w); }
bool gradient_passes(const Grid& grid, double w) { return quantize::gradient_passes(affine(grid), w); }

void check(lab::Report& report, decltype(&train_step) answer) {
  report.judge("the new weights",
               {case_for("the page's two weights", kSmall, answer), random_case(2, {2, 0.4}, 0.1, 101, answer),
                random_case(8, {4, 0.5}, 0.05, 111, answer), random_case(6, {2, 0.3}, 0.2, 131, answer)},
               lab::hints_of(kMistakes), 1e-9);
}

void show(std::ostream& out) {
  const Grid& grid = kSmall.grid;
  const Batch& one = kSmall.batch;
  const Values used = kSmall.used(), after = right_step(kSmall.weights, grid, one, kSmall.rate);
  out << "2 bits: -0.6, 0, 0.6; x = (1, 2), target 0.5, rate 0.05\nfloat weights (0.25, 0.32), rounded ("
      << lab::text(used[0], "%.1f") << ", " << lab::text(used[1], "%.1f") << "), output "
      << lab::text(outputs(one, used)[0], "%.1f") << "\ngradient (" << lab::text(gradient_at(one, used)[0], "%.1f")
      << ", " << lab::text(gradient_at(one, used)[1], "%.1f") << "), new float weights (" << lab::text(after[0], "%.2f")
      << ", " << lab::text(after[1], "%.2f") << "), rounded (" << lab::text(rounded(after, grid)[0], "%.1f") << ", "
      << lab::text(rounded(after, grid)[1], "%.1f") << ")\n";
  out << "bits    end of the range    calibrated    trained    ratio\n";
  for (const int bits : {8, 4, 3, 2}) {
    const Comparison both = compare(bits);
    out << lab::text(bits, "%4.0f") << lab::text(both.grid.end, "%20.3f") << lab::text(both.calibrated, "%14.5f")
        << lab::text(both.trained, "%11.5f") << lab::text(both.calibrated / both.trained, "%9.1f") << "\n";
  }
  out << "all weights 0: " << lab::text(loss_of_zero(), "%.5f") << "\n";
}

std::string figure() {
  lab::Points calibrated, trained;
  double x = 0;
  for (const int bits : {4, 3, 2}) {
    const Comparison both = compare(bits);
    calibrated.emplace_back(bits - 0.15, both.calibrated);
    trained.emplace_back(bits + 0.15, both.trained);
    x = std::max(x, both.calibrated);
  }
  const double top = std::ceil(x * 10) / 10;
  lab::Chart chart("Loss on new examples", {"bits", 1.5, 4.5, {2, 3, 4}}, {"loss", 0, top, {0, top / 2, top}});
  chart.bars(calibrated, 0.28, lab::Colour::kOrange);
  chart.bars(trained, 0.28, lab::Colour::kBlue);
  chart.label(3, top * 0.9, "calibrated", lab::Colour::kOrange);
  chart.label(3, top * 0.82, "trained", lab::Colour::kBlue);
  return chart.svg();
}

}  // namespace lab09
