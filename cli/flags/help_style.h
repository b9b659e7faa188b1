#pragma once

#include <CLI/CLI.hpp>
#include <set>
#include <string>

namespace miniqat::cli {

/// The form of --help: lines as wide as the terminal, and flags that only --help-all shows. Flags that exclude one
/// another are left to the errors: lists of ten of them hide the text.
class HelpStyle : public CLI::Formatter {
 public:
  /// Only --help-all shows this flag.
  void keep_for_help_all(const CLI::Option* option) { rare_.insert(option); }

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  /// Lines as those of flags: a name and what it means, two blanks between them.
  std::string make_footer(const CLI::App* app) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  /// "GRAPH [GRAPH]" of one or two words, for which CLI11 has "GRAPH(1x)".
  std::string make_option_usage(const CLI::Option* option) const override;

 private:
  std::set<const CLI::Option*> rare_;
};

}  // namespace miniqat::cli
