// Optimizers and the schedules of their learning rates.

#include <pybind11/stl.h>

#include "optim/adam.h"
#include "optim/sgd.h"
#include "python/bindings/handles.h"

namespace miniqat::python {

template <>
inline constexpr bool kIsBound<optim::Schedule> = true;
template <>
inline constexpr bool kIsBound<optim::Sgd> = true;
template <>
inline constexpr bool kIsBound<optim::Adam> = true;

namespace {

using optim::Adam;
using optim::Schedule;
using optim::Sgd;

std::unique_ptr<Sgd> make_sgd(double learning_rate, double momentum, bool nesterov, double weight_decay, bool decay_all,
                              double range_learning_rate, const Schedule& schedule) {
  return std::make_unique<Sgd>(optim::SgdOptions{.learning_rate = learning_rate,
                                                 .momentum = momentum,
                                                 .nesterov = nesterov,
                                                 .weight_decay = weight_decay,
                                                 .decay_all = decay_all,
                                                 .schedule = schedule,
                                                 .ranges = {.learning_rate = range_learning_rate}});
}

std::unique_ptr<Adam> make_adam(double learning_rate, double beta1, double beta2, double epsilon, double weight_decay,
                                bool decay_all, double range_learning_rate, const Schedule& schedule) {
  return std::make_unique<Adam>(optim::AdamOptions{.learning_rate = learning_rate,
                                                   .beta1 = beta1,
                                                   .beta2 = beta2,
                                                   .epsilon = epsilon,
                                                   .weight_decay = weight_decay,
                                                   .decay_all = decay_all,
                                                   .schedule = schedule,
                                                   .ranges = {.learning_rate = range_learning_rate}});
}

Schedule make(const std::string& kind, std::int64_t warmup_steps, std::int64_t every, double factor,
              std::int64_t total_steps, double floor) {
  return optim::make_schedule(
      kind,
      {.warmup_steps = warmup_steps, .every = every, .factor = factor, .total_steps = total_steps, .floor = floor});
}

}  // namespace

void bind_optimizers(py::module_& module) {
  py::class_<Schedule>(module, "Schedule", "The factor on the learning rate in each step.")
      .def(py::init(&make), py::arg("kind") = "constant", py::arg("warmup_steps") = 0, py::arg("every") = 0,
           py::arg("factor") = 0.1, py::arg("total_steps") = 0, py::arg("floor") = 0.0,
           "kind: \"constant\"; \"step\" or \"exponential\" (the rate falls by `factor` in `every` steps); \"cosine\"\n"
           "(to `floor` behind step `total_steps`). In the first `warmup_steps` it rises.")
      .def("factor", &Schedule::factor, py::arg("step"), "The factor in that step; 1 is the first.");
  py::class_<Optimizer>(module, "Optimizer", "How gradients change variables. Its state lives in the session.")
      .def("learning_rate", &Optimizer::learning_rate, py::arg("step"), "The rate in that step; 1 is the first.");
  py::class_<Sgd, Optimizer>(module, "Sgd", "Stochastic gradient descent with momentum.")
      .def(py::init(&make_sgd), py::arg("learning_rate") = 0.01, py::arg("momentum") = 0.0, py::arg("nesterov") = false,
           py::arg("weight_decay") = 0.0, py::arg("decay_all") = false, py::arg("range_learning_rate") = 0.003,
           py::arg_v("schedule", Schedule(), "Schedule()"),
           "`range_learning_rate` is that of learned ranges. `weight_decay` leaves biases out unless `decay_all`.");
  py::class_<Adam, Optimizer>(module, "Adam", "Adam with L2 weight decay.")
      .def(py::init(&make_adam), py::arg("learning_rate") = 0.001, py::arg("beta1") = 0.9, py::arg("beta2") = 0.999,
           py::arg("epsilon") = 1e-8, py::arg("weight_decay") = 0.0, py::arg("decay_all") = false,
           py::arg("range_learning_rate") = 0.003, py::arg_v("schedule", Schedule(), "Schedule()"),
           "`range_learning_rate` is that of learned ranges. `weight_decay` leaves biases out unless `decay_all`.");
}

}  // namespace miniqat::python
