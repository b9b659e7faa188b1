#include "datasets/sound/sound_stack.h"

#include <algorithm>
#include <span>
#include <utility>

#include "core/text/error.h"
#include "datasets/rows.h"

namespace miniqat::datasets {
namespace {

/// The elements with these numbers; nothing of nothing.
template <class T>
std::vector<T> repeated(const std::vector<T>& all, const std::vector<std::int64_t>& numbers) {
  std::vector<T> chosen;
  for (const std::int64_t number : numbers)
    if (!all.empty()) chosen.push_back(all[static_cast<std::size_t>(number)]);
  return chosen;
}

/// In the name of the tensor with the lengths of rows, [rows] int64; their bytes follow one another, [bytes] uint8.
constexpr const char* kLengths = "_lengths";

template <class T>
void pack(const std::vector<std::vector<T>>& rows, const std::string& name, NamedTensors& tensors) {
  std::vector<std::int64_t> lengths;
  std::int64_t all = 0;
  for (const std::vector<T>& row : rows) all += lengths.emplace_back(std::ssize(row));
  Tensor bytes(Shape{all * static_cast<std::int64_t>(sizeof(T))}, DType::kUInt8);
  auto* at = static_cast<std::byte*>(bytes.raw());
  for (const std::vector<T>& row : rows) at = std::ranges::copy(std::as_bytes(std::span(row)), at).out;
  tensors.emplace(name, std::move(bytes));
  tensors.emplace(name + kLengths, Tensor::from<std::int64_t>({std::ssize(lengths)}, lengths));
}

/// Fills `rows`. Returns whether the tensors are so many rows.
template <class T>
bool unpack(const NamedTensors& tensors, const std::string& name, std::vector<std::vector<T>>& rows) {
  const auto bytes = tensors.find(name), lengths = tensors.find(name + kLengths);
  if (bytes == tensors.end() || lengths == tensors.end()) return false;
  if (lengths->second.spec() != TensorSpec{Shape{std::ssize(rows)}, DType::kInt64}) return false;
  std::span all(static_cast<const std::byte*>(bytes->second.raw()), bytes->second.bytes());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto length = static_cast<std::size_t>(lengths->second.values<std::int64_t>()[i]);
    if (length > all.size() / sizeof(T)) return false;
    rows[i].resize(length);
    std::ranges::copy(all.first(length * sizeof(T)), std::as_writable_bytes(std::span(rows[i])).begin());
    all = all.subspan(length * sizeof(T));
  }
  return all.empty();
}

constexpr const char* kFeatures = "features";
constexpr const char* kSamples = "samples";

}  // namespace

SoundStack::SoundStack(const SoundOptions& options, const SoundVariation& variation, std::int64_t recordings)
    : variation_(variation), front_end_(options), features_(static_cast<std::size_t>(recordings)) {
  if (!variation.none()) samples_.resize(features_.size());
}

void SoundStack::put(std::int64_t number, const Sound& sound) {
  const SoundOptions& how = front_end_.options();
  const std::int64_t size = std::ssize(sound.samples);
  if (size < how.example_samples() && how.frames > 0)
    fail("the recording is shorter than an example, ", counted(how.frames, "step"), ", which take ",
         counted(how.example_samples(), "sample"));
  const bool whole = how.frames > 0 && (how.seconds == 0 || size < how.samples());
  const std::vector<float> samples = fitted(sound, whole ? size : how.samples());
  std::vector<float>& features = features_[static_cast<std::size_t>(number)];
  features.resize(static_cast<std::size_t>(how.shape_of(std::ssize(samples)).elements()));
  front_end_.features(samples, features);
  if (samples_.empty()) return;
  for (const float sample : samples) samples_[static_cast<std::size_t>(number)].push_back(sample_bits(sample));
}

std::int64_t SoundStack::bytes() const {
  std::int64_t bytes = 0;
  for (const auto& row : features_) bytes += std::ssize(row) * static_cast<std::int64_t>(sizeof row[0]);
  for (const auto& row : samples_) bytes += std::ssize(row) * static_cast<std::int64_t>(sizeof row[0]);
  return bytes;
}

NamedTensors SoundStack::content() const {
  NamedTensors tensors;
  pack(features_, kFeatures, tensors);
  if (!variation_.none()) pack(samples_, kSamples, tensors);
  return tensors;
}

bool SoundStack::take(const NamedTensors& content) {
  decltype(features_) features(features_.size());
  decltype(samples_) samples(samples_.size());
  if (!unpack(content, kFeatures, features) || (!variation_.none() && !unpack(content, kSamples, samples)))
    return false;
  features_ = std::move(features);
  samples_ = std::move(samples);
  return true;
}

void SoundStack::move_to(PartData& data) {
  const Shape example = front_end_.options().example_shape();
  std::vector<std::int64_t> recordings;
  std::vector<std::int32_t> windows;
  for (std::size_t number = 0; number < features_.size(); ++number) {
    const auto steps = std::ssize(features_[number]) / example[1];
    for (std::int64_t step = 0; step < std::max<std::int64_t>(steps - example[0], 0) + 1; ++step) {
      recordings.push_back(static_cast<std::int64_t>(number));
      windows.insert(windows.end(), {static_cast<std::int32_t>(number), static_cast<std::int32_t>(step)});
    }
  }
  const auto count = std::ssize(recordings), size = example.elements();
  data.images = Tensor(Shape{count, example[0], example[1]});
  for (std::int64_t i = 0; i < count; ++i) {
    const std::vector<float>& features = features_[static_cast<std::size_t>(recordings[static_cast<std::size_t>(i)])];
    const std::int64_t step = windows[static_cast<std::size_t>(2 * i + 1)];
    if (!features.empty())
      std::copy_n(features.begin() + step * example[1], size, data.images.values<float>().subspan(i * size).begin());
  }
  data.recordings = Tensor::from<std::int32_t>({count, 2}, windows);
  data.labels = rows_at(data.labels, recordings);
  data.classes = repeated(data.classes, recordings);
  if (data.files) data.files = std::make_shared<std::vector<std::string>>(repeated(*data.files, recordings));
  if (!variation_.none())
    data.sounds = std::make_shared<const VariedSounds>(front_end_.options(), variation_, std::move(samples_));
}

}  // namespace miniqat::datasets
