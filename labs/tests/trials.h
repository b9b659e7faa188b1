#pragma once

#include <string>
#include <vector>

#include "labs/lab.h"

namespace lab {

/// One file with the lab's function.
struct Trial {
  /// Below labs/.
  std::string file;
  Lab lab;
};

/// All files with the function of one lab: the blank first, then the solution, then the mistakes.
struct Trials {
  std::string folder;
  std::vector<Trial> trials;
};

/// Makes the trials of a lab known to main(). Returns true.
bool register_trials(const Trials& trials);

}  // namespace lab
