#include "cli/train_ranks.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "cli/notes.h"
#include "cli/process.h"
#include "core/platform/system.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/threads/parallel.h"
#include "distributed/launch.h"
#include "quantize/rewrite/layer_bits.h"
#include "training/run/run_directory.h"
#include "training/settings/settings.h"
#include "training/settings/usage_error.h"

namespace miniqat::cli {

using namespace training;

namespace {

class SilentRank : public RunObserver {
 public:
  bool wants_to_stop() override { return InterruptGuard::requested(); }
};

/// What the settings of rank 0 are to the others: with the bits of layers, so that no other reads that file, and with
/// the run's own copy of a model file, which may be gone.
Json word_to_ranks(const TrainSettings& settings, const TrainExtras& extras) {
  const std::string& copy = settings.model_graph;
  return {{"settings", settings_to_json(settings)},
          {"model_graph", copy.empty() ? "" : std::filesystem::absolute(copy).string()},
          {"layer_bits", quantize::layer_bits_to_json(settings.rewrite.layer_bits)},
          {"stop_at", extras.stop_at ? Json(*extras.stop_at) : Json(nullptr)}};
}

std::string way_out(int ranks, const TrainSettings& settings, bool resumes) {
  if (!std::has_single_bit(static_cast<unsigned>(ranks))) return "; start 1, 2, 4, 8, ... ranks";
  if (resumes) return concat("; the run has these shards for good: start at most ", counted(settings.shards, "rank"));
  return concat("; add --shards ", ranks, " or a multiple");
}

void require_shards_for(const distributed::Communicator& ranks, const TrainSettings& settings, bool resumes) {
  if (settings.shards % ranks.size() != 0)
    throw UsageError(concat(ranks.size(), " ranks cannot share --shards ", settings.shards,
                            ": the number of ranks must divide it", way_out(ranks.size(), settings, resumes)));
}

/// The threads that compute a rank's slices.
int threads_at_work(const distributed::Communicator& ranks, const TrainSettings& settings) {
  const std::int64_t slices = settings.shards / ranks.size();
  return static_cast<int>(std::min(settings.slices_at_once(), slices) * settings.threads_per_shard);
}

}  // namespace

RankDecoding::RankDecoding(distributed::Communicator& ranks) : ranks_(ranks) { datasets::share_decoding(*this); }

RankDecoding::~RankDecoding() { datasets::share_decoding(datasets::lone_decoding()); }

bool RankDecoding::same(std::uint64_t number) {
  const std::vector<std::uint64_t> all = distributed::gathered(ranks_, number);
  return std::ranges::all_of(all, [&](std::uint64_t one) { return one == number; });
}

/// In pieces that a message can hold.
void RankDecoding::spread(int part, std::span<std::byte> bytes) {
  constexpr std::size_t kMost = std::size_t{1} << 28;
  for (std::size_t begin = 0; begin < bytes.size(); begin += kMost)
    distributed::wait_for(*ranks_.broadcast(bytes.subspan(begin, std::min(kMost, bytes.size() - begin)), part));
}

RankSide::RankSide(distributed::Communicator& ranks, const TrainSettings& settings) : ranks_(ranks), decoding_(ranks) {
  // A process that is alone is like itself, and may have as many threads as it likes.
  if (ranks.size() > 1) warnings_ = distributed::require_same_build(ranks, threads_at_work(ranks, settings));
}

void RankSide::close() {
  const distributed::WaitForRanks waits;
  ranks_.close();
}

std::unique_ptr<distributed::DeadRankWatch> watch_for_dead_ranks(const distributed::Communicator& ranks) {
  if (ranks.size() == 1) return nullptr;
  return std::make_unique<distributed::DeadRankWatch>(InterruptGuard::requested, [] {
    print_error(
        "miniqat train",
        "another rank has not answered since a signal asked this one to end, and may be dead; the last checkpoint stays good");
    // The main thread may be in a call of MPI, from which it does not come back.
    std::_Exit(1);
  });
}

RankSide lead_ranks(const TrainSettings& settings, const TrainExtras& extras) {
  require_shards_for(extras.ranks, settings, extras.resume);
  distributed::broadcast_text(extras.ranks, word_to_ranks(settings, extras).dump());
  return RankSide(extras.ranks, settings);
}

void follow_ranks(distributed::Communicator& ranks) {
  const Json word = Json::parse(distributed::broadcast_text(ranks, ""));
  TrainSettings settings = recorded_settings(word["settings"], "rank 0");
  // A machine that does not see the run's folder takes the model file.
  if (const std::string copy = word["model_graph"]; std::filesystem::exists(copy)) settings.model_graph = copy;
  if (const Json& bits = word["layer_bits"]; !bits.empty())
    settings.rewrite.layer_bits = quantize::layer_bits_from_json(bits.dump(), "the bits of rank 0");
  // Slices side by side, on the cores of this rank.
  settings.threads = std::min<std::int64_t>(settings.threads, default_thread_count());
  set_thread_count(static_cast<int>(settings.threads));
  RankSide side(ranks, settings);
  TrainExtras extras{.ranks = ranks};
  if (!word["stop_at"].is_null()) extras.stop_at = word["stop_at"].get<std::int64_t>();
  // For what a rank other than the first writes, which nobody wants.
  const WorkingDirectory scratch;
  SilentRank silent;
  train(settings, RunDirectory::fresh(scratch / "run", ""), extras, silent);
  side.close();
}

}  // namespace miniqat::cli
