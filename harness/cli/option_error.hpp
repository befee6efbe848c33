// What Boost.Program_options says of an error.
#pragma once

#include <boost/program_options.hpp>
#include <string>

namespace attnbench {

// error.what(), with ? for every % of what was given. Boost puts that in place of %value%, %original_token% and the
// like, again and again until none is left: an option that is called so would never end.
std::string message_of(boost::program_options::error& error);

}  // namespace attnbench
