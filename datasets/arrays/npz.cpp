#include <zip.h>

#include <memory>

#include "core/platform/interruption.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "datasets/arrays/npy.h"
#include "datasets/dead_links.h"

namespace miniqat::datasets {
namespace {

/// The most bytes of one array, so that a small file cannot ask for any amount of memory.
constexpr zip_uint64_t kMostArrayBytes = zip_uint64_t{1} << 32;
constexpr std::string_view kEnding = ".npy";

using Archive = std::unique_ptr<zip_t, void (*)(zip_t*)>;
using Entry = std::unique_ptr<zip_file_t, int (*)(zip_file_t*)>;

Archive open_zip(const std::filesystem::path& path) {
  require_data_file(path);
  int code = 0;
  Archive archive(zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code), zip_discard);
  if (archive == nullptr) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string text = zip_error_strerror(&error);
    zip_error_fini(&error);
    fail("cannot read ", path, ": ", text);
  }
  return archive;
}

}  // namespace

std::vector<std::string> npz_names(const std::filesystem::path& path) {
  const Archive archive = open_zip(path);
  std::vector<std::string> names;
  const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const char* name = zip_get_name(archive.get(), i, 0);
    if (name == nullptr || !std::string_view(name).ends_with(kEnding)) continue;
    names.push_back(std::string(name).substr(0, std::string_view(name).size() - kEnding.size()));
  }
  return names;
}

NumpyArray read_npz(const std::filesystem::path& path, const std::string& name) {
  const Archive archive = open_zip(path);
  const std::string member = concat(name, kEnding), place = concat(path, " (", printable(member), ")");
  zip_stat_t about;
  if (zip_stat(archive.get(), member.c_str(), 0, &about) != 0 || (about.valid & ZIP_STAT_SIZE) == 0)
    fail(path, " has no array ", quote(name));
  if ((about.valid & ZIP_STAT_COMP_METHOD) == 0 ||
      (about.comp_method != ZIP_CM_STORE && about.comp_method != ZIP_CM_DEFLATE))
    fail(place, " is compressed in a way that NumPy does not use; save it with numpy.savez_compressed()");
  if (about.size > kMostArrayBytes)
    fail(place, " has ", about.size, " bytes, more than the limit of ", kMostArrayBytes);
  const Entry entry(zip_fopen(archive.get(), member.c_str(), 0), zip_fclose);
  if (entry == nullptr) fail("cannot read ", place, ": ", zip_strerror(archive.get()));
  // Grows with what is really there.
  std::string bytes, block(std::size_t{1} << 20, '\0');
  for (;;) {
    interruption_point();
    const zip_int64_t got = zip_fread(entry.get(), block.data(), block.size());
    if (got < 0) fail("cannot read ", place, ": ", zip_file_strerror(entry.get()));
    if (got == 0) break;
    const std::size_t before = bytes.size();
    bytes.append(block, 0, got);
    // Longer than the header of any array that pictures may be.
    constexpr std::size_t kHead = std::size_t{1} << 16;
    if (before < kHead && (bytes.size() >= kHead || bytes.size() == about.size)) check_npy(bytes, about.size, place);
    if (bytes.size() > about.size) fail(place, " is longer than its archive says");
  }
  return parse_npy(std::move(bytes), place);
}

}  // namespace miniqat::datasets
