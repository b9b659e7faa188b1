#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/files/safetensors.h"
#include "core/graph/graph.h"
#include "core/tensors/coded.h"
#include "datasets/dataset.h"
#include "integer/model.h"
#include "training/run/run_directory.h"
#include "training/task/task.h"

namespace miniqat::training {

/// The grid on which a data set's bytes are the integers; none where it has numbers.
std::optional<integer::Grid> grid_of(const datasets::Dataset& dataset);

/// The integer model of a run, which bears its directory's name, `_` and U+FFFD for what no text may hold, its task,
/// the recorded names of its classes, and what its numbers and targets are recorded to be standardised with: its
/// evaluation graph with the variables of a checkpoint file. `input` is the grid of the pictures where the graph has no
/// quantizer for them, none of numbers. Throws what quantize::convert() throws, naming the graph's file, and Error for
/// files that cannot be read and checkpoints that don't fit the graph.
integer::Model convert_run(const RunDirectory& run, const std::filesystem::path& checkpoint,
                           const std::optional<integer::Grid>& input);

/// The reason for which quantize::convert() refuses an evaluation graph of that task with these variables; "" where it
/// does not.
std::string why_no_integers(const Graph& graph, const Task& task, const NamedTensors& variables,
                            const std::optional<integer::Grid>& input);

/// The reason that no range takes away: why_no_integers() before the quantizers know their ranges.
std::string why_never_integers(const Graph& graph, const Task& task, const NamedTensors& variables,
                               const std::optional<integer::Grid>& input);

/// Throws Error unless the data set's pictures are what the model takes. `source` names the model.
void require_pictures_fit(const integer::Model& model, const datasets::Dataset& dataset, const std::string& source);
/// require_pictures_fit() of pictures that have the shape [h, w, c] of `example`.
void require_pictures_fit(const integer::Model& model, const Shape& example, const std::string& dataset,
                          const std::string& source);

/// Throws Error unless the model takes the data set's examples and gives what the task needs of them, targets of the
/// same names in the same order.
void require_fit(const integer::Model& model, const Task& task, const datasets::Dataset& dataset,
                 const std::string& source);

/// Examples as a model's input, [n, ...] uint8: bytes through integer::input_table(), numbers through
/// integer::quantize().
Tensor as_input(const CodedTensor& examples, const integer::Grid& input);

/// as_input() of the examples [first, first + count) of a data set.
Tensor input_batch(const datasets::Dataset& dataset, const integer::Grid& input, std::int64_t first,
                   std::int64_t count);

}  // namespace miniqat::training
