#include "training/run/trained_variables.h"

#include <cstdint>
#include <optional>
#include <system_error>

#include "core/files/files.h"
#include "core/files/safetensors.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "training/settings/settings.h"

namespace miniqat::training {
namespace {

/// The step that a file of variables is of; none where it names none. (Reading it all is what the caller does next.)
std::optional<std::int64_t> step_of(const std::filesystem::path& file) {
  const Safetensors content = read_safetensors(file);
  const auto step = content.tensors.find("session:step");
  if (step == content.tensors.end() || step->second.dtype() != DType::kInt64 || step->second.elements() != 1) return {};
  return *step->second.data<std::int64_t>();
}

bool is_complete(const RunDirectory& run) {
  const Json summary = json_if_there(run.summary());
  return summary.is_object() && summary.value("complete", false);
}

/// The step that the run's checkpoint is of; none without a checkpoint.
std::optional<std::int64_t> checkpointed_step(const RunDirectory& run) {
  if (!is_there(run.checkpoint())) return {};
  const std::optional<std::int64_t> step = step_of(run.checkpoint());
  if (!step) fail(run.checkpoint().string(), ": \"session:step\" is missing");
  return step;
}

bool dampens(const RunDirectory& run) {
  const Json config = read_json(run.config());
  return config.is_object() && config.value("dampening", Json(0)) > 0;
}

std::string how_to_go_on(const RunDirectory& run, std::optional<std::int64_t> step) {
  const std::string failure = run.metrics().failure_after(step.value_or(0));
  return failure.empty() ? " (miniqat train --resume goes on)"
                         : concat(" (", failure, "; ", after_non_finite(dampens(run)), ")");
}

std::string state_of_unfinished(const RunDirectory& run, std::optional<std::int64_t> step) {
  const std::string place = step ? concat("its checkpoint is of step ", *step) : "it has no checkpoint yet";
  return concat("the run in ", run.path().string(), " is unfinished: ", place, how_to_go_on(run, step));
}

std::string note_on(const RunDirectory& run, std::optional<std::int64_t> step) {
  return "note: " + state_of_unfinished(run, step);
}

}  // namespace

std::string after_non_finite(bool dampens) {
  return concat("--resume would come to the same: begin anew with --overwrite and, say, a lower --learning-rate",
                dampens ? " or --dampening" : "");
}

std::string unfinished_note(const RunDirectory& run) {
  return is_complete(run) ? "" : note_on(run, checkpointed_step(run));
}

void require_complete(const RunDirectory& run) {
  if (!is_complete(run)) fail(state_of_unfinished(run, checkpointed_step(run)));
}

TrainedVariables trained_variables(const std::filesystem::path& path) {
  std::error_code failure;
  if (!std::filesystem::is_directory(path, failure)) {
    if (step_of(path) == 0) fail(path.string(), " is the checkpoint of step 0: nothing has been trained yet");
    return {.file = path, .note = {}};
  }
  const RunDirectory run = RunDirectory::open(path);
  if (is_complete(run)) return {.file = run.checkpoint(), .note = {}};
  const std::optional<std::int64_t> step = checkpointed_step(run);
  if (step.value_or(0) == 0)
    fail("the run in ", path.string(), " has ",
         step ? "only the checkpoint of step 0, that of its beginning"
              : concat("no checkpoint yet: there is no ", run.checkpoint().string()),
         how_to_go_on(run, step));
  return {.file = run.checkpoint(), .note = note_on(run, step)};
}

}  // namespace miniqat::training
