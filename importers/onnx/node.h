#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/text/error.h"
#include "formats/onnx/onnx.pb.h"

namespace miniqat::importers {

// Not for users of the library.

/// A node of an ONNX graph with questions to it. Whoever translates it asks for every attribute that it knows;
/// require_all_known() then refuses others, as they would change what the node computes.
class OnnxNode {
 public:
  OnnxNode(const pb::Node& node, std::int64_t opset) : node_(&node), opset_(opset) {}

  const std::string& type() const { return node_->op_type(); }
  /// The node's name, or of one without the name of its first output.
  const std::string& name() const { return node_->name().empty() && outputs() > 0 ? output(0) : node_->name(); }
  std::int64_t opset() const { return opset_; }
  int inputs() const { return node_->input_size(); }
  /// The name of input i; "" where it is left out.
  const std::string& input(int i) const;
  int outputs() const { return node_->output_size(); }
  const std::string& output(int i) const { return node_->output(i); }

  // An attribute, or the default where the node does not have it. Throws Error when it has another type.
  std::int64_t integer(const std::string& name, std::int64_t otherwise) const;
  double number(const std::string& name, double otherwise) const;
  std::string text(const std::string& name, const std::string& otherwise) const;
  std::vector<float> numbers(const std::string& name) const;
  std::vector<std::int64_t> integers(const std::string& name, std::vector<std::int64_t> otherwise = {}) const;
  /// The integers of an attribute that may be left out, and otherwise has `count` of them.
  std::vector<std::int64_t> integers(const std::string& name, std::size_t count,
                                     std::vector<std::int64_t> otherwise) const;
  /// Null where the node does not have it.
  const pb::Constant* constant(const std::string& name) const;
  bool has(const std::string& name) const { return find(name) != nullptr; }
  /// For attributes that do not change the numbers.
  void ignore(const std::string& name) const { known_.insert(name); }
  void require_all_known() const;

  /// Throws Error `[Conv "conv1"] ...`.
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(who(), " ", parts...);
  }
  std::string who() const;

 private:
  const pb::Attribute* find(const std::string& name) const;
  const pb::Attribute* typed(const std::string& name, pb::Attribute::Type type) const;

  const pb::Node* node_;
  std::int64_t opset_;
  mutable std::set<std::string> known_ = {};
};

}  // namespace miniqat::importers
