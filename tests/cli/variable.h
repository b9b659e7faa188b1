#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace miniqat::testing {

/// Sets an environment variable for the programs started while it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    setenv(name, value, 1);
  }
  ~Variable() { old_ ? setenv(name_, old_->c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

}  // namespace miniqat::testing
