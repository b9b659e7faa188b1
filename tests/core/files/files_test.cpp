#include "core/files/files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/text/error.h"
#include "tests/errors.h"
#include "tests/temp_dir.h"

namespace miniqat::files_test {
namespace {

namespace fs = std::filesystem;

class FilesTest : public ::testing::Test {
 protected:
  /// Everything in the folder, hidden files included.
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  const testing::TempDir temporary_;
  const fs::path folder_ = temporary_.path();
};

template <class Body>
std::string error_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

void expect_mentions(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << '"' << text << "\" lacks \"" << part << '"';
}

TEST_F(FilesTest, ReadsBackWhatItWrote) {
  std::string bytes = "text\n";
  bytes += '\0';
  bytes += std::string(200'000, '\xff');
  write_file_atomically(folder_ / "file", bytes);
  EXPECT_EQ(read_file(folder_ / "file"), bytes);
  write_file_atomically(folder_ / "file", "");
  EXPECT_EQ(read_file(folder_ / "file"), "");
  EXPECT_EQ(entries(), 1u);
}

// A container counts its processes anew: what a killed one left may bear the number of this one.
TEST_F(FilesTest, LeftoversOfTheSameProcessIdAreNoCollision) {
  for (int i = 0; i < 100; ++i) std::ofstream(folder_ / concat(".file.", ::getpid(), ".", i, ".tmp")) << "half";
  write_file_atomically(folder_ / "file", "whole");
  EXPECT_EQ(read_file(folder_ / "file"), "whole");
  std::ofstream(folder_ / ".file.1.tmp.txt") << "not ours";
  std::ofstream(folder_ / ".file.old.1.tmp") << "not ours";
  std::ofstream(folder_ / ".file2.1.1.tmp") << "another's";
  remove_dead_temporaries(folder_ / "file");
  EXPECT_EQ(entries(), 4u);
}

TEST_F(FilesTest, WhatIsAppendedIsThereAsAWholeOrNotAtAll) {
  append_to_file(folder_ / "log", "one\n");
  append_to_file(folder_ / "log", "two\n");
  EXPECT_EQ(read_file(folder_ / "log"), "one\ntwo\n");
  sync_file(folder_ / "log");
  sync_file(folder_ / "missing");
  EXPECT_EQ(entries(), 1u);
  expect_mentions(error_of([&] { append_to_file(folder_ / "no" / "log", "x"); }), "no/log: No such file");
  struct rlimit before = {};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = before;
  small.rlim_cur = 10;
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string error = error_of([&] { append_to_file(folder_ / "log", "a line that is too long\n"); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  expect_mentions(error, "log: File too large");
  EXPECT_EQ(read_file(folder_ / "log"), "one\ntwo\n");
}

TEST_F(FilesTest, WritesRelativeToTheCurrentDirectory) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  write_file_atomically("bare_name", "x");
  fs::current_path(before);
  EXPECT_EQ(read_file(folder_ / "bare_name"), "x");
}

TEST_F(FilesTest, ReadErrorsNamePathAndReason) {
  const std::string missing = error_of([&] { read_file(folder_ / "missing"); });
  expect_mentions(missing, (folder_ / "missing").string());
  expect_mentions(missing, "No such file");
  expect_mentions(error_of([&] { read_file(folder_); }), "is a directory");
  write_file_atomically(folder_ / "file", "x");
  expect_mentions(error_of([&] { read_file(folder_ / "file" / "below"); }), "Not a directory");
  expect_mentions(error_of([&] { read_file(""); }), "No such file");
}

TEST_F(FilesTest, TheLimitIsExact) {
  write_file_atomically(folder_ / "file", "12345");
  EXPECT_EQ(read_file(folder_ / "file", 5), "12345");
  const std::string text = error_of([&] { read_file(folder_ / "file", 4); });
  expect_mentions(text, "5 bytes");
  expect_mentions(text, "limit of 4");
}

TEST_F(FilesTest, AnEndlessDeviceHitsTheLimit) {
  expect_mentions(error_of([] { read_file("/dev/zero", 1'000'000); }), "limit of 1000000");
}

TEST_F(FilesTest, ReadsAPipe) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string bytes(100'000, 'p');
  std::thread writer([&] { std::ofstream(pipe) << bytes; });
  EXPECT_EQ(read_file(pipe), bytes);
  writer.join();
}

TEST_F(FilesTest, AFailedWriteLeavesNothingBehind) {
  write_file_atomically(folder_ / "file", "old");
  fs::create_directory(folder_ / "directory");
  const std::string below_file = error_of([&] { write_file_atomically(folder_ / "file" / "new", "x"); });
  expect_mentions(below_file, (folder_ / "file" / "new").string());
  expect_mentions(below_file, "Not a directory");
  expect_mentions(error_of([&] { write_file_atomically(folder_ / "missing" / "new", "x"); }), "No such file");
  expect_mentions(error_of([&] { write_file_atomically(folder_ / "directory", "x"); }), "is a directory");
  EXPECT_THROW(write_file_atomically(folder_ / std::string(300, 'n'), "x"), Error);
  EXPECT_THROW(write_file_atomically("", "x"), Error);
  EXPECT_EQ(read_file(folder_ / "file"), "old");
  EXPECT_EQ(entries(), 2u);
}

TEST_F(FilesTest, WhetherAFileCanBeWrittenIsKnownBeforehand) {
  write_file_atomically(folder_ / "file", "old");
  fs::create_directory(folder_ / "directory");
  require_writable(folder_ / "file");
  require_writable(folder_ / "new");
  for (const fs::path& path :
       {folder_ / "file" / "new", folder_ / "missing" / "new", folder_ / "directory", folder_ / std::string(300, 'n')})
    EXPECT_EQ(error_of([&] { require_writable(path); }), error_of([&] { write_file_atomically(path, "x"); }));
  EXPECT_NE(error_of([&] { require_writable(folder_ / "missing" / "new"); }), "");
  EXPECT_EQ(read_file(folder_ / "file"), "old");
  EXPECT_EQ(entries(), 2u);
}

TEST_F(FilesTest, RemovesTheTemporaryFileWhenTheDiskIsFull) {
  // A file size limit makes write() fail in the middle, as a full disk would, for root as well.
  const fs::path path = folder_ / "file";
  write_file_atomically(path, "old");
  EXPECT_EXIT(
      {
        ::signal(SIGXFSZ, SIG_IGN);
        rlimit limit = {};
        limit.rlim_cur = limit.rlim_max = 1000;
        ::setrlimit(RLIMIT_FSIZE, &limit);
        const std::string text = error_of([&] { write_file_atomically(path, std::string(5000, 'x')); });
        std::_Exit(text.find("File too large") != std::string::npos ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(entries(), 1u);
}

// A private file must not become readable for all.
TEST_F(FilesTest, ANewFileHasTheUsualModeAndAReplacedOneKeepsItsOwn) {
  const fs::path path = folder_ / "file";
  const auto mode = [&] { return static_cast<unsigned>(fs::status(path).permissions()); };
  const mode_t before = ::umask(027);
  write_file_atomically(path, "new");
  ::umask(before);
  EXPECT_EQ(mode(), 0640u);
  fs::create_symlink("file", folder_ / "link");
  for (const unsigned kept : {0600u, 0444u, 0666u}) {
    ASSERT_EQ(::chmod(path.c_str(), kept), 0);
    write_file_atomically(path, "replaced");
    EXPECT_EQ(mode(), kept);
    write_file_atomically(folder_ / "link", "through a link");
    EXPECT_EQ(mode(), kept);
  }
}

TEST_F(FilesTest, ReplacesTheTargetOfALinkAndKeepsTheLink) {
  write_file_atomically(folder_ / "target", "old");
  fs::create_symlink("target", folder_ / "link");
  write_file_atomically(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read_file(folder_ / "target"), "new");
  EXPECT_EQ(entries(), 2u);
}

TEST_F(FilesTest, AppendingAndCuttingSpareWhatALinkLeadsTo) {
  write_file_atomically(folder_ / "target", "0123456789");
  fs::create_symlink("target", folder_ / "link");
  fs::create_symlink("gone", folder_ / "dead");
  fs::create_directory(folder_ / "directory");
  const std::vector<std::function<void(const fs::path&)>> writers = {
      [](const fs::path& path) { append_to_file(path, "x"); }, [](const fs::path& path) { cut_file(path, 3); },
      require_no_link};
  for (const auto& write : writers) {
    expect_mentions(error_of([&] { write(folder_ / "link"); }), "it is a link to target, which would be overwritten");
    expect_mentions(error_of([&] { write(folder_ / "dead"); }), "it is a link to gone");
    expect_mentions(error_of([&] { write(folder_ / "directory"); }), "it is not a regular file");
  }
  EXPECT_EQ(read_file(folder_ / "target"), "0123456789");
  EXPECT_FALSE(fs::exists(folder_ / "gone"));
}

TEST_F(FilesTest, OtherNamesOfAFileKeepItsContent) {
  write_file_atomically(folder_ / "one", "0123456789");
  fs::create_hard_link(folder_ / "one", folder_ / "two");
  fs::create_hard_link(folder_ / "one", folder_ / "three");
  append_to_file(folder_ / "two", "x");
  cut_file(folder_ / "three", 3);
  EXPECT_EQ(read_file(folder_ / "one"), "0123456789");
  EXPECT_EQ(read_file(folder_ / "two"), "0123456789x");
  EXPECT_EQ(read_file(folder_ / "three"), "012");
  append_to_file(folder_ / "two", "y");
  EXPECT_EQ(read_file(folder_ / "two"), "0123456789xy");
}

TEST_F(FilesTest, RefusesToReplaceWhatIsNoFile) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  expect_mentions(error_of([&] { write_file_atomically(folder_ / "pipe", "x"); }), "not a regular file");
  EXPECT_TRUE(fs::is_fifo(folder_ / "pipe"));
}

TEST_F(FilesTest, ReadersNeverSeeAHalf) {
  const std::vector<std::string> versions = {std::string(300'000, 'a'), std::string(150'000, 'b')};
  const fs::path path = folder_ / "file";
  write_file_atomically(path, versions[0]);
  std::thread writer([&] {
    for (int i = 0; i < 40; ++i) write_file_atomically(path, versions[i % 2]);
  });
  for (int i = 0; i < 200; ++i) {
    const std::string bytes = read_file(path);
    EXPECT_TRUE(bytes == versions[0] || bytes == versions[1]);
  }
  writer.join();
}

TEST_F(FilesTest, WritersOfOneFileDontCollide) {
  const fs::path path = folder_ / "file";
  std::vector<std::thread> writers;
  for (char c = 'a'; c < 'e'; ++c)
    writers.emplace_back([&path, c] {
      for (int i = 0; i < 10; ++i) write_file_atomically(path, std::string(10'000, c));
    });
  for (std::thread& writer : writers) writer.join();
  const std::string bytes = read_file(path);
  EXPECT_EQ(bytes, std::string(10'000, bytes.front()));
  EXPECT_EQ(entries(), 1u);
}

TEST(Files, FilesThatBelongTogetherAreWrittenTogether) {
  const testing::TempDir directory;
  const auto first = directory.write("first", "old"), second = directory.path() / "no" / "second";
  EXPECT_TRUE(
      testing::mentions(testing::error_of([&] {
                          write_files_atomically({{.path = first, .bytes = "new"}, {.path = second, .bytes = "new"}});
                        }),
                        {"no/second"}));
  EXPECT_EQ(read_file(first), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1) << "a temporary file stayed";
  const auto third = directory.path() / "third";
  write_files_atomically({{.path = first, .bytes = "1"}, {.path = third, .bytes = "3"}});
  EXPECT_EQ(read_file(first) + read_file(third), "13");
}

}  // namespace
}  // namespace miniqat::files_test
