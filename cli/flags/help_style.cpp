#include "cli/flags/help_style.h"

#include <sstream>
#include <vector>

#include "cli/display/terminal.h"
#include "core/text/error.h"
#include "core/text/suggest.h"

namespace miniqat::cli {
namespace {

std::string paragraph(const std::string& text) { return joined(wrapped(text, text_columns()), "\n") + "\n"; }

}  // namespace

std::string HelpStyle::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  std::string text = make_description(app) + make_usage(app, name) + make_positionals(app);
  std::size_t left_out = 0;
  for (const std::string& group : app->get_groups()) {
    if (group.empty()) continue;
    std::vector<const CLI::Option*> options = app->get_options(
        [&](const CLI::Option* option) { return option->get_group() == group && option->nonpositional(); });
    if (mode != CLI::AppFormatMode::All)
      left_out += std::erase_if(options, [&](const CLI::Option* option) { return rare_.contains(option); });
    if (!options.empty()) text += make_group(group, false, options);
  }
  text += make_subcommands(app, mode);
  if (left_out > 0) text += "\n" + paragraph(concat(counted(left_out, "more flag"), ": ", name, " --help-all"));
  const std::string footer = make_footer(app);
  return footer.empty() ? text : concat(text, "\n", footer);
}

std::string HelpStyle::make_description(const CLI::App* app) const { return paragraph(app->get_description()); }

std::string HelpStyle::make_subcommand(const CLI::App* command) const {
  return help_line(command->get_name(), command->get_description(), text_columns());
}

std::string HelpStyle::make_footer(const CLI::App* app) const {
  std::istringstream lines(app->get_footer());
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t name = line.find_first_not_of(' ');
    const std::size_t gap = name == std::string::npos ? name : line.find("  ", name);
    if (name == 0 || gap == std::string::npos)
      text += paragraph(line);
    else
      text += help_line(line.substr(name, gap - name), line.substr(line.find_first_not_of(' ', gap)), text_columns());
  }
  return text;
}

std::string HelpStyle::make_option(const CLI::Option* option, bool is_positional) const {
  return help_line(make_option_name(option, is_positional) + make_option_opts(option), make_option_desc(option),
                   text_columns());
}

std::string HelpStyle::make_option_opts(const CLI::Option* option) const {
  const std::string text = CLI::Formatter::make_option_opts(option);
  return text.substr(0, text.find(" " + get_label("Excludes") + ":"));
}

std::string HelpStyle::make_option_usage(const CLI::Option* option) const {
  const std::string name = make_option_name(option, true);
  const bool one_or_two = option->get_expected_min() == 1 && option->get_expected_max() == 2;
  return one_or_two ? concat(name, " [", name, "]") : CLI::Formatter::make_option_usage(option);
}

}  // namespace miniqat::cli
