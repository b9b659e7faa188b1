#pragma once

#include "core/text/error.h"

namespace miniqat::datasets {

/// What a data set is read from, and what its examples are.
enum class DataKind {
  kNamedPictures,
  kPictureFolders,
  kPictureArrays,
  kArrays,
  kTables,
  kSeries,
  kRecordings,
  kSounds,
  kDrawnSounds,
};

/// In words, as several: "folders of pictures".
inline const char* words_of(DataKind kind) {
  switch (kind) {
    case DataKind::kNamedPictures:
      return "pictures of a known data set";
    case DataKind::kPictureFolders:
      return "folders of pictures";
    case DataKind::kPictureArrays:
      return "arrays or tables of pictures";
    case DataKind::kArrays:
      return "arrays of numbers";
    case DataKind::kTables:
      return "tables of numbers";
    case DataKind::kSeries:
      return ".ts files";
    case DataKind::kRecordings:
      return "folders of recordings in tables";
    case DataKind::kSounds:
      return "folders of sounds";
    case DataKind::kDrawnSounds:
      return "drawn sounds";
  }
  fail("a kind of data without words");
}

}  // namespace miniqat::datasets
