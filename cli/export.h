#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "integer/model.h"
#include "training/run/run_source.h"

namespace miniqat::cli {

/// The command line of `export`; "" is what was not given.
struct ExportArguments {
  std::string run;
  /// A graph JSON with a checkpoint, or an ONNX model, instead of a run.
  std::string graph;
  std::string image_size;
  std::string format;
  std::string out;
  std::string checkpoint;
  std::string dataset;
  std::string data_dir;
  bool skip_broken = false;
  std::string prefix;
  std::optional<float> input_scale;
  std::int32_t input_zero_point = 0;
  bool float_io = false;
  bool int8 = false;
  bool int4 = false;
  bool unpacked = false;
  std::optional<std::int64_t> opset;
  std::optional<std::int64_t> test_vectors;
  /// Further runs, behind the run on the slider of a page.
  std::vector<std::string> compare;
};

/// The input of a format: a run as integers. `bytes` is the grid of the pictures' bytes.
struct ExportedRun {
  const ExportArguments& arguments;
  const training::RunSource& run;
  const integer::Model& model;
  const integer::Grid& bytes;
};

struct OutFile {
  std::filesystem::path path;
  std::string bytes;
};
/// The files of a format, and what there is to say about them: whole lines.
struct OutFiles {
  std::vector<OutFile> files;
  std::string words = {};
  /// Whether the words say what the input is.
  bool has_input = false;
  /// How much less than the model's the file's integers of activations are.
  int shift = 0;
};

inline constexpr std::int64_t kTestVectorsOfC = 4;

/// `export --format c` (exporters/c/source.h): a source and, beside it, the header. Of a run on sounds the source has
/// their front end. Test vectors are the first test examples of the run's data set or, where it is not at hand, random
/// ones. Throws UsageError for a name that is none of C, and Error for data that were asked for and are not there.
OutFiles c_files(const ExportedRun& exported);
/// What the names in a C file begin with.
std::string c_prefix_of(const ExportArguments& arguments);

inline constexpr std::int64_t kPicturesOfHtml = 10;

/// `export --format html` (exporters/html/html.h): test pictures are on the page, at most kPicturesOfHtml or
/// --test-vectors, of every class first one, then another. Without the run's data set there are none, which a note on
/// stderr says. Throws what exporters::html() throws, and Error for a run that is missing, is none of integers or does
/// not fit, or for a data set that was asked for and is not there.
OutFiles html_file(const ExportedRun& exported);

struct FloatNetwork {
  /// The ONNX file (exporters/onnx/onnx_float.h).
  std::string bytes;
  std::string name;
  /// For print_notes(): about an unfinished run, and what the network does otherwise than an ONNX model it comes from.
  std::vector<std::string> notes = {};
  /// What its numbers are: whole lines.
  std::string words = {};
};

/// `export --format onnx-float`. Throws UsageError for a graph JSON without a checkpoint or with a size, and Error for
/// files that cannot be read, variables that do not fit, and what the format does not hold.
FloatNetwork float_network(const ExportArguments& arguments);

}  // namespace miniqat::cli
