#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace miniqat {

/// The least that a part of a step must do. Divided by the rates of a machine it is the least time.
struct PartWork {
  double multiply_adds = 0;
  /// Bytes of the tensors that the part reads and writes, each read once and written once.
  double bytes = 0;

  PartWork& operator+=(const PartWork& other) {
    multiply_adds += other.multiply_adds;
    bytes += other.bytes;
    return *this;
  }
};

/// The purpose of a stretch of a training step's time.
enum class ProfilePhase { kForward, kBackward, kOptimizer, kLoaderWait, kOther };
inline constexpr std::size_t kProfilePhases = 5;
std::string_view name_of(ProfilePhase phase);

/// Times of the parts of training steps, as a Session and whoever feeds it report them. What is added up leaves out the
/// first steps, in which plans and kernels are compiled; of the last few steps every single event is kept. Parts must
/// not overlap. For one thread.
class Profile {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = Clock::duration;
  using Time = Clock::time_point;

  static constexpr std::int64_t kWarmUpSteps = 2;
  static constexpr std::size_t kKeptSteps = 10;

  /// Something that takes time: a node of the graph, the update of a variable, the wait for a batch.
  struct Part {
    /// The name of the node, of the variable or of what else takes the time; of nodes that run as one, their scope.
    std::string name;
    /// A node's op type, or what is done instead of an op.
    std::string type;
    std::array<Duration, kProfilePhases> time{};
    /// The work of all calls together.
    std::array<PartWork, kProfilePhases> work{};
    std::int64_t calls = 0;

    Duration total() const;
  };
  struct Event {
    /// Into parts().
    std::size_t part = 0;
    ProfilePhase phase = ProfilePhase::kOther;
    Time begin;
    Time end;
    PartWork work;
  };
  struct Step {
    std::int64_t number = 0;
    Time begin;
    Time end;
    /// In order of time. Those before `begin` (waiting for the batch) belong to the step, too.
    std::vector<Event> events;
  };

  Profile() = default;
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  /// Adds an event to the step that end_step() will close.
  void record(ProfilePhase phase, std::string_view name, std::string_view type, Time begin, Time end,
              PartWork work = {});
  void end_step(std::int64_t number, Time begin, Time end);

  /// The number of steps in the sums below: all but the first kWarmUpSteps, or all if there are no others.
  std::int64_t steps() const { return steps_; }
  /// The time of these steps, with what was recorded before each began.
  Duration total() const { return total_; }
  const std::deque<Part>& parts() const { return parts_; }
  /// Sums of all parts. The time of a step that no part accounts for is kOther's.
  std::array<Duration, kProfilePhases> phases() const;
  /// The last kKeptSteps steps, or fewer, oldest first; the first steps of all are among them.
  const std::deque<Step>& kept() const { return kept_; }

 private:
  std::size_t part(std::string_view name, std::string_view type);
  void add_up(const Step& step);
  void forget_sums();

  std::deque<Part> parts_;
  /// Keys look at the strings of parts_.
  std::map<std::pair<std::string_view, std::string_view>, std::size_t> index_;
  std::deque<Step> kept_;
  std::vector<Event> open_;
  std::int64_t ended_ = 0;
  std::int64_t steps_ = 0;
  Duration total_{};
};

/// Records its own lifetime; does nothing, not even read the clock, without a profile. `name` and `type` must outlive
/// it.
class ProfileScope {
 public:
  ProfileScope(Profile* profile, ProfilePhase phase, std::string_view name, std::string_view type, PartWork work = {})
      : profile_(profile), phase_(phase), name_(name), type_(type), work_(work) {
    if (profile_ != nullptr) begin_ = Profile::Clock::now();
  }
  ~ProfileScope() {
    if (profile_ != nullptr) profile_->record(phase_, name_, type_, begin_, Profile::Clock::now(), work_);
  }
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;

 private:
  Profile* profile_;
  ProfilePhase phase_;
  std::string_view name_;
  std::string_view type_;
  PartWork work_;
  Profile::Time begin_;
};

/// Records its own lifetime as a step of the profile; does nothing without one.
class ProfileStep {
 public:
  ProfileStep(Profile* profile, std::int64_t number) : profile_(profile), number_(number) {
    if (profile_ != nullptr) begin_ = Profile::Clock::now();
  }
  ~ProfileStep() {
    if (profile_ != nullptr) profile_->end_step(number_, begin_, Profile::Clock::now());
  }
  ProfileStep(const ProfileStep&) = delete;
  ProfileStep& operator=(const ProfileStep&) = delete;

 private:
  Profile* profile_;
  std::int64_t number_;
  Profile::Time begin_;
};

/// The rates against which a profile is held.
struct MachineRates {
  int threads = 1;
  /// The speed of a large matrix product in float32; a multiply-add counts as two operations.
  double operations_per_second = 0;
  /// Read and written by a copy in memory.
  double bytes_per_second = 0;
};

/// For people: milliseconds a step for every part, the slowest first, then for every op type and for every phase.
/// Beside them the part's work and how near it is to what the machine allows: the least time over its time, where the
/// least is that of its arithmetic or that of its bytes (PartWork), whichever is longer. Says so when there is nothing
/// to show.
std::string profile_table(const Profile& profile, const MachineRates& rates);

/// The kept steps in Chrome's trace event format, for chrome://tracing or ui.perfetto.dev: complete events ("ph": "X")
/// on one thread, a step around its parts, times in microseconds since the first of them; "cat" is "step" or the phase.
/// Beside them "rates" and, of the profile's steps, "parts": the rows of the first table, all of them, in the order in
/// which they first ran, with milliseconds, GFLOP and MB a step by phase and the least milliseconds of all
/// ("least_ms").
std::string profile_trace(const Profile& profile, const MachineRates& rates);

}  // namespace miniqat
