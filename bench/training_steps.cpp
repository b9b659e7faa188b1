#include "bench/training_steps.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>

#include "bench/judge/step_judge.h"
#include "bench/noise_training.h"
#include "core/kernels/onednn_bytes.h"
#include "core/team/team.h"
#include "core/text/error.h"
#include "core/threads/parallel.h"
#include "layers/layers.h"
#include "models/models.h"
#include "quantize/rewrite/rewrite.h"

namespace miniqat::bench {
namespace {

struct Variant {
  std::string what;
  /// None: float.
  std::optional<quantize::RewriteOptions> rewrite;
  Arithmetic arithmetic = Arithmetic::kSimulated;
  FactorRounding rounding = FactorRounding::kNone;
};

/// The model in float, or rewritten. On CIFAR-10's size the models that were published for larger pictures.
NoiseWorkload workload_of(const models::Model& model, const Variant& variant, std::int64_t batch) {
  return {.model = std::string(model.name),
          .batch = batch,
          .side = model.examples == models::Examples::kPictures && model.image[0] > 64 ? 32 : 0,
          .rewrite = variant.rewrite,
          .arithmetic = variant.arithmetic,
          .rounding = variant.rounding};
}

bool has_batch_norm(const models::Model& model) {
  Graph graph;
  model.build(graph, layers::placeholder(graph, "images", model.input(1)), {});
  return std::ranges::any_of(graph.nodes(), [](const Node* node) { return node->as<layers::BatchNorm>() != nullptr; });
}

quantize::RewriteOptions with_learned_ranges(quantize::RewriteOptions options) {
  options.weight_bits = options.activation_bits = 4;
  options.ranges = quantize::RangeChoice::kLearned;
  return options;
}

bool has_exact_bytes() {
  constexpr int kByte = 128;
  return onednn::exact_byte() >= kByte;
}

/// On integers, and with gradients in bfloat16 and int8, where this machine has kernels for it.
void add_on_integers(std::vector<Variant>& variants, const std::string& what, const quantize::RewriteOptions& options) {
  if (options.weight_bits == 8 && !has_exact_bytes()) return;
  variants.push_back({what + ", on integers", options, Arithmetic::kInteger});
  if (has_bfloat16_products())
    variants.push_back({what + ", in bfloat16", options, Arithmetic::kInteger, FactorRounding::kGradientsToBfloat16});
  if (has_int8_products())
    variants.push_back({what + ", in int8", options, Arithmetic::kInteger, FactorRounding::kGradientsToInt8});
}

std::vector<Variant> variants_of(const models::Model& model) {
  std::vector<Variant> variants = {{"float", std::nullopt}};
  if (has_bfloat16_products())
    variants.push_back({"float in bfloat16", std::nullopt, Arithmetic::kSimulated, FactorRounding::kAllToBfloat16});
  if (!has_batch_norm(model)) {
    variants.push_back({"W8A8", quantize::RewriteOptions{}});
    add_on_integers(variants, "W8A8", {});
    variants.push_back({"W4A4, learned ranges", with_learned_ranges({})});
    add_on_integers(variants, "W4A4, learned", with_learned_ranges({}));
    return variants;
  }
  constexpr std::int64_t kNever = std::int64_t{1} << 30;
  variants.push_back({"W8A8, before quant_delay", quantize::RewriteOptions{.quant_delay = kNever}});
  variants.push_back({"W8A8, --bn-fold single", quantize::RewriteOptions{.bn_fold = quantize::BnFold::kSingle}});
  add_on_integers(variants, "W8A8", {.bn_fold = quantize::BnFold::kSingle});
  variants.push_back({"W8A8, --bn-fold tf", quantize::RewriteOptions{}});
  if (has_exact_bytes())
    variants.push_back({"W8A8, tf, on integers", quantize::RewriteOptions{}, Arithmetic::kInteger});
  variants.push_back({"W8A8, after the BN freeze", quantize::RewriteOptions{.freeze_bn_delay = 0}});
  const quantize::RewriteOptions learned = with_learned_ranges({.bn_fold = quantize::BnFold::kSingle});
  variants.push_back({"W4A4, learned, single", learned});
  add_on_integers(variants, "W4A4, learned", learned);
  return variants;
}

/// On a small batch, where the reference loops take no time to speak of. Step by step, each given equal inputs: the
/// loss of a deep network that has not learned anything magnifies the last bit's rounding to what a mistake would do
/// (docs/bench.md).
void require_right_steps(const models::Model& model, const Variant& variant) {
  constexpr std::int64_t kSmallBatch = 4;
  StepJudge judge;
  // The findings name its nodes.
  NoiseTraining training(workload_of(model, variant, kSmallBatch));
  training.session().set_observer(&judge);
  training.step();
  training.session().set_observer(nullptr);
  if (!judge.findings.empty()) fail(std::string(model.name), ", ", variant.what, ": ", judge.findings.front().text());
}

/// `batch`, or less when not even the fewest steps of that many pictures would fit into the time there is.
std::int64_t affordable_batch(const models::Model& model, const std::vector<Variant>& variants, std::int64_t batch,
                              double seconds) {
  constexpr std::int64_t kProbe = 8;
  // Two steps beforehand and three that count, QAT's maybe twice as long as float's.
  const double float_steps = 10 * static_cast<double>(variants.size());
  if (batch <= kProbe) return batch;
  NoiseTraining probe(workload_of(model, variants.front(), kProbe));
  probe.step();
  const double a_picture = seconds_of([&] { probe.step(); }) / kProbe;
  const double most = seconds / (a_picture * float_steps);
  return most >= static_cast<double>(batch) ? batch : std::max(kProbe, static_cast<std::int64_t>(most));
}

constexpr unsigned kMostSeconds = 600;

/// In a child of fork(): only what a signal handler may do.
[[noreturn]] void be_busy(pid_t parent, bool own_session) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGALRM}) std::signal(signal, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(kMostSeconds);
  if (getppid() != parent) _exit(0);
  if (own_session) setsid();
  for (std::atomic<unsigned> turns = 0;; ++turns) {
  }
}

