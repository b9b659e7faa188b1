#include "core/graph/registry.h"

#include <map>
#include <mutex>

#include "core/text/suggest.h"

namespace miniqat {
namespace {

/// Whoever reads a graph registers the ops first, on any thread.
struct Registry {
  std::mutex mutex;
  std::map<std::string, OpFactory, std::less<>> factories;
};

Registry& registry() {
  static Registry the_registry;
  return the_registry;
}

/// Empty for an unknown type.
OpFactory find_factory(std::string_view type) {
  const std::scoped_lock lock(registry().mutex);
  const auto found = registry().factories.find(type);
  return found != registry().factories.end() ? found->second : nullptr;
}

}  // namespace

void register_op(std::string_view type, OpFactory factory) {
  const std::scoped_lock lock(registry().mutex);
  registry().factories.emplace(type, std::move(factory));
}

std::shared_ptr<Op> make_op(std::string_view type) {
  if (const OpFactory factory = find_factory(type)) return factory();
  fail_unknown("op", type, registered_ops());
}

std::vector<std::string> registered_ops() {
  const std::scoped_lock lock(registry().mutex);
  std::vector<std::string> names;
  for (const auto& [name, factory] : registry().factories) names.push_back(name);
  return names;
}

}  // namespace miniqat
