#include "datasets/sound/sound_folders.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/files/files.h"
#include "core/platform/interruption.h"
#include "core/tensors/random.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "core/threads/parallel.h"
#include "datasets/data_dir.h"
#include "datasets/decoding.h"
#include "datasets/file_cache.h"
#include "datasets/groups.h"
#include "datasets/sound/features.h"
#include "datasets/sound/sound.h"
#include "datasets/sound/sound_files.h"
#include "datasets/sound/sound_stack.h"

namespace miniqat::datasets {
namespace {

namespace fs = std::filesystem;

/// What its pieces are called, as in the archive of Speech Commands' tests.
constexpr const char* kSilence = "_silence_";
/// The lists of Speech Commands.
constexpr const char* kTests = "testing_list.txt";
constexpr const char* kValidation = "validation_list.txt";
/// Classes 0 and 1 of recordings of machines.
constexpr const char* kNormal = "normal";
constexpr const char* kAnomaly = "anomaly";

/// The lines of a list of files; empty without one.
std::set<std::string> listed_in(const fs::path& list) {
  std::set<std::string> files;
  if (!is_there(list)) return files;
  const std::string text = read_file(list);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) files.insert(std::move(line));
    at = end + 1;
  }
  return files;
}

/// For the cache: all that features depend on. Other decoding, resampling or arithmetic of the front end, or another
/// SoundStack::content(), takes another version.
std::string dependence_on(const SoundOptions& how) {
  constexpr int kVersion = 1;
  std::string text = concat("miniqat sounds ", kVersion, ", ", names_of(how.features)[static_cast<int>(how.features)],
                            ", ", names_of(how.mel_scale)[static_cast<int>(how.mel_scale)]);
  for (const std::int64_t number : {how.rate, how.bands, how.coefficients, how.frames, how.silence})
    text += concat(' ', number);
  for (const double number : {how.seconds, how.window_ms, how.stride_ms, how.low_hz, how.high_hz})
    text += concat(' ', exact(number));
  return text;
}

/// The bytes of a part that is kept: writing takes twice its memory.
constexpr std::int64_t kMostKept = std::int64_t{1} << 30;

class SoundReader {
 public:
  SoundReader(const fs::path& root, const LoadOptions& options)
      : root_(root), options_(options), how_(options.sounds.value_or(SoundOptions())) {}

  FoundParts read(const std::map<Part, fs::path>& folders) {
    std::map<Part, std::vector<std::string>> files;
    for (const auto& [part, folder] : folders) {
      require_no_dead_links(folder);
      files[part] = sounds_in(root_, folder);
    }
    FoundParts found;
    const bool is_whole = folders.size() == 1 && folders.begin()->second == root_;
    if (is_whole) part_by_lists(files, found);
    if (how_.silence > 0) add_silence(files, is_whole && files.size() > 1);
    for (const auto& [part, list] : files) all_ += std::ssize(list);
    for (const auto& [part, list] : files)
      if (!list.empty()) found.found[part] = read_part(part, list, folders);
    for (const auto& [part, data] : found.found)
      if (data.labels.defined()) found.class_names = {kNormal, kAnomaly};
    note_others(folders, found);
    if (!broken_.empty()) report_broken(found);
    return found;
  }

 private:
  void part_by_lists(std::map<Part, std::vector<std::string>>& files, FoundParts& found) const {
    const std::vector<std::string> all = std::exchange(files.begin()->second, {});
    const Part rest = files.begin()->first;
    const std::set<std::string> tests = listed_in(root_ / kTests);
    const std::set<std::string> validation = listed_in(root_ / kValidation);
    note_missing(kTests, tests, all, found);
    note_missing(kValidation, validation, all, found);
    for (const std::string& file : all) {
      const Part part = tests.contains(file) ? Part::kTest : validation.contains(file) ? Part::kValidation : rest;
      files[part].push_back(file);
    }
  }

  /// Some may be missing: people use a part of Speech Commands. Throws Error if all are, since another part would be
  /// the test part then.
  void note_missing(const char* list, const std::set<std::string>& listed, const std::vector<std::string>& all,
                    FoundParts& found) const {
    // (Both are sorted by their bytes.)
    std::vector<std::string> missing;
    std::ranges::set_difference(listed, all, std::back_inserter(missing));
    if (missing.empty()) return;
    const std::string lists = concat(list, " lists ", counted(listed.size(), "file"), ", of which "),
                      example = quote(missing.front());
    if (missing.size() == listed.size())
      fail(root_, ": ", lists, "none is there, ", example,
           " for instance: a line is the path of a sound inside the folder; correct the list or remove it");
    const bool is_one = missing.size() == 1;
    found.remarks.notes.push_back(concat("note: ", root_.string(), ": ", lists, missing.size(),
                                         is_one ? " is not there: " : " are not there, ", example,
                                         is_one ? "" : " for instance"));
  }

