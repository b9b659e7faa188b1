#pragma once

#include <filesystem>
#include <map>

#include "datasets/load_options.h"
#include "datasets/part_data.h"

namespace miniqat::datasets {

/// Reads the parts of a folder of sounds at `root` as LoadOptions::sounds says. The class of a file is the first
/// capture of the expression in NumberOptions::target in its path or, without one, the folder that it lies in. A whole
/// folder without parts may have the lists of Speech Commands, testing_list.txt and validation_list.txt, whose files
/// are these parts, and a note counts those that are not there; its folder _background_noise_ is no class. With
/// SoundOptions::silence each of these parts has more examples, as if they were files of a folder _silence_: pieces of
/// the recordings in _background_noise_, from the part's own tenths (kTrainedTenths), times a volume drawn from 0 to 1.
/// They depend on the recordings alone. Files in no folder whose names all have the word "normal" or "anomaly", as
/// those of DCASE's second task do, are of these classes, 0 and 1. Others have no answers. Throws Error for a list of
/// which no file is there, for a file without a class beside others that have one, for silence without lists or noise
/// unless LoadOptions::whole_as_test is set, and in one line for files that cannot be read: it counts them and names
/// the first. Files that are no sounds are counted in a note. With LoadOptions::skip_broken these are among
/// FileRemarks::skipped.
FoundParts read_sounds(const std::filesystem::path& root, const std::map<Part, std::filesystem::path>& folders,
                       const LoadOptions& options);

}  // namespace miniqat::datasets
