#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/text/error.h"
#include "quantize/range_kind.h"
#include "training/settings/train_settings.h"
#include "training/settings/usage_error.h"

namespace miniqat::training {

/// To be called once the settings that somebody chose (TrainSettings::given) are in place: epochs replace steps that
/// nobody chose. Throws UsageError that names both for a setting that would have no effect beside another one or beside
/// what the settings say already.
void settle_given(TrainSettings& settings);

/// Throws UsageError naming the first setting that is out of range, unknown models and data sets included.
void check(const TrainSettings& settings);

/// Settles what is left open: the folder of the data, the number of threads, the augmentation, the learning rate. A
/// run's config.json tells what it did, not what it was asked.
void resolve(TrainSettings& settings);

/// Takes the batch size from a graph file, which fixes it, or from an ONNX model that does; one that takes a
/// single picture keeps that of `settings`. Returns a note on an ONNX model that fixes its batch, else "". Throws what
/// fixed_batch() throws.
std::string adopt_batch_size(TrainSettings& settings);

/// Makes settings of a float network out of those of an ONNX model that comes with its weights, for what begins from a
/// float run otherwise: its batch size, unless that is given, and what is left open. Returns adopt_batch_size()'s note.
/// Throws UsageError for a model without weights, for one without data, and what check() throws.
std::string settle_model(TrainSettings& settings, bool dataset_given, bool batch_given);

/// Refuses symmetry flags of a rewrite that are ignored beside the options that flags and a config.json gave.
/// `width_flag`: where the narrowest weights have their bits from.
template <class Flags, class Options>
void refuse_ignored_symmetry(const Flags& flags, const Options& options,
                             const std::string& width_flag = "--weight-bits") {
  if (options.symmetric && flags.was_given("symmetric_weights"))
    refuse_ignored("--symmetric-weights", "--symmetric, which includes the weights");
  if (!flags.was_given("asymmetric_weights") || !options.asymmetric_weights) return;
  if (options.symmetric || options.symmetric_weights)
    refuse_ignored("--asymmetric-weights", options.symmetric ? "--symmetric" : "--symmetric-weights");
  if (traits_of(options.weight_range()).learned || !options.bits_config.empty()) return;
  const std::string ranges = concat("--ranges ", names_of(options.ranges)[static_cast<std::size_t>(options.ranges)]);
  refuse_ignored("--asymmetric-weights", depends_on_bits(options.ranges)
                                             ? concat(ranges, " ", width_flag, " ", options.weight_bits,
                                                      ", whose weights are observed and asymmetric")
                                             : concat(ranges, ", whose weights are asymmetric"));
}

/// The file that `flag` names: throws UsageError if it ends as one of another kind. `endings` are the first and others
/// that will do; none at all, as in /dev/stdout, will do, too.
void require_ending(const std::string& flag, const std::filesystem::path& file,
                    const std::vector<std::string>& endings);

}  // namespace miniqat::training