  /// A piece of a recording of noise, from one of its samples on.
  struct Piece {
    std::size_t noise = 0;
    std::int64_t first = 0;
    float volume = 1;
  };

  void add_silence(std::map<Part, std::vector<std::string>>& files, bool has_lists) {
    if (is_there(root_ / kNoiseFolder)) noise_files_ = sounds_in(root_, root_ / kNoiseFolder);
    const std::vector<std::string>& noises = noise_files_;
    const std::int64_t trained = std::ssize(files[Part::kTrain]);
    if (noises.empty() || !has_lists || trained == 0) {
      if (options_.whole_as_test) return;
      fail(root_, ": for examples of silence there must be sounds in ", kNoiseFolder, ", and parts by ", kTests, " or ",
           kValidation, ", as in Speech Commands");
    }
    for (const std::string& file : noises) {
      noises_.push_back(resampled(read_sound(root_ / file), how_.rate).samples);
      if (std::ssize(noises_.back()) < 10 * how_.samples())
        fail(root_, ": ", quote(file), " is too short for examples of silence: a tenth of it must be as long as one");
    }
    for (auto& [part, list] : files) {
      const std::int64_t count = how_.silence * std::ssize(list) / trained;
      Random random(mix(hash_text(kSilence), static_cast<std::uint64_t>(part)));
      for (std::int64_t i = 0; i < count; ++i) {
        const Piece piece = drawn_piece(static_cast<std::size_t>(i) % noises.size(), part, random);
        const std::string noise = fs::path(noises[piece.noise]).filename().string();
        list.push_back(concat(kSilence, "/", noise, "@", 1000 * piece.first / how_.rate, "ms"));
        silence_[part].push_back(piece);
      }
    }
  }

