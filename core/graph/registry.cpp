#include "core/graph/registry.h"

#include <map>

#include "core/error.h"
#include "core/text/suggest.h"

namespace miniqat {
namespace {

std::map<std::string, OpFactory, std::less<>>& factories() {
  static std::map<std::string, OpFactory, std::less<>> map;
  return map;
}

}  // namespace

void register_op(std::string_view type, OpFactory factory) { factories().emplace(type, std::move(factory)); }

std::shared_ptr<Op> make_op(std::string_view type) {
  const auto found = factories().find(type);
  if (found != factories().end()) return found->second();
  fail_unknown("op", type, registered_ops());
}

std::vector<std::string> registered_ops() {
  std::vector<std::string> names;
  for (const auto& [name, factory] : factories()) names.push_back(name);
  return names;
}

}  // namespace miniqat
