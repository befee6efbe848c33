#include "harness/cli/command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "harness/cli/option_error.hpp"
#include "harness/cli/plugin_options.hpp"
#include "harness/cli/terminal.hpp"
#include "harness/plugins/plugins.hpp"
#include "harness/store/environment.hpp"
#include "harness/store/store.hpp"

namespace attnbench {

namespace {
std::string command_line;
}

void keep_command_line(std::string words) { command_line = std::move(words); }

std::int64_t begin_run(Store& store) { return store.begin_run(command_line, environment_json(python_of_plugins())); }

namespace {

constexpr const char* surplus = "words that no option takes";

// Set while options_of asks a command for its options: --help then fills it instead of printing.
std::vector<KnownOption>* asked_options = nullptr;

// "N (=1)" as Boost prints it, taken apart.
struct Value {
  std::string name, standard;
};
Value value_of(const options::option_description& option) {
  std::string text = option.format_parameter();
  if (text.starts_with('[')) return {text, ""};  // "[=SECONDS(=600)]": the value may be left out
  const size_t standard = text.find("(=");
  if (standard == std::string::npos) return {text, ""};
  Value value{text.substr(0, standard), text.substr(standard + 2, text.size() - standard - 3)};
  while (!value.name.empty() && value.name.back() == ' ') value.name.pop_back();
  return value;
}

std::vector<std::string> names_of(const options::option_description& option) {
  const std::string long_name = "--" + option.long_name();
  const std::string text = option.format_name();  // "-m [ --method ]"
  if (text.size() > 1 && text[0] == '-' && text[1] != '-') return {text.substr(0, 2), long_name};
  return {long_name};
}

// The options that are typed with dashes: words without a dash are in the usage line.
using Positional = std::vector<std::pair<const char*, int>>;
std::vector<const options::option_description*> with_dashes(const options::options_description& all,
                                                            const Positional& positional) {
  std::vector<const options::option_description*> some;
  for (const auto& option : all.options()) {
    const bool word = std::any_of(positional.begin(), positional.end(),
                                  [&](const auto& one) { return option->long_name() == one.first; });
    if (!word && option->long_name() != surplus) some.push_back(option.get());
  }
  return some;
}

void print_options(const std::string& caption, const std::vector<const options::option_description*>& all) {
  constexpr size_t gutter = 26;
  const size_t width = terminal_width();
  std::cout << "\n" << bold(caption) << "\n";
  for (const options::option_description* option : all) {
    const Value value = value_of(*option);
    std::string names = "  ";
    for (const std::string& name : names_of(*option)) names += (names.size() > 2 ? ", " : "") + name;
    if (!value.name.empty()) names += " " + value.name;
    std::string help = option->description();
    if (!value.standard.empty()) help += fmt::format(" [{}]", value.standard);
    const size_t length = names.size();
    std::cout << bold(names);
    if (length + 2 > gutter)
      std::cout << "\n" << std::string(gutter, ' ');
    else
      std::cout << std::string(gutter - length, ' ');
    std::cout << wrapped(help, width, gutter, gutter) << "\n";
  }
}

void print_help(const std::string& command, const std::vector<const options::option_description*>& own) {
  const auto& entry = find<CommandEntry>(command);
  const size_t width = terminal_width();
  std::cout << bold("usage:") << " attnbench " << wrapped(entry.text.formula, width, 7, 17) << "\n"
            << wrapped(entry.text.summary, width, 0) << "\n";
  if (!entry.examples.empty()) std::cout << "\n" << bold("examples") << "\n";
  for (const std::string& example : entry.examples) std::cout << "  attnbench " << example << "\n";
  std::vector<const options::option_description*> rest = own;
  for (const auto& [heading, names] : entry.groups) {
    std::vector<const options::option_description*> some;
    for (const std::string& name : names)
      for (const auto* option : own)
        if (option->long_name() == name) some.push_back(option);
    std::erase_if(rest, [&](const auto* option) { return std::find(some.begin(), some.end(), option) != some.end(); });
    if (!some.empty()) print_options(heading, some);
  }
  if (!rest.empty()) print_options("options", rest);
  const options::options_description plugins = plugin_options();
  print_options("options of every command", with_dashes(plugins, {}));
  if (entry.details) std::cout << "\n" << entry.details();
}

// The message for words that no option takes.
std::string surplus_message(const std::string& command, const std::vector<std::string>& arguments,
                            const std::string& word) {
  const auto place = std::find(arguments.begin(), arguments.end(), word);
  // The option before it: `--method performer softmax`.
  std::string option;
  for (auto at = place; at != arguments.begin();)
    if ((--at)->starts_with("-")) {
      option = *at;
      break;
    }
  std::string advice;
  if (word.find('=') != std::string::npos && (option == "--method" || option == "-m" || option == "--methods") &&
      std::next(place, -1) != arguments.begin())
    advice = fmt::format("; a parameter follows its method after a colon: {}:{}", *std::next(place, -1), word);
  else if (!option.empty() && place != arguments.end() && std::next(place, -1) != arguments.begin())
    advice =
        option == "--method" || option == "-m"
            ? fmt::format("; several methods are --methods {} {}, or one --method each", *std::next(place, -1), word)
            : fmt::format("; several values are {} {},{}, or one {} each", option, *std::next(place, -1), word, option);
  return fmt::format("{}: '{}' is a word too many{}; see attnbench {} --help", command, word, advice, command);
}

}  // namespace

std::vector<KnownOption> options_of(const std::string& command) {
  std::vector<KnownOption> all;
  asked_options = &all;
  find<CommandEntry>(command).run({"--help"});
  asked_options = nullptr;
  return all;
}

std::optional<options::variables_map> parse_arguments(const std::string& command, options::options_description visible,
                                                      const std::vector<std::string>& arguments,
                                                      const std::vector<std::pair<const char*, int>>& positional,
                                                      const MoreValues& more) {
  visible.add_options()("help,h", "this text")(surplus, options::value<std::vector<std::string>>());
  options::positional_options_description words;
  bool any_number = false;
  for (const auto& [name, count] : positional) {
    words.add(name, count);
    any_number |= count < 0;
  }
  if (!any_number) words.add(surplus, -1);
  options::variables_map values;
  try {
    options::store(options::command_line_parser(arguments)
                       .options(visible)
                       .positional(words)
                       .style(options::command_line_style::unix_style & ~options::command_line_style::allow_guessing)
                       .run(),
                   values);
    if (values.contains(surplus) && !values.contains("help"))
      throw Misuse(surplus_message(command, arguments, values[surplus].as<std::vector<std::string>>().front()));
    if (more && !values.contains("help")) more(values);
    if (!values.contains("help")) options::notify(values);
  } catch (options::unknown_option& error) {
    std::vector<std::string> known;
    for (const auto* option : with_dashes(visible, positional)) known.push_back("--" + option->long_name());
    const std::string given = error.get_option_name(), near = nearest_names(given, known);
    throw Misuse(fmt::format("{}: there is no option {}{}; see attnbench {} --help", command, given,
                             near.starts_with("; did you mean") ? near : "", command));
  } catch (options::error& error) {
    throw Misuse(fmt::format("{}: {}; see attnbench {} --help", command, message_of(error), command));
  }
  if (!values.contains("help")) return values;
  const auto own = with_dashes(visible, positional);
  if (!asked_options) {
    print_help(command, own);
    return std::nullopt;
  }
  for (const auto* option : own)
    for (const std::string& name : names_of(*option))
      asked_options->push_back({name, option->description(), !value_of(*option).name.empty()});
  return std::nullopt;
}

template class Registry<CommandEntry>;

}  // namespace attnbench
