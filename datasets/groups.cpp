#include "datasets/groups.h"

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "core/text/error.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"
#include "datasets/arrays/table_lines.h"
#include "datasets/class_names.h"

namespace miniqat::datasets {
namespace {

/// In the locale "C", whatever the program's is.
std::basic_regex<char> expression_of(const std::string& text) {
  std::basic_regex<char> expression;
  expression.imbue(std::locale::classic());
  try {
    expression.assign(text, std::regex_constants::ECMAScript);
  } catch (const std::regex_error&) {
    fail(quote(text), " is no regular expression (ECMAScript)");
  }
  return expression;
}

std::int32_t place_of(const std::vector<std::string>& names, const std::string& name) {
  auto found = std::ranges::find(names, name);
  // A blank behind a comma.
  if (found == names.end()) found = std::ranges::find(names, trimmed(name));
  if (found == names.end())
    fail("there is no group ", quote(name), "; the groups are ", shortened(joined(names)), did_you_mean(name, names));
  return static_cast<std::int32_t>(found - names.begin());
}

/// Calls visit(file, what the expression finds in its path), of which nothing is found in some.
template <class Visit>
void each_find(const std::vector<std::string>& files, const std::string& expression, const Visit& visit) {
  const std::basic_regex<char> finds = expression_of(expression);
  for (const std::string& file : files) {
    std::smatch found;
    std::regex_search(file, found, finds);
    visit(file, found);
  }
}

}  // namespace

std::size_t captures_of(const std::string& expression) { return expression_of(expression).mark_count(); }

std::vector<std::string> groups_of_files(const std::vector<std::string>& files, const std::string& expression) {
  std::vector<std::string> groups;
  each_find(files, expression, [&](const std::string& file, const std::smatch& found) {
    groups.push_back(found.str(found.size() > 1 ? 1 : 0));
    if (groups.back().empty()) fail(quote(expression), " finds no group in the path ", quote(file));
  });
  return groups;
}

std::vector<std::string> classes_of_files(const std::vector<std::string>& files, const std::string& expression) {
  std::vector<std::string> classes;
  each_find(files, expression, [&](const std::string& file, const std::smatch& found) {
    const auto captured = std::find_if(found.begin() + 1, found.end(), [](const auto& one) { return one.matched; });
    const bool has_captures = found.size() > 1;
    classes.push_back(captured != found.end() ? captured->str() : has_captures ? kOtherClass : found.str());
    if (classes.back().empty())
      fail(quote(expression), " finds no class in the path ", quote(file), "; with |$ at its end that is the class ",
           kOtherClass);
  });
  return classes;
}

void number_groups(std::span<const GroupedPart> parts) {
  std::map<std::string, const Dataset*> owners;
  for (const GroupedPart& one : parts)
    for (const std::string& name : *one.groups)
      if (owners.try_emplace(name, one.part).first->second != one.part)
        fail("data set ", one.part->name, ": the group ", quote(name),
             " stands in two of the parts; put all of its examples into one");
  std::vector<std::string> names;
  for (const auto& [name, part] : owners) names.push_back(name);
  sort_classes(names);
  std::map<std::string, std::int32_t> numbers;
  for (const std::string& name : names) numbers.emplace(name, static_cast<std::int32_t>(numbers.size()));
  for (const GroupedPart& one : parts) {
    std::vector<std::int32_t> groups;
    for (const std::string& name : *one.groups) groups.push_back(numbers.at(name));
    one.part->groups = Tensor::from<std::int32_t>({std::ssize(groups)}, groups);
    one.part->group_names = names;
  }
}

std::vector<std::int32_t> classes_of_groups(const Dataset& dataset) {
  const std::span<const std::int32_t> groups = dataset.groups.values<std::int32_t>();
  std::vector<std::int32_t> classes(static_cast<std::size_t>(std::ranges::max(groups)) + 1, -1);
  bool one_each = dataset.has_classes();
  for (std::size_t i = 0; i < groups.size() && one_each; ++i) {
    std::int32_t& known = classes[static_cast<std::size_t>(groups[i])];
    const std::int32_t label = dataset.labels.values<std::int32_t>()[i];
    one_each = known < 0 || known == label;
    known = label;
  }
  if (one_each) return classes;
  for (const std::int32_t group : groups) classes[static_cast<std::size_t>(group)] = 0;
  return classes;
}

Splits split_off_groups(const Dataset& all, const std::vector<std::string>& test_groups) {
  constexpr std::int64_t kEvery = 6;
  const std::vector<std::int32_t> classes = classes_of_groups(all);
  const std::vector<std::string> names =
      all.group_names.empty() ? numbers_below(static_cast<int>(classes.size())) : all.group_names;
  std::set<std::int32_t> chosen;
  for (const std::string& name : test_groups) chosen.insert(place_of(names, name));
  if (test_groups.empty()) {
    std::map<std::int32_t, std::int64_t> seen;
    for (std::size_t group = 0; group < classes.size(); ++group)
      if (classes[group] >= 0 && ++seen[classes[group]] % kEvery == 0) chosen.insert(static_cast<std::int32_t>(group));
  }
  std::vector<std::int64_t> held, left;
  for (std::int64_t i = 0; i < all.size(); ++i)
    (chosen.contains(all.groups.data<std::int32_t>()[i]) ? held : left).push_back(i);
  if (held.empty() && !test_groups.empty()) fail("data set ", all.name, ": no example is of a test group");
  if (held.empty())
    fail("data set ", all.name, ": ", counted(names.size(), "group"), " are too few to hold the last of every ", kEvery,
         " out for the test part; name test groups");
  if (left.empty()) fail("data set ", all.name, ": all of its groups are test groups, and none is left for training");
  return {.train = examples_at(all, left), .test = examples_at(all, held)};
}

}  // namespace miniqat::datasets
