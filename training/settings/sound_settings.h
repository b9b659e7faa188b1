#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "datasets/sound/features.h"
#include "datasets/sound/variation.h"
#include "training/settings/settings.h"

namespace miniqat::training {

/// How sounds become examples, and how training varies them: a part of TrainSettings. None: what the data set has, or
/// --frames.
struct SoundSettings {
  datasets::Features features = datasets::Features::kAuto;
  std::optional<std::int64_t> frames;
  std::optional<std::int64_t> sample_rate;
  std::optional<double> seconds;
  std::optional<double> window_ms;
  std::optional<double> stride_ms;
  std::optional<std::int64_t> bands;
  std::optional<std::int64_t> coefficients;
  std::optional<double> low_hz;
  std::optional<double> high_hz;
  datasets::MelScale mel_scale = datasets::MelScale::kHtk;
  std::int64_t silence = 0;
  std::optional<double> snr_db;
  double shift_ms = 0;
  double gain_db = 0;
  std::string noise;
  double noise_db = datasets::SoundVariation().noise_db;

  /// The front end of a data set's sounds: as the one with that name has it or, with `frames`, an anomaly detector's,
  /// but for what is set. Throws UsageError for options that are out of range or do not fit one another.
  datasets::SoundOptions options(const std::string& dataset) const;
  datasets::SoundVariation variation() const;
  /// Throws UsageError for the first setting that is beyond its limits or has no effect, and what options() throws.
  void check(const std::string& dataset) const;
  /// Sets all that is none.
  void resolve(const std::string& dataset);

  static const auto& table() {
    using S = SoundSettings;
    static const std::tuple kTable{
        Setting("features", &S::features,
                "sounds: raw samples, log-mel bands, or mfcc, made of these; auto: mfcc, or log-mel with --frames"),
        Setting(
            "frames", &S::frames,
            "sounds: this many steps of log-mel or mfcc in a row are an example, from each step of a recording on, and anomalies are whole recordings; 0: a recording is one example; default: 0, of synthetic-hums 5"),
        Setting("sample_rate", &S::sample_rate, "sounds: samples a second; other rates are resampled; default: 16000"),
        Setting(
            "seconds", &S::seconds,
            "sounds: the length of an example; longer ones lose both ends, shorter ones get silence there; default: 1. With --frames the middle of a recording that is used; default: 0, all of it"),
        Setting("window_ms", &S::window_ms,
                "sounds: milliseconds that a step of log-mel or mfcc looks at; default: 40; with --frames: 64"),
        Setting("stride_ms", &S::stride_ms, "sounds: milliseconds between two steps; default: 20; with --frames: 32"),
        Setting("bands", &S::bands,
                "sounds: mel bands between --low-hz and --high-hz; default: 40; with --frames: 128"),
        Setting("coefficients", &S::coefficients, "sounds: numbers of a step of mfcc; default: 10"),
        Setting("low_hz", &S::low_hz, "sounds: where the lowest band begins; default: 20; with --frames: 0"),
        Setting("high_hz", &S::high_hz,
                "sounds: where the highest band ends; default: 4000; with --frames: half of --sample-rate"),
        Setting("mel_scale", &S::mel_scale,
                "sounds: the scale of the bands, HTK's, or Slaney's with bands of equal area, as librosa has it"),
        Setting(
            "silence", &S::silence,
            "sounds in the layout of Speech Commands: so many training examples of a class _silence_, drawn pieces of _background_noise_, and as large a share of the other parts",
            within(0, 1000000)),
        Setting(
            "snr_db", &S::snr_db,
            "synthetic-sounds, synthetic-hums: decibels of a sound above the noise that is drawn with it; default: -5, of hums 15",
            within(-100, 100)),
        Setting("shift_ms", &S::shift_ms,
                "sounds: training examples shifted in time by up to so many milliseconds, anew in each batch",
                within(0, 3600000)),
        Setting("gain_db", &S::gain_db, "sounds: training examples louder or softer by up to so many decibels",
                within(0, 60)),
        Setting("noise", &S::noise,
                "sounds: a folder of sounds; training examples get a piece of one of them as background noise"),
        Setting("noise_db", &S::noise_db,
                "with --noise: decibels of an example above the noise, from here to 20 more, drawn evenly",
                within(-100, 100))};
    return kTable;
  }
  template <class Visitor>
  static void visit(Visitor&& visitor) {
    visit_table(table(), visitor);
  }
};

/// Whether `dataset` is the name of a data set whose sounds the program draws.
bool draws_sounds(const std::string& dataset);

}  // namespace miniqat::training
