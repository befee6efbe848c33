// attnbench: dispatches to the commands. Exit codes: 0; 1 negative result; 2 misuse; 3 undecided.
#include <fmt/format.h>

#include <cstdio>
#include <iostream>

#include "harness/cli/command.hpp"
#include "harness/linalg/spectrum.hpp"
#include "harness/workers/serve.hpp"

namespace attnbench {

namespace {

void print_help() {
  std::cout << "attnbench: the yardstick for attention approximations\n\nusage: attnbench COMMAND [OPTIONS]\n\n";
  for (const auto& name : catalogue("commands").names())
    std::cout << fmt::format("  {:<11}{}\n", name, catalogue("commands").description(name).summary);
  std::cout << "\nattnbench COMMAND --help tells a command's options. Exit codes: 0 done, 1 negative result, 2 misuse, "
               "3 undecided.\n";
}

std::string shell_quoted(const std::string& word) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=:,./+@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

int dispatch(const std::vector<std::string>& words) {
  if (!duplicate_registrations().empty())
    throw Misuse("registered twice: " + duplicate_registrations().front() + "; rename one of them");
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    print_help();
    return words.empty() ? 2 : 0;
  }
  return find<CommandEntry>(words[0]).run({words.begin() + 1, words.end()});
}

}  // namespace
}  // namespace attnbench

int main(int argc, char** argv) {
  attnbench::prepare_lapack(argv);
  if (const auto code = attnbench::serve_if_worker(argc, argv)) return *code;
  std::vector<std::string> words(argv + 1, argv + argc);
  attnbench::command_line = "attnbench";
  for (const auto& word : words) attnbench::command_line += " " + attnbench::shell_quoted(word);
  try {
    return attnbench::dispatch(words);
  } catch (const attnbench::Misuse& e) {
    std::cerr << "attnbench: " << e.what() << "\n";
    return 2;
  } catch (const std::bad_alloc&) {
    std::cerr << "attnbench: out of memory\n";
    return 1;
  } catch (const std::exception& e) {
    std::cerr << "attnbench: " << e.what() << "\n";
    return 1;
  }
}
