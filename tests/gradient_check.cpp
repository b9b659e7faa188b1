#include "tests/gradient_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/tensors/random.h"
#include "core/tensors/shape.h"
#include "layers/layers.h"

namespace miniqat::testing {
namespace {

/// A power of two, so that x + kStep and x - kStep are exact in float32 for the values of distinct_values.
constexpr double kStep = 0x1p-18;

std::string neighbourhood(std::span<const double> values, std::int64_t i) {
  constexpr std::int64_t kReach = 3;
  const auto count = static_cast<std::int64_t>(values.size());
  std::string text;
  for (std::int64_t k = std::max<std::int64_t>(0, i - kReach); k < std::min(count, i + kReach + 1); ++k)
    text += k == i ? concat(" <", values[k], ">") : concat(" ", values[k]);
  return text;
}

/// The session of one check: every run starts from the same variables and the same step, so that dropout drops the same
/// elements and moving averages start at the same values.
class Runner {
 public:
  explicit Runner(const GradientCheck& check)
      : check_(check), session_(check.graph, {.backend = Backend::kReference, .precision = DType::kFloat64}) {
    for (const auto& [name, value] : check.variables) session_.set_variable(name, value);
    start_ = session_.checkpoint();
  }

  std::vector<Tensor> gradients() {
    session_.restore(start_, Session::Restore::kExact, "the start");
    return session_
        .run({.fetches = {},
              .gradients_of = check_.objective,
              .gradient_targets = check_.targets,
              .training = check_.training},
             check_.feeds)
        .gradients;
  }

  Tensor start_value(Output target) const {
    for (const auto& [output, tensor] : check_.feeds)
      if (output == target) return tensor;
    return start_.tensors.at(target.node->name());
  }

  /// The objective with one of the inputs exchanged.
  Tensor objective_at(Output target, const Tensor& value) {
    Safetensors variables = start_;
    Feeds feeds = check_.feeds;
    const auto fed = std::ranges::find(feeds, target, &Feeds::value_type::first);
    if (fed != feeds.end())
      fed->second = value;
    else
      variables.tensors.at(target.node->name()) = value;
    session_.restore(variables, Session::Restore::kExact, "the start");
    return session_
        .run({.fetches = {check_.objective}, .gradients_of = {}, .gradient_targets = {}, .training = check_.training},
             feeds)
        .fetched.front();
  }

 private:
  const GradientCheck& check_;
  Session session_;
  Safetensors start_;
};

struct Difference {
  double derivative;
  /// How much of it may be rounding of the two values that were subtracted.
  double noise;
};

/// The derivative of the sum of the objective by one element. The elements of the objective are subtracted before they
/// are summed: those which don't depend on x then cancel exactly.
Difference central_difference(Runner& runner, Output target, std::int64_t i) {
  Tensor above = runner.start_value(target).clone();
  Tensor below = above.clone();
  const double x = above.data<float>()[i];
  above.data<float>()[i] = static_cast<float>(x + kStep);
  below.data<float>()[i] = static_cast<float>(x - kStep);
  const double width = static_cast<double>(above.data<float>()[i]) - below.data<float>()[i];
  const Tensor high = runner.objective_at(target, above);
  const Tensor low = runner.objective_at(target, below);
  double sum = 0, magnitude = 0;
  for (std::int64_t k = 0; k < high.elements(); ++k) {
    const double a = high.data<double>()[k], b = low.data<double>()[k];
    sum += a - b;
    if (a != b) magnitude = std::max(magnitude, std::abs(a));
  }
  constexpr double kRoundings = 8;
  return {sum / width, kRoundings * std::numeric_limits<double>::epsilon() * magnitude / width};
}

std::vector<std::int64_t> chosen_places(std::int64_t elements, std::int64_t count) {
  std::vector<std::int64_t> places(std::min(elements, count));
  if (elements <= count) {
    std::iota(places.begin(), places.end(), 0);
  } else {
    Random random(hash_text("places"));
    for (std::int64_t& i : places) i = static_cast<std::int64_t>(random.below(elements));
  }
  return places;
}

}  // namespace

Output weighted(Graph& graph, std::span<const Output> outputs) {
  std::vector<Output> products;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (outputs[k].spec().dtype != DType::kFloat32) continue;
    Random random(mix(hash_text("weights"), k));
    std::vector<double> weights(outputs[k].shape().elements());
    for (double& weight : weights) weight = random.uniform(-1, 1);
    const std::string name = concat("weighted/", k);
    const Output weight = layers::constant(graph, name + "/weights", outputs[k].shape(), weights);
    const Output one = layers::constant(graph, name + "/one", {}, {1});
    const Output shifted = layers::add(graph, name + "/shifted", outputs[k], one);
    const Output product = layers::mul(graph, name + "/product", shifted, weight);
    products.push_back(layers::reshape(graph, name + "/flat", product, {.shape = {-1}}));
  }
  return layers::concat(graph, "weighted/objective", products, {.axis = 0});
}

