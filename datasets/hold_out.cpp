#include "datasets/hold_out.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "core/tensors/random.h"
#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "datasets/class_counts.h"
#include "datasets/groups.h"
#include "datasets/rows.h"

namespace miniqat::datasets {

std::span<const std::string_view> names_of(HoldOut) {
  static constexpr std::string_view kNames[] = {"class", "stride"};
  return kNames;
}

namespace {

/// How many of n examples fall to each class, in proportion to its examples: whole shares first, then one more for the
/// greatest remainders, the lower class first. A class keeps an example for training as long as others have some to
/// give.
std::vector<std::int64_t> shares_of(const std::vector<std::int64_t>& counts, std::int64_t n) {
  std::int64_t size = 0, given = 0;
  for (const std::int64_t count : counts) size += count;
  std::vector<std::int64_t> shares, order(counts.size());
  for (const std::int64_t count : counts) {
    shares.push_back(count * n / size);
    given += shares.back();
  }
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::int64_t label) { return counts[label] * n % size; });
  for (const std::int64_t kept : {1, 0})
    for (bool took = true; took && given < n;) {
      took = false;
      for (const std::int64_t label : order) {
        if (given == n || shares[label] + kept >= counts[label]) continue;
        ++shares[label];
        ++given;
        took = true;
      }
    }
  return shares;
}

/// The class of an example; 0 for all where there are none.
std::size_t class_of(const Dataset& all, std::int64_t example) {
  return all.has_classes() ? static_cast<std::size_t>(all.labels.values<std::int32_t>()[example]) : 0;
}

std::uint64_t hash_of(const Dataset& all, std::int64_t example) {
  static const std::uint64_t key = hash_text("datasets/hold_out");
  const std::span<const std::byte> bytes = row_of(all.images, example);
  return mix(key, hash_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
}

/// Whether each example is held out.
std::vector<bool> drawn_by_class(const Dataset& all, std::int64_t n) {
  const std::vector<std::int64_t> shares =
      shares_of(all.has_classes() ? class_counts(all) : std::vector{all.size()}, n);
  std::vector<std::vector<std::pair<std::uint64_t, std::int64_t>>> by_class(shares.size());
  for (std::int64_t example = 0; example < all.size(); ++example)
    by_class[class_of(all, example)].emplace_back(hash_of(all, example), example);
  std::vector<bool> drawn(static_cast<std::size_t>(all.size()));
  for (std::size_t label = 0; label < shares.size(); ++label) {
    std::ranges::sort(by_class[label]);
    for (std::int64_t i = 0; i < shares[label]; ++i) drawn[static_cast<std::size_t>(by_class[label][i].second)] = true;
  }
  return drawn;
}

/// Groups with their hashes, which do not depend on an order, and numbers of examples.
struct HashedGroup {
  std::uint64_t hash = 0;
  std::int64_t group = 0;
  std::int64_t size = 0;
};

std::vector<HashedGroup> hashed_groups(const Dataset& all, std::size_t count) {
  std::vector<HashedGroup> groups(count);
  for (std::int64_t example = 0; example < all.size(); ++example) {
    HashedGroup& one = groups[static_cast<std::size_t>(all.groups.data<std::int32_t>()[example])];
    one.hash += hash_of(all, example);
    ++one.size;
  }
  for (std::size_t group = 0; group < count; ++group) groups[group].group = static_cast<std::int64_t>(group);
  std::erase_if(groups, [](const HashedGroup& one) { return one.size == 0; });
  std::ranges::sort(groups, {}, [](const HashedGroup& one) { return std::pair(one.hash, one.group); });
  return groups;
}

/// Whole groups in the order of their hashes, of each class as many as come nearest to its share of n; of classes that
/// stand in one group together, of all. One group at least, and not all.
std::vector<bool> drawn_by_group(const Dataset& all, std::int64_t n) {
  const std::vector<std::int32_t> classes = classes_of_groups(all);
  const std::vector<HashedGroup> groups = hashed_groups(all, classes.size());
  if (groups.size() < 2)
    fail("data set ", all.name, ": cannot hold examples out of training: all are of one group, which stays together");
  std::map<std::int32_t, std::int64_t> sizes, taken;
  for (const HashedGroup& one : groups) sizes[classes[one.group]] += one.size;
  std::set<std::int64_t> drawn, passed;
  for (const HashedGroup& one : groups) {
    const std::int32_t label = classes[one.group];
    const double share = static_cast<double>(sizes[label]) * n / all.size(), before = taken[label];
    const bool nearer = std::abs(before + one.size - share) < std::abs(before - share);
    // A class keeps a group for training.
    if (passed.contains(label) || !nearer || before + one.size == sizes[label])
      passed.insert(label);
    else
      drawn.insert(one.group), taken[label] += one.size;
  }
  if (drawn.empty()) drawn.insert(groups.front().group);
  std::vector<bool> held;
  for (const std::int32_t group : all.groups.values<std::int32_t>()) held.push_back(drawn.contains(group));
  return held;
}

std::vector<bool> drawn_by_stride(std::int64_t size, std::int64_t n) {
  std::vector<bool> drawn(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < n; ++i) drawn[static_cast<std::size_t>(i * size / n)] = true;
  return drawn;
}

}  // namespace

Splits hold_out(const Splits& splits, std::int64_t n, HoldOut method) {
  const std::int64_t size = splits.train.size();
  if (n < 0 || n >= size)
    fail("cannot hold ", counted(n, "example"), " of ", size, " out of training: 0 to ", size - 1, " can be");
  if (n == 0) return splits;
  const std::vector<bool> drawn = splits.train.groups.defined() ? drawn_by_group(splits.train, n)
                                  : method == HoldOut::kByClass ? drawn_by_class(splits.train, n)
                                                                : drawn_by_stride(size, n);
  std::vector<std::int64_t> held, left;
  for (std::int64_t example = 0; example < size; ++example)
    (drawn[static_cast<std::size_t>(example)] ? held : left).push_back(example);
  return {.train = examples_at(splits.train, left), .test = splits.test, .validation = examples_at(splits.train, held)};
}

std::string classes_too_small(const Dataset& held, const Dataset& left) {
  if (!held.has_classes()) return "";
  const std::vector<std::int64_t> in_part = class_counts(held), in_training = class_counts(left);
  std::vector<std::string> missing;
  for (std::size_t label = 0; label < in_part.size(); ++label)
    if (in_part[label] == 0 && in_training[label] > 0)
      missing.push_back(concat(printable(left.class_name(static_cast<std::int64_t>(label))), " (",
                               counted(in_training[label], concat("training ", left.noun())), ")"));
  return shortened(joined(missing));
}

Splits split_off_test(const Dataset& all, const std::vector<std::string>& test_groups) {
  if (all.groups.defined()) return split_off_groups(all, test_groups);
  constexpr std::int64_t kEvery = 6;
  std::vector<std::int64_t> seen(all.has_classes() ? all.classes : 1), held, left;
  for (std::int64_t example = 0; example < all.size(); ++example)
    (++seen[class_of(all, example)] % kEvery == 0 ? held : left).push_back(example);
  if (held.empty())
    fail("data set ", all.name, ": ", all.has_classes() ? "each class has" : "there are", " fewer than ", kEvery, " ",
         all.noun(), "s, too few to hold test ", all.noun(), "s out; add ", all.noun(), "s or a test/ folder");
  return {.train = examples_at(all, left), .test = examples_at(all, held)};
}

}  // namespace miniqat::datasets
