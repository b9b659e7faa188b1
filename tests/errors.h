#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/text/error.h"

namespace miniqat::testing {

/// The text of the Error, or of another exception, that `action` throws; empty when it does not.
template <class Thrown = Error, class Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const Thrown& error) {
    return error.what();
  }
  return {};
}

/// Whether a message is one line that mentions all of `parts`.
inline ::testing::AssertionResult mentions(const std::string& message, const std::vector<std::string>& parts) {
  if (message.find('\n') != std::string::npos) return ::testing::AssertionFailure() << "several lines: " << message;
  for (const std::string& part : parts)
    if (message.find(part) == std::string::npos)
      return ::testing::AssertionFailure() << "no \"" << part << "\" in \"" << message << "\"";
  return ::testing::AssertionSuccess();
}

}  // namespace miniqat::testing
