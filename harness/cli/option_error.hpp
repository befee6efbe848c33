// Messages for errors of Boost.Program_options.
#pragma once

#include <boost/program_options.hpp>
#include <string>

namespace attnbench {

// error.what(), with ? for every % in the user's text. Boost inserts that text for %value%, %original_token% and the
// like, and repeats until no placeholder is left: an option with such a name would loop forever.
std::string message_of(boost::program_options::error& error);

}  // namespace attnbench
