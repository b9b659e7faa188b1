#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace miniqat::cli {

/// What a measurement depends on beside the program.
struct Machine {
  std::string cpu;
  int cores = 0;
  /// Of our own loops, MINIQAT_MAX_ISA considered.
  std::string instruction_set;
  std::string onednn;
  int threads = 0;
  /// Processes that ran or wanted to, the mean of the last minute; negative where the system does not say.
  double load = -1;

  /// Others want the cores, too: only ratios taken in turns mean anything.
  bool quiet() const { return load <= 0.5; }
  std::string text() const;
  nlohmann::ordered_json json() const;
};

Machine this_machine();

}  // namespace miniqat::cli
