#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/threads/parallel.h"
#include "tests/cli/run_files.h"
#include "tests/cli/tiny_task.h"
#include "training/train/trainer.h"

namespace miniqat::training {

/// Tests in a directory with the digits and the classifier of tests/cli/tiny_task.h, whose runs are made in this
/// process.
class RunFixture : public ::testing::Test {
 protected:
  RunFixture() {
    testing::write_tiny_digits(place_, "digits", 32, 20);
    place_.write("tiny.json", testing::tiny_classifier());
    set_thread_count(1);
  }

  std::filesystem::path path(const std::string& name) const { return place_.path() / name; }

  /// A run of 12 steps, eight an epoch.
  TrainSettings settings() const {
    TrainSettings settings;
    settings.model = path("tiny.json").string();
    settings.dataset = "mnist";
    settings.data_dir = path("digits").string();
    settings.augment = "none";
    settings.batch_size = 4;
    settings.steps = 12;
    settings.threads = 1;
    settings.log_every = 1;
    return settings;
  }

  testing::RunFiles train_new(const std::string& name, const TrainSettings& settings, RunObserver& observer) const {
    train(settings, RunDirectory::fresh(path(name), "none"), {}, observer);
    return testing::files_of(path(name));
  }

  testing::TempDir place_;
};

}  // namespace miniqat::training
