#include "importers/onnx/import.h"

#include <climits>

#include "core/error.h"
#include "core/files.h"
#include "core/quote.h"
#include "importers/onnx/ops.h"
#include "importers/onnx/translation.h"
#include "layers/layers.h"

namespace miniqat::importers {
namespace {

constexpr std::int64_t kOldestOpset = 7;
constexpr std::int64_t kNewestOpset = 21;

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

}  // namespace

ImportedModel import_onnx(const std::filesystem::path& path, const ImportOptions& options) {
  layers::register_ops();
  const std::string source = printable(path.string());
  try {
    const pb::Model model = read_model(path);
    // Before anything that such models have and others do not: types, operators, opsets.
    for (const pb::Node& node : model.graph().node()) refuse_quantized(OnnxNode(node, kNewestOpset));
    Translation translation(model, opset_of(model), path.parent_path(), options);
    translation.run();
    ImportedModel imported = translation.finish();
    imported.report.source = path.string();
    return imported;
  } catch (const Error& error) {
    const std::string text = error.what();
    if (text.starts_with(source)) throw;
    fail(source, ": ", text);
  }
}

}  // namespace miniqat::importers
