#pragma once

#include "core/engine/session.h"
#include "distributed/rank_exchange.h"
#include "training/train/training_task.h"

namespace miniqat::training {

/// Before the first step, and before anything is written: throws Error unless all ranks have the same network, with its
/// quantizers, and the same pictures and labels, in the same order. Of more than 256 MiB of pictures only as many are
/// compared, evenly spread, and all labels.
void require_same_task(TrainingTask& task);

/// All ranks get the leader's variables, optimizer state and counters: those of a new run, or of a checkpoint that only
/// the leader has read.
void share_state(Session& session, distributed::RankExchange& ranks);

/// Throws Error unless the sessions of all ranks are the same to the bit: every hundred steps and after the last one.
class StateComparison : public StepHook {
 public:
  /// `session` and `ranks` must stay.
  StateComparison(Session& session, distributed::RankExchange& ranks) : session_(session), ranks_(ranks) {}
  void after_step(const TrainedStep& step) override;

 private:
  Session& session_;
  distributed::RankExchange& ranks_;
};

}  // namespace miniqat::training
