#include "datasets/parts.h"

#include <algorithm>
#include <utility>

#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "datasets/arrays/array_numbers.h"
#include "datasets/class_counts.h"
#include "datasets/class_names.h"
#include "datasets/groups.h"
#include "datasets/hold_out.h"
#include "datasets/pictures/resize.h"
#include "datasets/standardise.h"

namespace miniqat::datasets {
namespace {

namespace fs = std::filesystem;

class PartsToSplits {
 public:
  PartsToSplits(const fs::path& path, FoundParts& parts, const LoadOptions& options)
      : path_(path), parts_(parts), options_(options) {}

  Splits splits() {
    // Before the classes: of another network nothing fits.
    if (options_.accept) options_.accept(fitted_shape(parts_.found.begin()->second.images));
    take_labels_as_targets();
    number_classes();
    for (const auto& [part, data] : parts_.found) sets_[part] = dataset(data);
    for (auto& [part, set] : sets_) set.check();
    set_classes();
    require_same_answers();
    require_same_shapes();
    note_levels();
    set_groups();
    Splits splits = without_skipped(parted());
    note_test_groups(splits);
    standardise(splits, options_.numbers);
    const auto remarks = std::make_shared<const FileRemarks>(std::move(parts_.remarks));
    for (Dataset* set : {&splits.train, &splits.test, splits.validation ? &*splits.validation : nullptr})
      if (set != nullptr && set->images.defined()) set->remarks = remarks;
    return splits;
  }

 private:
  const Dataset& first() const { return sets_.begin()->second; }

  /// Tables of pictures and IDX files know of labels alone.
  void take_labels_as_targets() {
    if (options_.numbers.answers != Answers::kTargets || !parts_.class_names.empty()) return;
    for (auto& [part, data] : parts_.found)
      if (data.labels.defined()) data.targets = targets_of(std::exchange(data.labels, Tensor()));
  }

  /// Classes by name get their numbers: those of the network if there is one, else in their order.
  void number_classes() {
    std::vector<std::string> known =
        options_.class_names.empty() ? numbers_below(options_.least_classes) : options_.class_names;
    std::string unknown_to = "which the network does not know";
    // Classes that the files announce, without a training example: what has one of them could only be answered wrongly.
    std::set<std::string> unlearnt;
    for (auto& [part, data] : parts_.found) {
      if (data.classes.empty()) continue;
      if (known.empty()) {
        std::set<std::string> names(data.classes.begin(), data.classes.end());
        names.erase("");
        if (!names.empty() && !options_.unlearnt_classes)
          for (const std::string& name : parts_.class_names)
            if (!names.contains(name)) unlearnt.insert(name);
        names.insert(parts_.class_names.begin(), parts_.class_names.end());
        known.assign(names.begin(), names.end());
        sort_classes(known);
        unknown_to = concat("which the ", title_of(part), " part has not");
      }
      parts_.class_names = known;
      data.labels = numbered(data.classes, known, unlearnt, part, unknown_to);
    }
  }

  Tensor numbered(const std::vector<std::string>& classes, const std::vector<std::string>& known,
                  const std::set<std::string>& unlearnt, Part part, const std::string& unknown_to) const {
    std::map<std::string_view, std::int32_t> numbers;
    for (const std::string& name : known) numbers.emplace(name, static_cast<std::int32_t>(numbers.size()));
    std::erase_if(numbers, [&](const auto& one) { return unlearnt.contains(std::string(one.first)); });
    std::vector<std::int32_t> labels;
    for (const std::string& name : classes) {
      if (name.empty()) {
        labels.push_back(-1);
        continue;
      }
      const auto found = numbers.find(name);
      if (found == numbers.end()) {
        std::vector<std::string> others = known;
        std::erase_if(others, [&](const std::string& one) { return unlearnt.contains(one); });
        fail(path_, ": the ", title_of(part), " part has the class ", quote(name), ", ", unknown_to,
             "; its classes are ", shortened(joined(others)));
      }
      labels.push_back(found->second);
    }
    return Tensor::from<std::int32_t>({std::ssize(labels)}, labels);
  }

