#pragma once

#include <string>
#include <vector>

#include "labs/lab.h"

namespace lab {

/// One answer: the lab's function as somebody filled it in.
struct Trial {
  /// The file that it is in, below labs/, and of a mistake also its name there.
  std::string title;
  /// Words of the hint that a mistake must get.
  std::string hint;
  Lab lab;
};

/// All answers to one lab: the blank first, then the solution, then the mistakes.
struct Trials {
  std::string folder;
  std::vector<Trial> trials;
};

/// Makes the trials of a lab known to main(). Returns true.
bool register_trials(const Trials& trials);

}  // namespace lab
