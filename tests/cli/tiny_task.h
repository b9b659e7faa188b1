#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/cli/program.h"
#include "tests/temp_dir.h"

namespace miniqat::testing {

/// Pictures of 8x8 in the four files of the MNIST family, so that a run takes milliseconds: `train` and `test` of them,
/// of ten classes that a small network can tell apart. Returns the directory, `name` in `place`.
std::filesystem::path write_tiny_digits(const TempDir& place, const std::string& name, int train, int test);

/// Graph JSON of a classifier for them: conv 3x3 of 4 channels, Relu, max pool, dropout, dense 10; batches of 4.
std::string tiny_classifier();
/// The same with a batch norm, conv1/BatchNorm, in place of conv1's bias.
std::string tiny_classifier_with_batch_norm();

/// For tests that start from a float run: 96 and 60 of these digits, "tiny.json" or "norm.json", and a run `out` of six
/// epochs of it.
void make_float_run(const TempDir& place, const std::string& model, const std::string& out);

/// Tests in a directory with these digits, "digits" (eight steps an epoch), and these classifiers, "tiny.json" and
/// "norm.json".
class TinyTaskTest : public ProgramTest {
 protected:
  TinyTaskTest();

  std::string checkpoint_bytes(const std::string& run) const { return bytes_of(path(run) / "checkpoint.safetensors"); }

  /// The command line of a run of 12 steps on one thread that logs each of them. Of a flag that comes again in `more`,
  /// that counts.
  static Arguments train_command(const std::string& out, const Arguments& more = {});
  Outcome train(const std::string& out, const Arguments& more = {}) const { return program(train_command(out, more)); }
  Outcome resume(const std::string& out, const Arguments& more = {}) const;
};

}  // namespace miniqat::testing