  /// The shape of an example of these, in the size that the options ask for.
  Shape fitted_shape(const Tensor& images) const {
    const Shape whole =
        images.dtype() == DType::kUInt8 ? shape_fitted(images.shape(), options_.pictures) : images.shape();
    return Shape(whole.extents().subspan(1));
  }

  Dataset dataset(const PartData& data) const {
    const PictureOptions& options = options_.pictures;
    Dataset set{.name = path_.string(),
                .images = data.images,
                .labels = data.labels,
                .targets = data.targets,
                .target_names = data.targets.defined() ? parts_.target_names : std::vector<std::string>(),
                .input_names = parts_.input_names,
                .recordings = data.recordings,
                .sounds = data.sounds,
                .files = data.files};
    if (!set.images.defined() || !set.has_pictures()) return set;
    set.images = fit_images(set.images, options);
    set.scale = scale_of(options);
    set.zero_point = zero_point_of(options);
    return set;
  }

  void set_classes() {
    int classes = std::max(static_cast<int>(parts_.class_names.size()), options_.least_classes);
    bool any = false;
    for (const auto& [part, set] : sets_) {
      if (!set.has_classes()) continue;
      any = true;
      for (const std::int32_t label : set.labels.values<std::int32_t>()) classes = std::max(classes, label + 1);
    }
    for (auto& [part, set] : sets_) set.classes = any ? classes : 0;
    if (!any) return;
    if (!parts_.are_folders && !parts_.class_names.empty() && classes > std::ssize(parts_.class_names))
      fail(path_, " has names for ", counted(parts_.class_names.size(), "class"), ", and a label ", classes - 1);
    if (classes < 2) fail("data set ", path_, " has one class only; there is nothing to tell apart");
    // Arrays have numbers only; the network may know what they mean.
    const std::vector<std::string>& names = parts_.class_names.empty() ? options_.class_names : parts_.class_names;
    for (auto& [part, set] : sets_)
      if (std::ssize(names) == classes) set.class_names = names;
  }

  /// A part may have no answers: there is nothing wrong with parts to learn from, and none to ask.
  void require_same_answers() const {
    const auto columns = [](const Dataset& set) { return set.targets.defined() ? set.targets.shape()[1] : 0; };
    const std::pair<const Part, Dataset>* answered = nullptr;
    for (const auto& one : sets_) {
      if (!one.second.has_classes() && !one.second.targets.defined()) continue;
      if (answered == nullptr) answered = &one;
      if (answered->second.has_classes() != one.second.has_classes() ||
          columns(answered->second) != columns(one.second))
        fail(path_, ": the ", title_of(answered->first), " part has ", answers_of(answered->second), ", the ",
             title_of(one.first), " part ", answers_of(one.second));
    }
  }

  static std::string answers_of(const Dataset& set) {
    if (set.has_classes()) return "classes";
    const std::int64_t columns = set.targets.shape()[1];
    const bool are_labels =
        std::ranges::all_of(set.targets.values<float>(), [](float value) { return value == 0 || value == 1; });
    return are_labels ? counted(columns, "label") : counted(columns, "number") + " to predict";
  }

  void require_same_shapes() const {
    const auto& [first_part, first_set] = *sets_.begin();
    for (const auto& [part, set] : sets_) {
      if (set.example_shape() == first_set.example_shape()) continue;
      if (set.has_pictures())
        fail(path_, ": the ", title_of(first_part), " pictures are ", first_set.example_shape(), ", others ",
             set.example_shape(), "; --image-size HxW brings all pictures to one size");
      fail(path_, ": the ", title_of(first_part), " examples are ", first_set.example_shape(), ", the ", title_of(part),
           " examples ", set.example_shape());
    }
  }

  void note_levels() {
    for (const auto& [part, set] : sets_)
      if (std::string note = note_on_levels(set, title_of(part)); !note.empty() && !parts_.levels_said.contains(part))
        parts_.remarks.notes.push_back(std::move(note));
  }

