#include <algorithm>
#include <cmath>

#include "labs/05-observed-ranges/lab.h"
#include "labs/chart.h"
#include "quantize/fake_quant.h"
#include "quantize/range_observer.h"

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
                               {{0, 4}, {0, 6}, 0.99, 4, 3},        {{-0.5, 0.5}, {-1, 1}, 0.999, 2000, 500},
                               {{-3, 1}, {-1.5, 0.25}, 0.5, 2, 1}};

lab::Numbers numbers_of(const Step& step) { return {step.range.min, step.range.max, step.quantizes ? 1.0 : 0.0}; }

lab::Numbers moved(const Question& q, double weight, bool quantizes) {
  return {quantize::move_towards(q.stored.min, q.batch.min, weight),
          quantize::move_towards(q.stored.max, q.batch.max, weight), quantizes ? 1.0 : 0.0};
}

lab::Case case_for(const Question& q, Step (*answer)(Range, Range, int, double, int)) {
  const quantize::FakeQuantAttributes attributes = {.ema_decay = q.decay, .delay = q.delay};
  // The counter of quantization steps is 0 in the first step.
  const bool quantizes = attributes.quantizes(q.step - 1);
  const double weight = quantize::debiased_weight(q.decay, q.step);
  return {.question = "step " + lab::text(q.step) + ", decay " + lab::text(q.decay) + ", delay " + lab::text(q.delay) +
                      ", stored [" + lab::text(q.stored.min) + ", " + lab::text(q.stored.max) + "], batch [" +
                      lab::text(q.batch.min) + ", " + lab::text(q.batch.max) + "]",
          .right = moved(q, weight, quantizes),
          .got = numbers_of(answer(q.stored, q.batch, q.step, q.decay, q.delay)),
          .mistaken = {moved(q, 1 - q.decay, quantizes), moved(q, 1 - weight, quantizes),
                       moved(q, weight, q.step >= q.delay), moved(q, quantizes ? weight : 0, quantizes),
                       moved(q, 1, quantizes)}};
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

void check(lab::Report& report, Step (*answer)(Range stored, Range batch, int step, double decay, int delay)) {
  std::vector<lab::Case> cases;
  for (const Question& question : kQuestions) cases.push_back(case_for(question, answer));
  report.judge(
      "min, max and whether it quantizes", cases,
      {"The first steps of your average lean towards the range before training, which means nothing. The "
       "weight of the newest batch is (1 - decay) / (1 - decay^step): 1 in the first step.",
       "The decay belongs to the old range: you give the batch what the old range should have. A decay of "
       "0.999 remembers long.",
       "Your quantization begins one step too early. With delay n the first n steps do not quantize: "
       "step > delay, where 1 is the first step.",
       "You do not observe before quantization begins. That is what the delay is for: until its end the "
       "range finds its place.",
       "You keep the range of the last batch. It jumps from batch to batch; evaluation needs one that lasts."});
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
