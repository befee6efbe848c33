// Options in a file, in the syntax of Boost.Program_options: one `option = value` per line, one line for each value of
// a repeatable option, # before comments.
#pragma once

#include <boost/program_options.hpp>
#include <istream>
#include <string>

namespace attnbench {

// Parses the options in `text`, which must be among `known`. name: of the file, for messages. Throws Misuse, quoting
// the line, for an unknown option, a line that is not `option = value`, or binary data.
boost::program_options::parsed_options parse_config(std::istream& text, const std::string& name,
                                                    const boost::program_options::options_description& known);

}  // namespace attnbench
