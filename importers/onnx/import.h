#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "importers/onnx/imported_model.h"

namespace miniqat::importers {

/// The opsets that are read. From 22 on ONNX 1.23 gives the ops that are imported more types, and no other meaning.
inline constexpr std::int64_t kOldestOpset = 7, kNewestOpset = 28;

/// Reads an ONNX model of the ops that docs/import.md lists. Throws Error naming the file, and the node
/// and the reason, for what has no counterpart: nothing is guessed.
ImportedModel import_onnx(const std::filesystem::path& path, const ImportOptions& options = {});

/// The batch that the model's first input fixes; 0 where the file leaves it open. Throws Error naming the file when it
/// is no ONNX model or has no input.
std::int64_t fixed_batch(const std::filesystem::path& path);

/// The files beside the model in which it keeps weights, each once, in alphabetical order. Throws Error naming the
/// model when it is no ONNX model, and for a file outside of its folder.
std::vector<std::filesystem::path> external_files(const std::filesystem::path& path);

/// The op types that import_onnx() takes, in alphabetical order.
std::vector<std::string> imported_ops();

}  // namespace miniqat::importers
