#include "harness/cli/option_error.hpp"

#include <algorithm>
#include <map>

namespace attnbench {

namespace {

namespace options = boost::program_options;

// The substitutions are protected, but a derived class may name them.
struct Given : options::error_with_option_name {
  static std::map<std::string, std::string> of(const options::error_with_option_name& error) {
    return error.*&Given::m_substitutions;
  }
};

}  // namespace

std::string message_of(options::error& error) {
  if (auto* named = dynamic_cast<options::error_with_option_name*>(&error))
    for (auto [placeholder, given] : Given::of(*named)) {
      std::replace(given.begin(), given.end(), '%', '?');
      named->set_substitute(placeholder, given);
    }
  return error.what();
}

}  // namespace attnbench
