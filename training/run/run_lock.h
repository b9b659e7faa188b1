#pragma once

#include <filesystem>
#include <vector>

namespace miniqat::training {

/// The right of one process to write into a run directory: a file `.lock` in it, which the system locks (flock) and
/// which names the process. The system unlocks it when the process ends, however it ends; a file that a killed one left
/// is in nobody's way. A reader of a run needs no lock, since every file of a run is replaced as a whole.
class RunLock {
 public:
  enum class Directory { kMake, kMustExist };

  /// Throws Error that names the other process when there is one, the reason when the directory cannot be made or
  /// written to, and a file `.lock` that something else has written.
  RunLock(const std::filesystem::path& directory, Directory wanted);
  /// Takes the file away, and the directories that the lock has made where nothing else has come into them.
  ~RunLock();
  RunLock(const RunLock&) = delete;

  /// Whether nobody else can have the lock: false on a file system that knows no locks.
  bool is_exclusive() const { return exclusive_; }
  /// Whether a process died here while it had the lock; false also where nobody can know.
  bool was_left_behind() const { return left_behind_; }

 private:
  bool take();
  void lock();
  [[noreturn]] void give_up(int code);
  bool is_in_place() const;
  void write_owner() const;

  const std::filesystem::path directory_;
  const std::filesystem::path file_;
  /// Outermost first.
  std::vector<std::filesystem::path> made_;
  int descriptor_ = -1;
  bool exclusive_ = false;
  bool left_behind_ = false;
};

}  // namespace miniqat::training
