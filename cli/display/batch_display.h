#pragma once

#include "cli/display/progress_line.h"
#include "training/run_observer.h"

namespace miniqat::cli {

/// The terminal of a command that looks at batches: `calibrate`, `reestimate`. A signal stops it.
class BatchDisplay : public training::RunObserver {
 public:
  void say(const std::string& text) override;
  void warn(const std::string& text) override;
  /// Four lines at most where there is no terminal.
  void on_batch(std::int64_t done, std::int64_t total) override;
  bool wants_to_stop() override;

 private:
  ProgressLine line_{stdout};
};

}  // namespace miniqat::cli
