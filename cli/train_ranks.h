#pragma once

#include <memory>
#include <string>
#include <vector>

#include "datasets/decoding.h"
#include "distributed/communicator.h"
#include "training/train/trainer.h"

namespace miniqat::cli {

/// Folders of pictures are decoded by all ranks, a part each, as long as one lives.
class RankDecoding : public datasets::SharedDecoding {
 public:
  explicit RankDecoding(distributed::Communicator& ranks);
  ~RankDecoding() override;
  RankDecoding(const RankDecoding&) = delete;

  int parts() const override { return ranks_.size(); }
  int part() const override { return ranks_.rank(); }
  bool same(std::uint64_t number) override;
  void spread(int part, std::span<std::byte> bytes) override;

 private:
  distributed::Communicator& ranks_;
};

/// One rank's part of a training on several.
class RankSide {
 public:
  /// Throws Error if the ranks are not alike. `ranks` must stay.
  RankSide(distributed::Communicator& ranks, const training::TrainSettings& settings);

  /// Warnings about the ranks' threads and cores.
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// The end of all ranks' work.
  void close();

 private:
  distributed::Communicator& ranks_;
  std::vector<std::string> warnings_;
  RankDecoding decoding_;
};

/// Rank 0: tells the others its settings.
RankSide lead_ranks(const training::TrainSettings& settings, const training::TrainExtras& extras);

/// Watches for dead ranks. A rank's signals are caught by an InterruptGuard: while the watch lives, a signal ends the
/// process that waits for a dead rank. Null, with nothing done, without others.
std::unique_ptr<distributed::DeadRankWatch> watch_for_dead_ranks(const distributed::Communicator& ranks);

/// Any other rank: trains as rank 0 says, silently, and keeps no files.
void follow_ranks(distributed::Communicator& ranks);

}  // namespace miniqat::cli
