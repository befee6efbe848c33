#include "harness/cli/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "harness/cli/option_error.hpp"
#include "harness/errors/error.hpp"

namespace attnbench {

namespace {

namespace options = boost::program_options;

constexpr size_t longest_line = 1 << 20, most_lines = 10'000;  // a sweep may list 100,000 values

bool is_text(const std::string& line) {
  return std::none_of(line.begin(), line.end(),
                      [](char c) { return static_cast<unsigned char>(c) < ' ' && c != '\t' && c != '\r'; });
}

}  // namespace

options::parsed_options parse_config(std::istream& text, const std::string& name,
                                     const options::options_description& known) {
  options::parsed_options all(&known);
  std::string line;
  for (size_t number = 1; std::getline(text, line); ++number) {
    const auto refuse = [&](const std::string& why) {
      throw Misuse(
          fmt::format("{}, line {}: {}; expected lines such as 'method = performer:m=64', and '#' before "
                      "comments",
                      name, number, why));
    };
    if (number == 1 && line.starts_with("\xEF\xBB\xBF"))
      line.erase(0, 3);  // the mark that some editors begin a file with
    if (number > most_lines) refuse(fmt::format("more than {} lines", most_lines));
    if (line.size() > longest_line) refuse(fmt::format("a line of {} characters", line.size()));
    if (!is_text(line)) refuse("this is not text");
    // Line by line, because Boost's messages do not name the line. Its sections have no meaning here.
    const size_t first = line.find_first_not_of(" \t\r");
    if (first != std::string::npos && line[first] == '[') refuse("sections are not known");
    std::istringstream one(line);
    try {
      for (auto& option : options::parse_config_file(one, known).options) all.options.push_back(std::move(option));
    } catch (options::error& error) {
      refuse(message_of(error));
    }
  }
  return all;
}

}  // namespace attnbench
