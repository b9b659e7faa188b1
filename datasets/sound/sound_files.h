#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace miniqat::datasets {

/// A folder of recordings of noise among folders of sounds, as Speech Commands has one. It is no class.
inline constexpr const char* kNoiseFolder = "_background_noise_";

/// Where SoundOptions::silence is set, training hears the first tenths of a recording of noise; the next is for the
/// validation part, the last for the test part.
inline constexpr int kTrainedTenths = 8;

/// The endings of sound files, in lower case: WAV of every width, FLAC, Ogg, AIFF.
std::span<const std::string_view> sound_endings();
bool is_sound(const std::filesystem::path& path);

/// Calls visit(entry) for each file below the folder, without hidden ones and those of kNoiseFolder, until it returns
/// false. The folder of a class may be a link; links to folders further below, which may lead anywhere, are visited as
/// files are.
using FileVisit = std::function<bool(const std::filesystem::directory_entry& entry)>;
void walk_files(const std::filesystem::path& folder, const FileVisit& visit);

/// Whether there are sound files (sound_endings()) in the folder, at any depth; hidden folders do not count. What lies
/// in the folder itself may be a link to another one.
bool has_sounds(const std::filesystem::path& folder);

/// The paths inside `root` of the sounds at any depth below `folder`, in order.
std::vector<std::string> sounds_in(const std::filesystem::path& root, const std::filesystem::path& folder);

}  // namespace miniqat::datasets
