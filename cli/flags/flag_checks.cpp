#include "cli/flags/flag_checks.h"

#include <algorithm>

#include "core/text/quote.h"
#include "core/text/suggest.h"

namespace miniqat::cli {

void require_ending(const std::string& flag, const std::filesystem::path& file,
                    const std::vector<std::string>& endings) {
  const std::string ending = file.extension().string();
  if (!ending.empty() && std::ranges::find(endings, ending) == endings.end())
    throw training::UsageError(concat(flag, " must end in ", alternatives(endings), ", not ", quote(file.string())));
}

}  // namespace miniqat::cli
