#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/cli/program.h"
#include "tests/cli/run_files.h"
#include "tests/temp_dir.h"

namespace miniqat::testing {

/// Pictures of 8x8 in the four files of the MNIST family, so that a run takes milliseconds: `train` and `test` of them,
/// of ten classes that a small network can tell apart. Returns the directory, `name` in `place`. Of another `side` they
/// are for networks for others.
std::filesystem::path write_tiny_digits(const TempDir& place, const std::string& name, int train, int test,
                                        int side = 8);

/// Graph JSON of a classifier for them: conv 3x3 of 4 channels, Relu, max pool, dropout, dense 10; batches of 4.
std::string tiny_classifier();
/// The same with a batch norm, conv1/BatchNorm, in place of conv1's bias.
std::string tiny_classifier_with_batch_norm();

/// For tests that start from a float run: 96 and 60 of these digits, "tiny.json" or "norm.json", and a run `out` of six
/// epochs of it.
inline void make_float_run(const TempDir& place, const std::string& model, const std::string& out) {
  write_tiny_digits(place, "digits", 96, 60);
  place.write("tiny.json", tiny_classifier());
  place.write("norm.json", tiny_classifier_with_batch_norm());
  expect_success(miniqat("train --float --dataset mnist --data-dir digits --epochs 6 --threads 1" +
                             Arguments{"--model", model + ".json", "--out", out},
                         place.path()));
}

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
  Outcome resume(const std::string& out, const Arguments& more = {}) const {
    return program(Arguments{"train", "--resume", "--log-every", "1", "--out", out} + more);
  }
  /// Runs `out`, which stops after step 8 and goes on, and OUT-whole: with the same files.
  void expect_resumes(const std::string& out, const Arguments& flags) const {
    expect_success(train(out + "-whole", flags));
    expect_success(train(out, flags + "--stop-at 8"));
    expect_success(resume(out));
    EXPECT_EQ(files_of(path(out)), files_of(path(out + "-whole"))) << out;
  }
  /// The run's integers agree with it and go into exports OUT.FORMAT. Returns what `verify` says.
  std::string expect_integers(const std::string& out,
                              const Arguments& formats = "c html json miniqat onnx tflite") const {
    for (const std::string& format : formats)
      expect_success(program({"export", "--run", out, "--format", format, "--out", out + "." + format}));
    return expect_success(program({"verify", "--run", out, "--no-runtimes", "--threads", "1"})).out;
  }
};

}  // namespace miniqat::testing
