#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace miniqat {

/// Whether there is a file or folder at `path`; false where nobody may look.
bool is_there(const std::filesystem::path& path);

/// The whole of a file. Throws Error naming the path and the reason (missing, a directory, unreadable, larger than
/// `limit` bytes).
std::string read_file(const std::filesystem::path& path, std::uintmax_t limit = std::uintmax_t{1} << 31);

/// The whole of a file that may be large: no limit for a regular file, whose size is known; the limit of read_file()
/// for pipes and devices, which need not end.
std::string read_large_file(const std::filesystem::path& path);

/// At most `bytes` of a file from `offset` on, fewer at its end. Throws Error naming path and reason.
std::string read_part(const std::filesystem::path& path, std::uintmax_t offset, std::size_t bytes);

/// Writes a temporary file beside `path`, fsyncs it and renames it over `path`: readers see the old file or the new
/// one, never a half. A file that is replaced keeps its permissions. Throws Error naming path and reason; then `path`
/// is untouched and the temporary file removed.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

/// Throws Error unless `path` is a regular file or not there yet: what writes a file that nobody named must not write
/// through a symbolic link, which leads to somebody else's, nor wait for the reader of a pipe.
void require_no_link(const std::filesystem::path& path);

/// Appends `bytes` with as few writes as the system allows. Throws Error naming path and reason; then the file has its
/// old length again, so that a line is there as a whole or not at all. Refuses symbolic links. A file that has other
/// names (hard links) is replaced by a copy, so that the others keep their content.
void append_to_file(const std::filesystem::path& path, std::string_view bytes);

/// Cuts a file to its first `bytes` bytes, and puts that on the disk. Throws Error naming path and reason. Links are
/// treated as by append_to_file().
void cut_file(const std::filesystem::path& path, std::uintmax_t bytes);

/// Asks the system to put what was appended so far on the disk. No error where there is no such file.
void sync_file(const std::filesystem::path& path);

/// Removes the temporary files that writers of `path` left beside it when they were killed. Only for who knows that
/// nobody writes `path` at this moment.
void remove_dead_temporaries(const std::filesystem::path& path);

/// Whether `other` has a name that writers of `path` give a temporary file of theirs.
bool is_temporary_of(const std::filesystem::path& path, const std::filesystem::path& other);

/// For whoever works long before writing: throws what write_file_atomically() would throw now. `path` is untouched, and
/// nothing new stays behind.
void require_writable(const std::filesystem::path& path);

struct FileContent {
  std::filesystem::path path;
  std::string_view bytes;
};

/// Writes files that belong together: none is touched before all are complete beside their places. Only a rename that
/// fails after that, which takes a file system that changes meanwhile, can leave some of them old.
void write_files_atomically(const std::vector<FileContent>& files);

}  // namespace miniqat
