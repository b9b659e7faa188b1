#include "integer/format/model_file.h"

#include <zlib.h>

#include <cstring>

#include "integer/engine.h"
#include "integer/reference/engine.h"
#include "tests/fuzz/readers/reader.h"

namespace miniqat::fuzz::model_file_reader {

using namespace miniqat::integer;

namespace {

/// Sizes and checksum set right, so that what lies behind them is reached: byte 16 on of a file with "miniqat\n".
std::string repaired(std::string_view bytes) {
  constexpr std::size_t kPrefix = 24, kChecksum = 4;
  std::string file(bytes);
  if (file.size() < kPrefix + kChecksum || !file.starts_with("miniqat\n")) return file;
  const std::uint64_t room = file.size() - kPrefix - kChecksum;
  std::uint32_t header = 0;
  std::memcpy(&header, file.data() + 12, sizeof header);
  header = static_cast<std::uint32_t>(std::min<std::uint64_t>(header, room));
  const std::uint64_t blob = room - header;
  std::memcpy(file.data() + 12, &header, sizeof header);
  std::memcpy(file.data() + 16, &blob, sizeof blob);
  const auto checksum =
      static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(file.data()), file.size() - kChecksum));
  std::memcpy(file.data() + file.size() - kChecksum, &checksum, sizeof checksum);
  return file;
}

/// The engines agree on a picture of zeros and ones, of small models.
void run(const Model& model) {
  std::int64_t work = 0;
  for (const TensorInfo& tensor : model.tensors) work += tensor.shape.elements();
  for (const Operation& operation : model.operations)
    if (const auto* layer = std::get_if<Layer>(&operation.action))
      work += layer->filter.elements() * model.output_of(operation).shape.elements();
  if (work > 20000) return;
  const Shape& shape = model.tensor(model.input).shape;
  std::vector<std::int64_t> extents = shape.to_vector();
  extents.insert(extents.begin(), 1);
  Tensor image(Shape(std::span<const std::int64_t>(extents)), DType::kUInt8);
  for (std::int64_t i = 0; i < image.elements(); ++i) image.data<std::uint8_t>()[i] = i % 3 == 0;
  Engine engine(model);
  const std::vector<Tensor> fast = engine.run_all(image), plain = reference::run(model, image);
  for (std::size_t i = 0; i < plain.size(); ++i)
    fuzz::require(std::memcmp(fast[i].raw(), plain[i].raw(), plain[i].bytes()) == 0, "the engines agree");
}

void check(std::string_view bytes) {
  Model model;
  if (!fuzz::accepts([&] { model = from_bytes(bytes, "model"); })) return;
  fuzz::require(to_bytes(model) == bytes || to_bytes(from_bytes(to_bytes(model), "copy")) == to_bytes(model),
                "a model is read as it was written");
  fuzz::accepts([&] { run(model); });
}

}  // namespace

MINIQAT_READER(model_file)(const std::uint8_t* data, std::size_t size) {
  check(fuzz::text_of(data, size));
  check(repaired(fuzz::text_of(data, size)));
  return 0;
}

}  // namespace miniqat::fuzz::model_file_reader
