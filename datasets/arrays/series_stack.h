#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/tensors/tensor.h"
#include "core/text/error.h"

namespace miniqat::datasets {

/// Series, one after another, which become [n, steps, channels].
class SeriesStack {
 public:
  /// `values` are [steps, channels]; `place` says in errors whose they are. Throws Error for another number of channels
  /// than that of the first one.
  void add(std::vector<float> values, std::int64_t channels, std::string place) {
    if (series_.empty()) channels_ = channels;
    if (channels != channels_)
      fail(place, " has ", counted(channels, "channel"), ", ", series_.front().place, " has ", channels_);
    series_.push_back({std::move(values), std::move(place)});
  }

  /// Throws Error that names two series of different lengths. With `pad_to` shorter ones are filled up with NaN, and
  /// one that is longer is an error.
  Tensor stacked(std::int64_t pad_to) const {
    const auto steps = [&](const Series& one) { return std::ssize(one.values) / channels_; };
    const Series& longest = *std::ranges::max_element(series_, {}, steps);
    const std::int64_t wanted = pad_to > 0 ? pad_to : steps(longest);
    if (steps(longest) > wanted)
      fail(longest.place, " has ", counted(steps(longest), "step"), ", more than the ", wanted,
           " that series are filled up to");
    for (const Series& one : series_)
      if (pad_to == 0 && steps(one) != wanted)
        fail(one.place, " has ", counted(steps(one), "step"), ", ", longest.place, " has ", wanted,
             "; shorter series can be filled up (--pad-to ", wanted, ")");
    Tensor all(Shape{std::ssize(series_), wanted, channels_});
    std::ranges::fill(all.values<float>(), NAN);
    for (std::size_t i = 0; i < series_.size(); ++i)
      std::ranges::copy(series_[i].values, all.data<float>() + static_cast<std::int64_t>(i) * wanted * channels_);
    return all;
  }

 private:
  struct Series {
    std::vector<float> values;
    std::string place;
  };

  std::int64_t channels_ = 0;
  std::vector<Series> series_;
};

}  // namespace miniqat::datasets
