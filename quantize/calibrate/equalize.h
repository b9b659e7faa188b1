#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/engine/session.h"
#include "quantize/calibrate/channel_pairs.h"

namespace miniqat::quantize {

/// The result for two layers in a row.
struct EqualizedPair {
  std::string first;
  std::string second;
  /// s of each channel: the first layer's output is divided by it.
  std::vector<double> scales;
  /// Channels whose s is 1 because they reach 6 before a Relu6, because one of their ranges is 0, or whose s is larger
  /// than the formula's to keep the tensor's range.
  std::int64_t clipped = 0;
  std::int64_t empty = 0;
  std::int64_t limited = 0;
};

struct Equalization {
  std::vector<EqualizedPair> pairs;
  std::vector<LeftOutLayer> left_out;
  /// Over all pairs, until no scale changed.
  int sweeps = 0;

  /// For people: a line for each pair and each layer left out.
  std::string text() const;
};

/// Cross-layer equalization (Nagel et al. 2019, "Data-Free Quantization Through Weight Equalization and Bias
/// Correction", section 4.1). It gives the weights of channel i of one layer's output the same range as the next
/// layer's weights on it. Then one range for the whole tensor suits every channel. With r1 and r2 the largest magnitude
/// of the folded weights (w gamma / sigma) of channel i,
///   s_i = sqrt(r1_i r2_i) / r2_i,   W1_i / s_i,   W2_i s_i,
/// over all pairs again and again until the scales stay. The network's function stays the same, and so does its graph:
/// behind a batch norm gamma and beta are divided by s, otherwise weights and bias.
///
/// Unlike the paper, no Relu6 becomes a Relu, and no activation gets a larger range: with the largest value m_i that
/// the batches bring to channel i, and their maximum m over all channels (of a Relu6: 6 at most), s_i >= m_i / m. A
/// channel that reaches 6 before a Relu6 keeps s_i = 1. So the function is the same wherever no channel exceeds m_i.
///
///   Equalizer equalizer(session);
///   for (...) equalizer.observe({{images, batch}});
///   equalizer.finish();
class Equalizer {
 public:
  /// `session` holds a float graph, which must stay as it is, and its variables. Layers outside of the scope stay.
  explicit Equalizer(Session& session, const std::string& scope = "");

  /// Runs one batch. Throws Error where a value is not finite.
  void observe(const Feeds& feeds);

  /// Sets the session's variables. Throws Error when no batch was seen, and for folded weights that are not finite.
  Equalization finish();

  /// The names of those that finish() changes.
  std::vector<std::string> variables() const;

 private:
  Session& session_;
  const PairSearch search_;
  /// For each pair, the largest value of each channel, of magnitudes where no activation follows.
  std::vector<std::vector<double>> peaks_;
  std::int64_t batches_ = 0;
};

}  // namespace miniqat::quantize