/// Processes that do nothing but use the cores, one for each core that this process may use. They end with the object,
/// with the thread that made it, and after some minutes in any case.
class BusyNeighbours {
 public:
  /// In the session of this process, or each in one of its own. Linux may share the cores out between sessions first
  /// (autogroup): then as many processes in sessions of their own get more of them. Throws Error.
  explicit BusyNeighbours(bool own_sessions) {
    const pid_t parent = getpid();
    for (int i = 0; i < available_cores(); ++i) {
      const pid_t process = fork();
      if (process == 0) be_busy(parent, own_sessions);
      if (process > 0) processes_.push_back(process);
    }
    if (processes_.empty()) fail("cannot start processes: ", std::strerror(errno));
  }
  ~BusyNeighbours() {
    for (const pid_t process : processes_) kill(process, SIGKILL);
    for (const pid_t process : processes_)
      while (waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
      }
  }
  BusyNeighbours(const BusyNeighbours&) = delete;
  BusyNeighbours& operator=(const BusyNeighbours&) = delete;

 private:
  std::vector<int> processes_;
};

constexpr std::int64_t kBatch = 128;

/// Images/s over the given time, the waits of whole time slices included.
double speed(NoiseTraining& training, int threads, double seconds, const std::function<void()>& check) {
  set_thread_count(threads);
  // Cores that were lost to neighbours that are gone.
  forget_lost_cores();
  const auto step = [&] {
    training.step();
    check();
  };
  // May compile.
  step();
  const auto start = std::chrono::steady_clock::now();
  double spent = 0;
  std::int64_t images = 0;
  while (spent < seconds) {
    step();
    images += kBatch;
    spent = seconds_since(start);
  }
  return static_cast<double>(images) / spent;
}

