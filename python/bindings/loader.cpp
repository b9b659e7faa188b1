// Batches of data sets.

#include "datasets/loader.h"

#include <unistd.h>

#include <memory>

#include "core/text/error.h"
#include "python/bindings/handles.h"

namespace miniqat::python {

using datasets::Dataset;
using datasets::Loader;

/// One thread at a time, and only in the process that made it: a fork leaves the loader's thread behind.
struct LoaderHandle {
  LoaderHandle(const datasets::Dataset& dataset, const Loader::Options& options)
      : loader(std::make_unique<Loader>(dataset, options)) {}
  ~LoaderHandle() {
    // It would wait for its thread.
    if (!is_here()) static_cast<void>(loader.release());
  }
  LoaderHandle(const LoaderHandle&) = delete;
  bool is_here() const { return process == getpid(); }

  std::unique_ptr<Loader> loader;
  OneAtATime turns;
  pid_t process = getpid();
};
template <>
inline constexpr bool kIsBound<LoaderHandle> = true;

namespace {

py::tuple next(LoaderHandle& self) {
  if (!self.is_here()) fail("this Loader is of another process, and so is its thread: make one here");
  Tensor images, answers;
  {
    const Unlocked open;
    const OneAtATime::Turn turn(self.turns);
    const datasets::Batch& batch = self.loader->next();
    images = batch.images.grid ? numbers_of(batch.images) : batch.images.clone();
    const Tensor& wanted = batch.labels.defined() ? batch.labels : batch.targets;
    if (wanted.defined()) answers = wanted.clone();
  }
  return py::make_tuple(to_array(images), answers.defined() ? py::object(to_array(answers)) : py::none());
}

}  // namespace

void bind_loader(py::module_& module) {
  py::class_<LoaderHandle>(
      module, "Loader",
      "Endless shuffled batches, prepared ahead by a thread: an iterator over (images, labels), float32\n"
      "and int32; in the place of labels the targets, float32, or None, as the data have them. Sounds that load()\n"
      "was asked to vary (shift_ms, say) are varied anew in each batch. Batch i depends on the data set, the\n"
      "options and i alone.")
      .def(py::init([](const Dataset& dataset, std::int64_t batch_size, bool shuffle, std::uint64_t seed,
                       std::int64_t first_batch) {
             return std::make_unique<LoaderHandle>(
                 dataset, Loader::Options{.batch_size = batch_size,
                                          .shuffle = shuffle,
                                          .seed = seed,
                                          .first_batch = first_batch,
                                          .augment = {.vary_sounds = dataset.sounds != nullptr}});
           }),
           py::arg("dataset"), py::arg("batch_size") = 128, py::arg("shuffle") = true, py::arg("seed") = 1,
           py::arg("first_batch") = 0, "An epoch is batches_per_epoch batches; examples left over sit it out.")
      .def_property_readonly(
          "batches_per_epoch", [](const LoaderHandle& self) { return self.loader->batches_per_epoch(); },
          "Whole batches of the data set.")
      .def("__iter__", [](const py::object& self) { return require_initialized(self), self; })
      .def("__next__", &next);
}

}  // namespace miniqat::python
