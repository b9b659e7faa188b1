#include "training/calibrate/one_number.h"

#include <span>

#include "core/graph/reach.h"
#include "core/text/error.h"
#include "quantize/fold/spelled_out_batch_norm.h"
#include "training/calibrate/batch_norm_statistics.h"

namespace miniqat::training {
namespace {

[[noreturn]] void refuse(const Node& norm, const Shape& x, const TrainSettings& settings) {
  const std::string batch = settings.has_shards() ? concat("slices of ", settings.slice_size(), " (`batch_size` ",
                                                           settings.batch_size, " in ", settings.shards, " `shards`)")
                                                  : concat("batches of ", settings.batch_size, " (`batch_size`)");
  fail(settings.model, ": ", describe(norm), " gets one number a channel from ", batch, ": input ", x,
       "; less its own mean that is 0, so its output would always be beta. Train with larger ",
       settings.has_shards() ? "slices" : "batches");
}

}  // namespace

void require_numbers_to_normalise(const Classifier& training, const TrainSettings& settings) {
  const auto needed = nodes_behind(std::span(&training.logits, 1));
  const auto check = [&](const Node& norm, const Shape& x) {
    if (needed.contains(&norm) && x.elements() == x.channels()) refuse(norm, x, settings);
  };
  // In the first step; a batch norm that freezes later trains until then.
  for (const Node* norm : updating_batch_norms(training.graph, 1)) check(*norm, norm->input(0).shape());
  for (const quantize::UnfusedBatchNorm& norm : quantize::find_unfused_batch_norms(training.graph))
    if (norm.takes_moments()) check(*norm.result, norm.x.shape());
}

}  // namespace miniqat::training
