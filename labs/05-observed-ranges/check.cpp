#include <algorithm>
#include <cmath>

#include "labs/05-observed-ranges/lab.h"
#include "labs/chart.h"
#include "quantize/fake_quant.h"
#include "quantize/range_training.h"

namespace lab05 {
namespace {

namespace quantize = miniqat::quantize;

struct Question {
  Range stored, batch;
  double decay;
  int step, delay;
};

const Question kQuestions[] = {{{0, 0}, {-1, 2}, 0.9, 1, 0},        {{-1, 2}, {-2, 3}, 0.9, 2, 0},
                               {{-1.4, 2.6}, {-1, 2}, 0.9, 10, 20}, {{0, 4}, {0, 6}, 0.99, 3, 3},
                               {{0, 4}, {0, 6}, 0.99, 2, 3},        {{-0.5, 0.5}, {-1, 1}, 0.999, 2000, 500},
                               {{-3, 1}, {-1.5, 0.25}, 0.5, 2, 1}};

lab::Numbers numbers_of(const Step& step) { return {step.range.min, step.range.max, step.quantizes ? 1.0 : 0.0}; }

/// The stored range, moved by a share of the way to the batch's.
Range moved(const Question& q, double weight) {
  return {quantize::move_towards(q.stored.min, q.batch.min, weight),
          quantize::move_towards(q.stored.max, q.batch.max, weight)};
}

double right_weight(const Question& q) { return quantize::debiased_weight(q.decay, q.step); }

Step right_step(const Question& q) {
  const quantize::FakeQuantAttributes attributes = {.ema_decay = q.decay, .delay = q.delay};
  return {moved(q, right_weight(q)), attributes.quantizes(q.step)};
}

/// The moments of Adam are stored as they come and divided when they are read. Here the quotient itself is stored.
Range divided(const Question& q) {
  const double sum = 1 - std::pow(q.decay, q.step);
  const Range plain = moved(q, 1 - q.decay);
  return {plain.min / sum, plain.max / sum};
}

/// A typical mistake: another range, or another answer to whether the step quantizes; the other part is right.
struct Mistake {
  Range (*range)(const Question& q);
  bool (*quantizes)(const Question& q);
  const char* hint;
};

Range right_range(const Question& q) { return right_step(q).range; }
bool right_delay(const Question& q) { return right_step(q).quantizes; }

constexpr const char* kSwapped =
    "The decay belongs to the old range: you give the batch what the old range should have. A decay of 0.999 remembers long.";

const Mistake kMistakes[] = {
    {[](const Question& q) { return moved(q, 1 - q.decay); }, right_delay,
     "The first steps of your average lean towards the range before training, which means nothing. The weight of the newest batch is (1 - decay) / (1 - decay^step): 1 in the first step."},
    {[](const Question& q) { return moved(q, 1 - right_weight(q)); }, right_delay, kSwapped},
    {[](const Question& q) { return moved(q, q.decay); }, right_delay, kSwapped},
    {right_range, [](const Question& q) { return q.step + 1 >= q.delay; },
     "Your quantization begins one step too early. With delay n, step n is the first that quantizes: step >= delay, where 1 is the first step."},
    {right_range, [](const Question& q) { return q.step > q.delay; },
     "Your quantization begins one step too late. 1 is the first step, and with delay n step n quantizes already: step >= delay."},
    {right_range, [](const Question&) { return false; },
     "The range is right, but no step of yours quantizes. Set result.quantizes: true from step `delay` on."},
    {right_range, [](const Question&) { return true; },
     "The range is right, but each step of yours quantizes. Those before step `delay` compute in float."},
    {right_range, [](const Question& q) { return q.step < q.delay; },
     "You quantize during the delay, and not after it. It is the other way round."},
    {[](const Question& q) { return q.step >= q.delay ? right_range(q) : q.stored; }, right_delay,
     "You do not observe before quantization begins. That is what the delay is for: until its end the range finds its place."},
    {[](const Question& q) { return q.batch; }, right_delay,
     "You keep the range of the last batch. It jumps from batch to batch; evaluation needs one that lasts."},
    {[](const Question& q) { return q.stored; }, right_delay,
     "You leave the stored range as it is. Each step moves it towards the batch's range."},
    {[](const Question& q) {
       return Range{std::min(q.stored.min, q.batch.min), std::max(q.stored.max, q.batch.max)};
     },
     right_delay,
     "You keep the smallest and the largest number of all batches. A single outlier then sets the range for ever; the average forgets it."},
    {[](const Question& q) { return moved(q, 1.0 / q.step); }, right_delay,
     "You take the mean of all batches so far. Old ones then count as much as new ones, although the network has changed: the weight goes down to 1 - decay, not to 0."},
    {divided, right_delay,
     "You divide the stored range by 1 - decay^step, in each step again. It is an average already; only the weight of the batch has that divisor."},
    {[](const Question& q) { return moved(q, (1 - q.decay) / (1 - std::pow(q.decay, q.step - 1))); }, right_delay,
     "You count steps from 0. 1 is the first step, and 1 - decay^step is not 0 there."},
    {[](const Question& q) { return moved(q, 1 - std::pow(q.decay, q.step)); }, right_delay,
     "Your weight grows with the steps. It is (1 - decay) / (1 - decay^step): 1 in the first step, then less and less."}};

lab::Case case_for(const Question& q, decltype(&training_step) answer) {
  lab::Case result = {.question = "step " + lab::text(q.step) + ", decay " + lab::text(q.decay) + ", delay " +
                                  lab::text(q.delay) + ", stored [" + lab::text(q.stored.min) + ", " +
                                  lab::text(q.stored.max) + "], batch [" + lab::text(q.batch.min) + ", " +
                                  lab::text(q.batch.max) + "]",
                      .right = numbers_of(right_step(q)),
                      .got = numbers_of(answer(q.stored, q.batch, q.step, q.decay, q.delay)),
                      .mistaken = {}};
  for (const Mistake& mistake : kMistakes)
    result.mistaken.push_back(numbers_of({mistake.range(q), mistake.quantizes(q)}));
  return result;
}

constexpr double kDecay = 0.9;

struct Track {
  double batch = 0, weight = 0, range = 0, biased = 0;
};

/// Largest numbers of batches about 3, their average without bias, and the plain one, which begins at 0.
std::vector<Track> track(int steps) {
  const std::vector<float> noise = lab::bell(static_cast<std::size_t>(steps), 3);
  std::vector<Track> result;
  double range = 0, biased = 0;
  for (int step = 1; step <= steps; ++step) {
    const double batch = 3 + 0.3 * noise[static_cast<std::size_t>(step) - 1];
    const double weight = quantize::debiased_weight(kDecay, step);
    range = quantize::move_towards(range, batch, weight);
    biased = quantize::move_towards(biased, batch, 1 - kDecay);
    result.push_back({batch, weight, range, biased});
  }
  return result;
}

}  // namespace

void check(lab::Report& report, decltype(&training_step) answer) {
  std::vector<lab::Case> cases;
  for (const Question& question : kQuestions) cases.push_back(case_for(question, answer));
  report.judge("min, max and whether it quantizes", cases, lab::hints_of(kMistakes));
}

void show(std::ostream& out) {
  out << "decay 0.9\nstep    weight    batch    average    plain average\n";
  const std::vector<Track> steps = track(30);
  for (const std::size_t step : {1, 2, 3, 4, 5, 10, 20, 30}) {
    const Track& one = steps[step - 1];
    out << lab::text(static_cast<double>(step), "%4.0f") << lab::text(one.weight, "%10.3f")
        << lab::text(one.batch, "%9.3f") << lab::text(one.range, "%11.3f") << lab::text(one.biased, "%17.3f") << "\n";
  }
  out << "(1 - 0.9) / (1 - 0.9^2) is " << lab::text(quantize::debiased_weight(kDecay, 2), "%.3f")
      << "; a decay of 0.999 averages over about " << lab::text(1 / (1 - 0.999), "%.0f") << " steps\n";
}

std::string figure() {
  constexpr int kSteps = 40;
  lab::Chart chart("The largest number of a tensor, decay 0.9", {"training step", 0, kSteps, {0, 10, 20, 30, 40}},
                   {"max", 0, 4, {0, 1, 2, 3, 4}});
  lab::Points batches, average, plain;
  const std::vector<Track> steps = track(kSteps);
  for (int step = 1; step <= kSteps; ++step) {
    const Track& one = steps[static_cast<std::size_t>(step) - 1];
    batches.emplace_back(step, one.batch);
    average.emplace_back(step, one.range);
    plain.emplace_back(step, one.biased);
  }
  chart.dots(batches, lab::Colour::kGrey, 3);
  chart.line(plain, lab::Colour::kOrange);
  chart.line(average, lab::Colour::kBlue);
  chart.label(12, 1.6, "plain average, from 0", lab::Colour::kOrange);
  chart.label(12, 1.2, "without bias", lab::Colour::kBlue);
  chart.label(12, 0.8, "dots: batches", lab::Colour::kGrey);
  return chart.svg();
}

}  // namespace lab05
