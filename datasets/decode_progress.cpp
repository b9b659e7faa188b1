#include "datasets/decode_progress.h"

#include <utility>

namespace miniqat::datasets {
namespace {

DecodeProgress decoding_listener;

}  // namespace

void tell_of_decoding(DecodeProgress listener) { decoding_listener = std::move(listener); }

void decoding_went_on(std::int64_t done, std::int64_t all) {
  if (decoding_listener) decoding_listener(done, all);
}

}  // namespace miniqat::datasets