struct Neighbourhood {
  const char* name;
  bool is_busy;
  bool own_sessions;
};
constexpr std::array<Neighbourhood, 3> kNeighbourhoods = {
    {{"none", false, false}, {"same session", true, false}, {"own sessions", true, true}}};

/// Adds a round to the average of those before it.
void add_round(Disturbance& all, const Disturbance& round) {
  const double seconds = all.seconds + round.seconds, share = round.seconds / seconds;
  all.others += share * (round.others - all.others);
  all.switches += share * (round.switches - all.switches);
  all.idle_cores = round.idle_cores;
  all.seconds = seconds;
}

}  // namespace

ModelTimes bench_steps(const std::string& name, std::int64_t batch, double budget_seconds) {
  const auto start = std::chrono::steady_clock::now();
  const models::Model& model = models::find_model(name);
  const std::vector<Variant> variants = variants_of(model);
  if (batch == 0)
    batch = has_batch_norm(model) ? 64 : 128;
  else
    batch = affordable_batch(model, variants, batch, budget_seconds);

  std::vector<std::unique_ptr<NoiseTraining>> trainings;
  for (const Variant& variant : variants) {
    require_right_steps(model, variant);
    trainings.push_back(std::make_unique<NoiseTraining>(workload_of(model, variant, batch)));
    // The first step compiles plan and kernels, the second finds all memory in place.
    for (int i = 0; i < 2; ++i) trainings.back()->step();
  }
  // No more rounds where they are not steady: a step takes long enough.
  const Patience patience = {.seconds = budget_seconds - seconds_since(start), .longest_stretch = 1};
  const QuietWatch watch;
  const auto times = measure_in_turns(variants.size(), patience,
                                      [&](std::size_t k) { return seconds_of([&] { trainings[k]->step(); }); });
  ModelTimes results{.rows = {}, .disturbance = watch.since()};
  for (std::size_t k = 0; k < variants.size(); ++k)
    results.rows.push_back({.model = name,
                            .what = variants[k].what,
                            .batch = batch,
                            .threads = thread_count(),
                            .rounds = times[k],
                            .over_float = spread_of(ratios_of(times[k], times[0])),
                            .arena = trainings[k]->session().plan_memory().arena});
  return results;
}

std::vector<LoadedSpeed> bench_loaded(const std::string& model, double budget_seconds,
                                      const std::function<void()>& check) {
  constexpr int kRounds = 5;
  const double seconds = budget_seconds / (kRounds * 2 * kNeighbourhoods.size());
  const int threads = thread_count();
  const Variant single = {"", quantize::RewriteOptions{.bn_fold = quantize::BnFold::kSingle}};
  NoiseTraining training(workload_of(models::find_model(model), single, kBatch));
  std::vector<LoadedSpeed> speeds;
  for (const Neighbourhood& all : kNeighbourhoods)
    speeds.push_back({.model = model, .neighbours = all.name, .batch = kBatch, .threads = threads});
  for (int round = 0; round < kRounds; ++round)
    for (std::size_t k = 0; k < kNeighbourhoods.size(); ++k) {
      const bool is_busy = kNeighbourhoods[k].is_busy;
      const QuietWatch watch;
      std::optional<BusyNeighbours> neighbours;
      if (is_busy) neighbours.emplace(kNeighbourhoods[k].own_sessions);
      const double all = speed(training, threads, seconds, check), one = speed(training, 1, seconds, check);
      speeds[k].all_threads.push_back(all);
      speeds[k].one_thread.push_back(one);
      if (is_busy) speeds[k].of_bar.push_back(all / std::max(speeds[0].all_threads.back() / 2, one));
      // The processor time of a child counts from its end on.
      neighbours.reset();
      set_thread_count(threads);
      Disturbance disturbance = watch.since();
      if (is_busy) disturbance.switches = 0;
      add_round(speeds[k].disturbance, disturbance);
    }
  return speeds;
}

}  // namespace miniqat::bench