std::string check_gradients(const GradientCheck& check) {
  Runner runner(check);
  const std::vector<Tensor> gradients = runner.gradients();
  for (std::size_t t = 0; t < check.targets.size(); ++t) {
    const Output target = check.targets[t];
    const std::span<const double> computed = gradients[t].values<double>();
    const std::vector<std::int64_t> places = chosen_places(target.shape().elements(), check.places);
    std::vector<Difference> measured;
    double largest = 0;
    for (const std::int64_t i : places) {
      measured.push_back(central_difference(runner, target, i));
      largest = std::max(largest, std::abs(measured.back().derivative));
    }
    for (std::size_t k = 0; k < places.size(); ++k) {
      const auto [derivative, noise] = measured[k];
      const double allowed = check.tolerance * std::max(std::abs(derivative), 1e-3 * largest) + noise;
      if (std::abs(computed[places[k]] - derivative) <= allowed) continue;
      return concat("the gradient of ", target.name(), " ", target.shape(), " at ", place_in(target.shape(), places[k]),
                    " is ", computed[places[k]], ", the central difference ", derivative,
                    "; gradients around it:", neighbourhood(computed, places[k]));
    }
  }
  return "";
}

std::string difference(const Tensor& got, const Tensor& wanted, double tolerance) {
  if (got.shape() != wanted.shape()) return concat("shape ", got.shape(), ", wanted ", wanted.shape());
  const Tensor got_double = got.to(DType::kFloat64);
  const Tensor wanted_double = wanted.to(DType::kFloat64);
  const std::span<const double> a = got_double.values<double>();
  const std::span<const double> b = wanted_double.values<double>();
  double largest = 0;
  for (const double value : b)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  double worst = 0;
  std::size_t at = a.size();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    const double error = std::isfinite(a[i]) && std::isfinite(b[i]) ? std::abs(a[i] - b[i]) : INFINITY;
    if (error <= worst) continue;
    worst = error;
    at = i;
  }
  if (worst <= tolerance * largest) return "";
  const auto i = static_cast<std::int64_t>(at);
  return concat("of shape ", got.shape(), " differs most at ", place_in(got.shape(), i), ", by ", worst, " where ",
                tolerance * largest, " is allowed; got", neighbourhood(a, i), ", wanted", neighbourhood(b, i));
}

Tensor distinct_values(const Shape& shape, double low, double high, std::uint64_t seed) {
  constexpr double kGrid = 0x1p-16;
  Tensor tensor(shape);
  const std::span<float> values = tensor.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double even = low + (high - low) * (static_cast<double>(i) + 0.5) / static_cast<double>(values.size());
    values[i] = static_cast<float>((std::floor(even / kGrid) + 0.5) * kGrid);
  }
  Random random(seed);
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
  return tensor;
}

}  // namespace miniqat::testing