  /// From the part's own stretch of the recording.
  Piece drawn_piece(std::size_t noise, Part part, Random& random) const {
    const auto [from, to] = part == Part::kTrain        ? std::pair(0, kTrainedTenths)
                            : part == Part::kValidation ? std::pair(kTrainedTenths, kTrainedTenths + 1)
                                                        : std::pair(kTrainedTenths + 1, 10);
    const std::int64_t size = std::ssize(noises_[noise]), first = size * from / 10;
    const std::int64_t starts = size * to / 10 - first - how_.samples() + 1;
    const auto at = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(starts)));
    return {.noise = noise, .first = first + at, .volume = random.uniform()};
  }

  Sound sound_of(const Piece& piece) const {
    const auto from = noises_[piece.noise].begin() + piece.first;
    Sound sound{.samples = {from, from + how_.samples()}, .rate = how_.rate};
    for (float& sample : sound.samples) sample *= piece.volume;
    return sound;
  }

  PartData read_part(Part part, const std::vector<std::string>& files, const std::map<Part, fs::path>& folders) {
    const auto folder = folders.find(part);
    PartData data;
    data.classes = classes_of(files, folder == folders.end() ? root_ : folder->second);
    // They go into files that must be UTF-8.
    for (std::size_t i = 0; i < data.classes.size(); ++i)
      if (printable(data.classes[i]) != data.classes[i])
        fail(root_, ": ", quote(files[i]), ": the name of a class must be UTF-8 without control characters");
    if (data.classes.empty()) data.labels = anomalies_of(files);
    data.files = std::make_shared<const std::vector<std::string>>(files);
    SoundStack stack(how_, part == Part::kTrain ? options_.variation : SoundVariation(), std::ssize(files));
    FileCache cache(concat("sounds-", title_of(part)), root_, dependence_on(how_));
    for (const std::string& file : files) cache.depend_on(root_ / file);
    for (const std::string& file : noise_files_) cache.depend_on(root_ / file);
    const bool are_kept = stack.take(cache.kept());
    // A file that could not be read when the others were kept may be readable now.
    read_missing(files, silence_[part], stack);
    if (!are_kept && stack.bytes() <= kMostKept) cache.keep([&] { return stack.content(); });
    stack.move_to(data);
    return data;
  }

  void read_missing(const std::vector<std::string>& files, const std::vector<Piece>& silence, SoundStack& stack) {
    const std::int64_t recordings = std::ssize(files) - std::ssize(silence);
    std::vector<std::int64_t> missing;
    for (std::int64_t i = 0; i < std::ssize(files); ++i)
      if (!stack.has(i)) missing.push_back(i);
    constexpr std::int64_t kBlock = 64;
    for (std::int64_t first = 0; first < std::ssize(missing); first += kBlock) {
      interruption_point();
      decoding_went_on(first, std::ssize(missing));
      parallel_for(std::min(kBlock, std::ssize(missing) - first), 1, [&](std::int64_t from, std::int64_t to) {
        for (const std::int64_t i : std::span(missing).subspan(first + from, to - from))
          if (i < recordings)
            read_recording(files[static_cast<std::size_t>(i)], i, stack);
          else
            stack.put(i, sound_of(silence[static_cast<std::size_t>(i - recordings)]));
      });
    }
    if (!missing.empty()) decoding_went_on(std::ssize(missing), std::ssize(missing));
  }

  void read_recording(const std::string& file, std::int64_t number, SoundStack& stack) {
    try {
      stack.put(number, resampled(read_sound(root_ / file), how_.rate));
    } catch (const Error& error) {
      const std::lock_guard lock(mutex_);
      broken_.push_back({.file = file, .why = error.what()});
    }
  }

  /// 0 and 1 of files whose names have the word "normal" or "anomaly"; undefined if one has neither.
  static Tensor anomalies_of(const std::vector<std::string>& files) {
    std::vector<std::int32_t> labels;
    for (const std::string& file : files) {
      const std::string words = concat("_", fs::path(file).stem().string(), "_");
      const bool is_anomaly = words.find(concat("_", kAnomaly, "_")) != std::string::npos;
      if (!is_anomaly && words.find(concat("_", kNormal, "_")) == std::string::npos) return {};
      labels.push_back(is_anomaly ? 1 : 0);
    }
    return Tensor::from<std::int32_t>({std::ssize(labels)}, labels);
  }

  /// Empty where no file has a class.
  std::vector<std::string> classes_of(const std::vector<std::string>& files, const fs::path& folder) const {
    // A comma in an expression is none between columns.
    const std::string target = joined(options_.numbers.target, ",");
    if (!target.empty()) {
      if (captures_of(target) == 0)
        fail(
            "`target` ", quote(target),
            " captures nothing: the class is what stands in brackets, as in '^(\\d)_', which finds the 7 of 7_jackson_3.wav");
      return classes_of_files(files, target);
    }
    std::vector<std::string> classes;
    const std::string* without = nullptr;
    for (const std::string& file : files) {
      const fs::path inside = (root_ / file).lexically_relative(folder);
      if (std::distance(inside.begin(), inside.end()) < 2)
        without = &file;
      else
        classes.push_back(inside.begin()->string());
    }
    if (without != nullptr && !classes.empty())
      fail(root_, ": ", quote(*without), " lies in no folder of a class; others do");
    return classes;
  }

  /// Recordings of other formats may be among them.
  void note_others(const std::map<Part, fs::path>& folders, FoundParts& found) const {
    std::map<std::string, std::int64_t> counts;
    std::int64_t links = 0;
    for (const auto& [part, folder] : folders)
      walk_files(folder, [&](const fs::directory_entry& entry) {
        const std::string ending = lower_ending(entry.path());
        const bool is_list = entry.path() == root_ / kTests || entry.path() == root_ / kValidation;
        if (entry.is_directory())
          ++links;
        else if (!is_list && !is_sound(entry.path()))
          ++counts[ending.empty() ? "without an ending" : ending];
        return true;
      });
    std::vector<std::string> texts;
    for (const auto& [what, count] : counts) texts.push_back(concat(count, " ", printable(what)));
    if (links > 0)
      found.remarks.notes.push_back(concat("note: ", root_.string(), ": left out ", counted(links, "link"),
                                           " to folders below the folder of a class"));
    if (!texts.empty())
      found.remarks.notes.push_back(concat("note: ", root_.string(), ": left out files that are no sounds: ",
                                           shortened(joined(texts)), "; sounds are ", joined(sound_endings())));
  }

  void report_broken(FoundParts& found) {
    std::ranges::sort(broken_, {}, &SkippedFile::file);
    const std::string text = concat(root_, ": ", broken_.size(), " of ", counted(all_, "file"),
                                    " cannot be read: ", quote(broken_.front().file), ": ", broken_.front().why);
    if (!options_.skip_broken) fail(text, "; repair or remove them, or leave out what is broken with --skip-broken");
    found.remarks.notes.push_back(concat("note: left out ", text));
    found.remarks.skipped = broken_;
  }

  const fs::path& root_;
  const LoadOptions& options_;
  const SoundOptions how_;
  std::int64_t all_ = 0;
  std::vector<std::string> noise_files_;
  std::vector<std::vector<float>> noises_;
  /// The last files of each part.
  std::map<Part, std::vector<Piece>> silence_;
  std::mutex mutex_;
  std::vector<SkippedFile> broken_;
};

}  // namespace

FoundParts read_sounds(const fs::path& root, const std::map<Part, fs::path>& folders, const LoadOptions& options) {
  return SoundReader(root, options).read(folders);
}

}  // namespace miniqat::datasets
