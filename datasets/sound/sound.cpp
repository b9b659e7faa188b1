#include "datasets/sound/sound.h"

#include <sndfile.h>
#include <soxr.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <string>

#include "core/files/files.h"
#include "core/text/error.h"

namespace miniqat::datasets {
namespace {

constexpr std::int64_t kLongestSeconds = 3600;

struct CloseSound {
  void operator()(SNDFILE* file) const { sf_close(file); }
};

/// The bytes of samples that the chunks of a WAV or AIFF file announce and that are not there; libsndfile reads what
/// is. Nearly 2 GB and more stand in the heads of streams, whose writers did not know: SoX has 0x7ffff000, arecord
/// 0x7fffff00.
std::uint64_t missing_bytes(const std::filesystem::path& path) {
  constexpr std::size_t kHead = std::size_t{1} << 16;
  constexpr std::uint64_t kUnknown = 0x7f000000;
  const std::string head = read_part(path, 0, kHead);
  const bool is_wav = head.starts_with("RIFF"), is_aiff = head.starts_with("FORM");
  const auto number_at = [&](std::size_t place) {
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < 4; ++i)
      number = number << 8 | static_cast<std::uint8_t>(head[place + (is_aiff ? i : 3 - i)]);
    return number;
  };
  const std::string_view samples = is_wav ? "data" : "SSND";
  for (std::uint64_t at = 12; (is_wav || is_aiff) && at + 8 <= head.size();) {
    const std::uint64_t bytes = number_at(at + 4), end = at + 8 + bytes, size = std::filesystem::file_size(path);
    if (std::string_view(head).substr(at, 4) == samples) return end > size && bytes < kUnknown ? end - size : 0;
    at = end + bytes % 2;
  }
  return 0;
}

/// libsndfile keeps one reason of failures to open for all threads.
std::unique_ptr<SNDFILE, CloseSound> opened(const std::filesystem::path& path, SF_INFO& info) {
  static std::mutex opening;
  const std::lock_guard lock(opening);
  std::unique_ptr<SNDFILE, CloseSound> file(sf_open(path.c_str(), SFM_READ, &info));
  if (!file) fail(path, " is no sound that can be read: ", sf_strerror(nullptr));
  return file;
}

/// Some writers count their head among the samples.
constexpr std::uint64_t kHeadAtMost = 1024;

}  // namespace

Sound read_sound(const std::filesystem::path& path) {
  SF_INFO info{};
  const std::unique_ptr<SNDFILE, CloseSound> file = opened(path, info);
  if (info.samplerate < 1 || info.channels < 1) fail(path, " has no samples");
  // A FLAC stream's head does not say it; of an Ogg file without its last page nobody can: libsndfile 1.1 calls the
  // number unknown, 1.2 calls it 0.
  const bool is_unknown = info.frames == SF_COUNT_MAX;
  if ((is_unknown || info.frames == 0) && (info.format & SF_FORMAT_TYPEMASK) == SF_FORMAT_OGG)
    fail(path, " is cut short: its last page is missing");
  const std::int64_t announced = is_unknown ? 0 : info.frames;
  if (announced > kLongestSeconds * info.samplerate) fail(path, " is longer than an hour");
  constexpr std::int64_t kBlock = 1 << 14;
  Sound sound{.samples = {}, .rate = info.samplerate};
  std::vector<float> block(static_cast<std::size_t>(kBlock * info.channels));
  // There may be more frames than the header says; fewer are told below.
  for (sf_count_t frames = 0; (frames = sf_readf_float(file.get(), block.data(), kBlock)) > 0;) {
    if (std::ssize(sound.samples) + frames > kLongestSeconds * info.samplerate) fail(path, " is longer than an hour");
    for (sf_count_t i = 0; i < frames; ++i) {
      double sum = 0;
      for (int c = 0; c < info.channels; ++c) sum += block[static_cast<std::size_t>(i * info.channels + c)];
      sound.samples.push_back(static_cast<float>(sum / info.channels));
    }
  }
  if (sf_error(file.get()) != SF_ERR_NO_ERROR) fail(path, " is a damaged sound: ", sf_strerror(file.get()));
  if (sound.samples.empty()) fail(path, " has no samples");
  if (std::ssize(sound.samples) < announced)
    fail(path, " is cut short: it has ", counted(sound.samples.size(), "sample"), " of ", announced);
  if (const std::uint64_t missing = missing_bytes(path); missing > kHeadAtMost)
    fail(path, " is cut short: ", missing, " bytes of its samples are missing");
  for (const float sample : sound.samples)
    if (!std::isfinite(sample)) fail(path, " has samples that are NaN or infinite");
  return sound;
}

Sound resampled(const Sound& sound, std::int64_t rate) {
  if (sound.rate == rate) return sound;
  const double ratio = static_cast<double>(rate) / static_cast<double>(sound.rate);
  Sound result{.samples = std::vector<float>(
                   static_cast<std::size_t>(std::ceil(static_cast<double>(sound.samples.size()) * ratio))),
               .rate = rate};
  std::size_t made = 0;
  const soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
  const soxr_error_t trouble = soxr_oneshot(static_cast<double>(sound.rate), static_cast<double>(rate), 1,
                                            sound.samples.data(), sound.samples.size(), nullptr, result.samples.data(),
                                            result.samples.size(), &made, nullptr, &quality, nullptr);
  if (trouble != nullptr) fail("cannot bring a sound of ", sound.rate, " samples a second to ", rate, ": ", trouble);
  result.samples.resize(made);
  return result;
}

std::vector<float> fitted(const Sound& sound, std::int64_t count) {
  std::vector<float> result(static_cast<std::size_t>(count));
  const std::int64_t size = std::ssize(sound.samples), shared = std::min(size, count);
  const std::int64_t from = (size - shared) / 2, to = (count - shared) / 2;
  std::copy_n(sound.samples.begin() + from, shared, result.begin() + to);
  return result;
}

}  // namespace miniqat::datasets
