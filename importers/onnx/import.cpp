#include "importers/onnx/import.h"

#include <algorithm>
#include <climits>
#include <set>

#include "core/files/files.h"
#include "core/graph/reach.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "importers/onnx/literal.h"
#include "importers/onnx/ops.h"
#include "importers/onnx/translation.h"
#include "layers/layers.h"

namespace miniqat::importers {
namespace {

pb::Model read_model(const std::filesystem::path& path) {
  const std::string bytes = read_file(path, INT_MAX);
  pb::Model model;
  if (!model.ParseFromString(bytes)) fail("is not an ONNX model, or is cut short");
  if (!model.has_graph()) fail("is not an ONNX model: it has no graph");
  return model;
}

std::int64_t opset_of(const pb::Model& model) {
  for (const pb::OperatorSet& set : model.opset_import())
    if (set.domain().empty() || set.domain() == "ai.onnx") {
      if (set.version() < kOldestOpset || set.version() > kNewestOpset)
        fail("has opset ", set.version(), "; ", kOldestOpset, " to ", kNewestOpset, " are imported");
      return set.version();
    }
  fail("does not say which opset its operators are of");
}

/// What read() gives; its errors name the file.
auto naming(const std::filesystem::path& path, const auto& read) {
  const std::string source = printable(path.string());
  try {
    return read();
  } catch (const Error& error) {
    const std::string text = error.what();
    if (text.starts_with(source)) throw;
    fail(source, ": ", text);
  }
}

}  // namespace

ImportedModel import_onnx(const std::filesystem::path& path, const ImportOptions& options) {
  layers::register_ops();
  return naming(path, [&] {
    const pb::Model model = read_model(path);
    // Before anything that such models have and others do not: types, operators, opsets.
    for (const pb::Node& node : model.graph().node()) refuse_quantized(OnnxNode(node, kNewestOpset));
    const std::int64_t opset = opset_of(model);
    Translation translation(model, opset, path.parent_path(), options);
    translation.add_inputs();
    require_imported(model.graph(), opset);
    translation.add_nodes(imported_op_table());
    ImportedModel imported = translation.finish();
    imported.report.source = path.string();
    if (std::string note = note_on_unused_layers(imported.graph); !note.empty())
      imported.report.notes.push_back(std::move(note));
    return imported;
  });
}

std::vector<std::filesystem::path> external_files(const std::filesystem::path& path) {
  return naming(path, [&] {
    const pb::Model model = read_model(path);
    std::set<std::filesystem::path> files;
    const auto add = [&](const pb::Constant& constant) {
      if (is_external(constant)) files.insert(external_file(constant, path.parent_path()));
    };
    for (const pb::Constant& constant : model.graph().initializer()) add(constant);
    for (const pb::Node& node : model.graph().node())
      for (const pb::Attribute& attribute : node.attribute()) add(attribute.t());
    return std::vector<std::filesystem::path>(files.begin(), files.end());
  });
}

std::int64_t fixed_batch(const std::filesystem::path& path) {
  return naming(path, [&]() -> std::int64_t {
    const pb::Model model = read_model(path);
    const pb::Graph& graph = model.graph();
    for (const pb::Value& input : graph.input()) {
      // Before IR version 4 constants are inputs, too.
      if (std::ranges::find(graph.initializer(), input.name(), &pb::Constant::name) != graph.initializer().end())
        continue;
      const auto& extents = input.type().tensor_type().shape().dim();
      return extents.empty() ? 0 : std::max<std::int64_t>(extents[0].dim_value(), 0);
    }
    fail("has no input");
  });
}

std::vector<std::string> imported_ops() { return imported_types(); }

}  // namespace miniqat::importers