  void set_groups() {
    const NumberOptions& options = options_.numbers;
    if (options.group_by.empty() && !options.test_groups.empty())
      fail(path_, ": there are test groups, but nothing says what a group is (--group-by)");
    if (options.group_by.empty()) {
      if (options_.sounds && options_.sounds->frames > 0) group_recordings();
      return;
    }
    try {
      find_groups();
    } catch (const Error&) {
      // Other data than a run's own may have none.
      if (!options_.whole_as_test) throw;
    }
  }

  /// Windows of a recording that stand in two parts would answer for each other.
  void group_recordings() {
    std::vector<GroupedPart> grouped;
    for (auto& [part, data] : parts_.found) {
      if (!data.recordings.defined()) return;
      const std::span<const std::int32_t> recordings = data.recordings.values<std::int32_t>();
      for (std::size_t i = 0; i < recordings.size(); i += 2)
        data.groups.push_back(data.files ? data.files->at(i / 2) : concat(title_of(part), " ", recordings[i]));
      grouped.push_back({&sets_.at(part), &data.groups});
    }
    number_groups(grouped);
  }

  void find_groups() {
    std::vector<GroupedPart> grouped;
    for (auto& [part, data] : parts_.found) {
      if (data.groups.empty() && !data.files)
        fail(path_, ": examples are grouped by a column of a table or by the paths of their files; here are neither");
      if (data.groups.empty()) data.groups = groups_of_files(*data.files, options_.numbers.group_by);
      grouped.push_back({&sets_.at(part), &data.groups});
    }
    number_groups(grouped);
  }

  void note_test_groups(const Splits& splits) {
    if (!splits.test.groups.defined() || options_.whole_as_test || options_.numbers.group_by.empty()) return;
    const std::vector<std::string>& names = splits.test.group_names;
    std::set<std::string> held;
    for (const std::int32_t group : splits.test.groups.values<std::int32_t>())
      held.insert(names[static_cast<std::size_t>(group)]);
    parts_.remarks.notes.push_back(concat("note: ", path_.string(), ": ", counted(names.size(), "group"),
                                          "; the test part has ", shortened(printable(joined(held)))));
  }

  /// Only now, so that a file that breaks moves no other from part to part.
  Splits without_skipped(Splits splits) const {
    if (parts_.remarks.skipped.empty()) return splits;
    std::set<std::string> skipped;
    for (const SkippedFile& file : parts_.remarks.skipped) skipped.insert(file.file);
    const auto drop = [&](Dataset& set, const char* title) {
      if (!set.images.defined()) return;
      std::vector<std::int64_t> kept;
      for (std::int64_t i = 0; i < set.size(); ++i)
        if (!skipped.contains(set.file_of(i))) kept.push_back(i);
      if (kept.empty()) fail(path_, ": none of the ", title, " pictures can be read");
      if (std::ssize(kept) < set.size()) set = examples_at(set, kept);
    };
    drop(splits.train, "training");
    drop(splits.test, "test");
    if (splits.validation) drop(*splits.validation, "validation");
    return splits;
  }

  Splits parted() const {
    if (sets_.size() == 1 && (options_.whole_as_test || !sets_.contains(Part::kTrain)))
      return {.train = {}, .test = first()};
    if (sets_.size() == 1) return split_off_test(first(), options_.numbers.test_groups);
    if (first().groups.defined() && !options_.numbers.test_groups.empty() && !options_.whole_as_test)
      fail(path_, " has a test part of its own; test groups (--test-groups) can be chosen where there is none");
    Splits splits;
    if (sets_.contains(Part::kTrain)) splits.train = sets_.at(Part::kTrain);
    if (!sets_.contains(Part::kTest)) {
      splits.test = sets_.at(Part::kValidation);
      return splits;
    }
    splits.test = sets_.at(Part::kTest);
    if (sets_.contains(Part::kValidation)) splits.validation = sets_.at(Part::kValidation);
    return splits;
  }

  const fs::path& path_;
  FoundParts& parts_;
  const LoadOptions& options_;
  std::map<Part, Dataset> sets_;
};

}  // namespace

Splits splits_of(const fs::path& path, FoundParts parts, const LoadOptions& options) {
  return PartsToSplits(path, parts, options).splits();
}

}  // namespace miniqat::datasets
