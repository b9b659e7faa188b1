// Damaged files: always a clear error or a model, never a crash.

#include <gtest/gtest.h>

#include "core/text/json.h"
#include "integer/format/model_file.h"
#include "integer/reference/engine.h"
#include "tests/fewer_cases.h"
#include "tests/integer/format/model_file_parts.h"

namespace miniqat::integer::model_file_fuzz_test {
namespace {

using Json = nlohmann::ordered_json;
using Parts = testing::ModelFileParts;
using testing::complaint_about;
using testing::mentions;
using testing::random_images;
using testing::small_model;

TEST(ModelFileFuzz, FindsEveryTruncation) {
  const std::string file = to_bytes(small_model());
  for (std::size_t size = 0; size < file.size(); ++size)
    EXPECT_TRUE(mentions(complaint_about(file.substr(0, size)), {"model.miniqat: is cut short"}));
}

TEST(ModelFileFuzz, FindsEveryFlippedBit) {
  std::string file = to_bytes(small_model());
  for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
    const auto flip = [&] { file[bit / 8] = static_cast<char>(file[bit / 8] ^ (1 << bit % 8)); };
    flip();
    ASSERT_NE(complaint_about(file), "") << "bit " << bit;
    flip();
  }
  EXPECT_EQ(complaint_about(file), "");
}

/// Any value of a JSON document.
Json& random_place(Random& random, Json& json) {
  Json* place = &json;
  while (place->is_structured() && !place->empty() && random.below(6) != 0) {
    auto item = place->begin();
    std::advance(item, random.below(place->size()));
    place = &*item;
  }
  return *place;
}

void mutate(Random& random, Json& json) {
  const Json values[] = {0,
                         1,
                         -1,
                         2,
                         7,
                         255,
                         256,
                         65536,
                         INT32_MAX,
                         INT32_MIN,
                         INT64_MAX,
                         INT64_MIN,
                         UINT64_MAX,
                         1e-9,
                         1e300,
                         true,
                         nullptr,
                         "input",
                         "",
                         "uint8",
                         Json::array(),
                         Json::object(),
                         {1, 1},
                         {{0, 0}, {1, 1}}};
  Json& place = random_place(random, json);
  const Json other = random_place(random, json);
  switch (random.below(4)) {
    case 0:
      place = other;
      break;
    case 1:
      if (place.is_array() && !place.empty()) place.erase(place.begin());
      break;
    case 2:
      if (place.is_array()) place.push_back(other);
      if (place.is_object()) place["shift"] = other;
      break;
    default:
      place = values[random.below(std::size(values))];
  }
}

void mutate(Random& random, std::string& bytes) {
  if (bytes.empty()) return;
  char& byte = bytes[random.below(bytes.size())];
  byte = random.below(2) == 0 ? static_cast<char>(byte ^ (1 << random.below(8))) : static_cast<char>(random.below(256));
}

/// Of damage with a checksum that fits, most is refused; the rest makes another model, which is as good as any.
TEST(ModelFileFuzz, SurvivesDamageThatTheChecksumHides) {
  const int rounds = static_cast<int>(testing::fewer(800, 4));
  int refused = 0, accepted = 0;
  Random random(99);
  for (int round = 0; round < rounds; ++round) {
    const Model model = small_model(round % 8);
    Parts file(to_bytes(model));
    const std::string header = file.header;
    for (std::uint64_t count = 1 + random.below(3); count > 0; --count) {
      if (random.below(3) == 0) {
        mutate(random, file.blob);
      } else if (random.below(3) == 0) {
        mutate(random, file.header);
      } else if (Json json = Json::parse(file.header, nullptr, false); !json.is_discarded()) {
        mutate(random, json);
        file.header = json.dump();
      }
    }
    const std::string bytes = file.file();
    if (!complaint_about(bytes).empty()) {
      ++refused;
      continue;
    }
    ++accepted;
    const Model read = from_bytes(bytes, "bytes");
    const std::string again = to_bytes(read);
    ASSERT_EQ(to_bytes(from_bytes(again, "again")), again) << "round " << round;
    // Windows that a header sets are allowed to take their time.
    if (file.header == header) reference::run(read, random_images(random, read, 1));
  }
  EXPECT_GT(refused, rounds / 2);
  EXPECT_GT(accepted, rounds / 20);
}

}  // namespace
}  // namespace miniqat::integer::model_file_fuzz_test
