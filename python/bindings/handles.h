#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/engine/session.h"
#include "core/graph/graph.h"
#include "datasets/dataset.h"
#include "integer/model.h"
#include "python/bindings/arrays.h"
#include "python/bindings/interpreter.h"
#include "training/model_source.h"

// What Python's objects hold. A graph and its sessions are for one thread at a time, and the interpreter's lock is open
// during long work: every use of either goes through GraphHandle::locked().
namespace miniqat::python {

namespace py = pybind11;

/// Throws TypeError for an object of one of our classes that __init__ has not filled. Python makes an object by __new__
/// and fills it by __init__. One without the second (X.__new__(X), or a class of the user's that derives from X and
/// forgets it) holds no object of C++; pybind11 would hand out memory that nobody has set.
inline void require_initialized(py::handle object) {
  const auto* base = reinterpret_cast<PyTypeObject*>(py::detail::get_internals().instance_base);
  if (!object || PyType_IsSubtype(Py_TYPE(object.ptr()), const_cast<PyTypeObject*>(base)) == 0) return;
  for (const py::detail::value_and_holder& held :
       py::detail::values_and_holders(reinterpret_cast<py::detail::instance*>(object.ptr())))
    if (held.value_ptr() == nullptr)
      throw py::type_error(std::string(py::str(py::type::of(object).attr("__name__"))) + ".__init__() was not called");
}

class GraphHandle {
 public:
  explicit GraphHandle(std::shared_ptr<Graph> graph) : graph_(std::move(graph)) {}
  explicit GraphHandle(Graph graph) : GraphHandle(std::make_shared<Graph>(std::move(graph))) {}

  /// Calls use(graph), without the interpreter's lock, when no other thread uses the graph or a session on it.
  template <class Use>
  decltype(auto) locked(const Use& use) {
    const Unlocked open;
    const OneAtATime::Turn turn(turns_);
    return use(*graph_);
  }

 private:
  std::shared_ptr<Graph> graph_;
  OneAtATime turns_;
};

/// An output by its name, "node" or "node:k": it is looked up at each use, for a rewrite may remove nodes.
struct OutputHandle {
  std::shared_ptr<GraphHandle> graph;
  std::string name;

  TensorSpec spec() const {
    return graph->locked([&](Graph& of) { return of.output_at(name).spec(); });
  }
};

/// The name of an OutputHandle or the text itself. Throws TypeError for anything else, and Error for an output of
/// another graph.
std::string output_name(py::handle output, const std::shared_ptr<GraphHandle>& graph);
/// The name of one output, or of each in a list.
std::vector<std::string> output_names(py::handle outputs, const std::shared_ptr<GraphHandle>& graph);

/// A classifier with its ends, by name; `whole` owns the graph.
struct ClassifierHandle {
  explicit ClassifierHandle(training::Classifier made);

  /// The classifier with the first output that the graph has now: a rewrite in place may have put another there and
  /// removed the former. Within GraphHandle::locked(). Throws what find_logits() throws.
  training::Classifier& current() const;

  std::shared_ptr<training::Classifier> whole;
  std::shared_ptr<GraphHandle> graph;
};

/// Bytes of the caller's that stand for numbers.
struct BytesHandle {
  Borrowed array;
  CodeGrid grid;
};

/// Arrays for placeholders: their memory is used as it is (borrow()), but that of integers, which are checked before
/// they are used as places, is copied.
class NamedFeeds {
 public:
  /// A dictionary from outputs or their names to arrays or BytesHandles.
  NamedFeeds(const py::dict& arrays, const std::shared_ptr<GraphHandle>& graph);
  /// Within GraphHandle::locked().
  Feeds feeds_of(const Graph& graph) const;

 private:
  std::vector<std::pair<std::string, CodedTensor>> values_;
  /// Their memory's owners.
  std::vector<py::object> keepers_;
};

struct SessionHandle {
  SessionHandle(const std::shared_ptr<GraphHandle>& graph_to_run, const SessionOptions& options);

  /// Calls use(session) as GraphHandle::locked() does.
  template <class Use>
  decltype(auto) locked(const Use& use) {
    return graph->locked([&](Graph&) -> decltype(auto) { return use(*session); });
  }

  std::shared_ptr<GraphHandle> graph;
  std::unique_ptr<Session> session;
};

/// A model that nobody changes: a copy with other names of classes takes its place.
struct ModelHandle {
  ModelHandle(integer::Model made) : model(std::make_shared<const integer::Model>(std::move(made))) {}

  std::shared_ptr<const integer::Model> model;
};

/// A copy of pictures, [n, h, w, c] uint8, by the rules of miniqat.Dataset(); `notes` gets those on the conversion.
/// Throws ValueError and TypeError, which say what helps.
Tensor picture_bytes(const ArrayLike& images, std::vector<std::string>& notes);

/// A copy of numbers, [n, ...] float32, by the rules of miniqat.Dataset.of_numbers(); `notes` as above. Throws
/// ValueError and TypeError.
Tensor checked_numbers(const ArrayLike& numbers, const std::string& what, std::vector<std::string>& notes);

/// Gives notes ("note: ...") as Python's UserWarnings.
void warn_in_python(const std::vector<std::string>& notes);

/// Throws the pending KeyboardInterrupt, if there is one, or what else a signal's handler raised. To be called without
/// the interpreter's lock.
void check_signals();

template <class T, class... Types>
inline constexpr bool kIsOneOf = (std::is_same_v<T, Types> || ...);

/// True of the types that are classes in Python.
template <class T>
inline constexpr bool kIsBound = kIsOneOf<T, GraphHandle, OutputHandle, ClassifierHandle, BytesHandle, SessionHandle,
                                          datasets::Dataset, ModelHandle, Optimizer>;

void bind_graph(py::module_& module);
void bind_session(py::module_& module);
void bind_optimizers(py::module_& module);
void bind_quantize(py::module_& module);
void bind_fake_quant(py::module_& module);
void bind_integers(py::module_& module);
void bind_data(py::module_& module);
void bind_loader(py::module_& module);
void bind_training(py::module_& module);
void bind_train(py::module_& module);
void bind_quantize_run(py::module_& module);
void bind_runs(py::module_& module);

}  // namespace miniqat::python

namespace pybind11::detail {

template <class T>
requires miniqat::python::kIsBound<T>
struct type_caster<T> : type_caster_base<T> {
  bool load(handle source, bool convert) {
    miniqat::python::require_initialized(source);
    return type_caster_base<T>::load(source, convert);
  }
};

template <class T>
requires miniqat::python::kIsBound<T>
struct type_caster<std::shared_ptr<T>> : copyable_holder_caster<T, std::shared_ptr<T>> {
  bool load(handle source, bool convert) {
    miniqat::python::require_initialized(source);
    // Else None would be a null pointer.
    if (source.is_none()) return false;
    return copyable_holder_caster<T, std::shared_ptr<T>>::load(source, convert);
  }
};

}  // namespace pybind11::detail
