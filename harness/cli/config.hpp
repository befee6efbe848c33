// Options in a file, as Boost.Program_options reads them: `option = value`, one a line, a line for each value of an
// option that can be repeated, # before comments.
#pragma once

#include <boost/program_options.hpp>
#include <istream>
#include <string>

namespace attnbench {

// The options of that text, which are those of `known`. name: of the file, for messages. Throws Misuse with the line
// for an option that is not known, a line that is none, and what is no text.
boost::program_options::parsed_options parse_config(std::istream& text, const std::string& name,
                                                    const boost::program_options::options_description& known);

}  // namespace attnbench
