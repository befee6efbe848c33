#include "harness/cli/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "harness/cli/command.hpp"
#include "harness/cli/plugin_options.hpp"
#include "harness/cli/printable_output.hpp"
#include "harness/cli/recipe_file.hpp"
#include "harness/cli/terminal.hpp"
#include "harness/linalg/lapack.hpp"
#include "harness/plugins/plugins.hpp"
#include "harness/store/build_facts.hpp"
#include "harness/store/text.hpp"
#include "harness/workers/serve.hpp"
#include "harness/workers/stand_ins.hpp"

namespace attnbench {

namespace {

void print_help() {
  const size_t width = terminal_width();
  std::cout << "attnbench: the yardstick for attention approximations\n\n"
            << bold("usage:") << " attnbench COMMAND [OPTIONS]\n\n";
  for (const auto& name : catalogue("commands").names())
    std::cout << fmt::format("  {}{}\n", bold(fmt::format("{:<12}", name)),
                             wrapped(catalogue("commands").description(name).summary, width, 14, 14));
  std::cout
      << "\n"
      << bold("examples") << R"(
  attnbench check performer
  attnbench run attention-error --methods performer nystrom uniform -n 512,1024 --sweep m=16:256:x2
  attnbench recommend --input heads.npz --max-error 0.05

)"
      << wrapped(
             "attnbench COMMAND --help tells a command's options; attnbench --version tells the version. Exit codes: 0 "
             "done, 1 a negative result or failed cells, 2 misuse, 3 undecided.\nYour own methods, on any command: "
             "--plugin FILE (.so or .py); docs/tutorial.md shows how.\nCompletion of names and options in your shell: "
             "attnbench completion bash (or zsh, fish).",
             width, 0)
      << "\n";
}

void print_version() {
  const BuildFacts& facts = build_facts();
  std::cout << fmt::format(
      "attnbench {}{}, {}, {}\n", ATTNBENCH_VERSION,
      facts.commit.empty() ? "" : fmt::format(" (commit {:.12}{})", facts.commit, facts.clean ? "" : ", with changes"),
      facts.compiler, facts.build_type);
}

std::string as_typed(const std::vector<std::string>& words) {
  std::string line = "attnbench";
  for (const auto& word : words) line += " " + shell_quoted(word);
  return line;
}

int dispatch(const std::vector<std::string>& words) {
  if (!duplicate_registrations().empty())
    throw Misuse("registered twice: " + duplicate_registrations().front() + "; rename one of them");
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    if (words.size() > 1) return find<CommandEntry>(words[1]).run({"--help"});
    print_help();
    return words.empty() ? 2 : 0;
  }
  if (words[0] == "--version") {
    print_version();
    return 0;
  }
  return find<CommandEntry>(words[0]).run({words.begin() + 1, words.end()});
}

// Strips --plugin, then runs the command as if it had not been given. Commands that construct methods run in a worker.
int dispatch_with_plugins(std::vector<std::string> words) {
  // `new` loads nothing: its own --python asks for a class in Python, not for an interpreter.
  const bool any = (words.empty() || words[0] != "new") && take_plugins(words);
  const auto names = catalogue("commands").names();
  if (!any || words.empty() || std::find(names.begin(), names.end(), words[0]) == names.end()) return dispatch(words);
  register_stand_ins();  // a plugin that fails to load shows here, for every command
  add_recipes_of_plugins();
  return find<CommandEntry>(words[0]).makes_methods ? run_in_worker(words) : dispatch(words);
}

// `worker COMMAND ...`: the process that run_in_worker starts.
int dispatch_in_worker(const std::vector<std::string>& words) {
  load_plugins();
  add_recipes_of_plugins();
  return dispatch(words);
}

}  // namespace

int run_command_line(const std::vector<std::string>& words) {
  keep_command_line(as_typed(words));
  return dispatch(words);
}

int run_program(int argc, char** argv) {
  if (const auto code = serve_if_worker(argc, argv)) return *code;
  const PrintableOutput output(std::cout), errors(std::cerr);
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool worker = !words.empty() && words[0] == "worker";
  if (worker) words.erase(words.begin());
  keep_command_line(as_typed(words));
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond `ulimit -f` then fails, and the command says so
  try {
    const int code = worker ? dispatch_in_worker(words) : dispatch_with_plugins(words);
    std::cout.flush();
    if (!std::cout) throw Misuse("standard output could not be written; is the disk full?");
    return code;
  } catch (const Misuse& e) {
    print_message(e.what());
    return 2;
  } catch (const std::filesystem::filesystem_error& e) {
    std::error_code gone;
    static_cast<void>(std::filesystem::current_path(gone));
    print_message(gone ? "the current folder was removed; change to one that exists" : e.what());
    return gone ? 2 : 1;
  } catch (const std::bad_alloc&) {
    print_message("out of memory");
    return 1;
  } catch (const std::exception& e) {
    print_message(e.what());
    return 1;
  }
}

}  // namespace attnbench
