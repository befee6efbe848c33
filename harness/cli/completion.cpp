// attnbench completion: scripts that make a shell complete names and options. The scripts ask the program at every TAB,
// so that they know what is registered, plugins included.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>

#include "harness/cli/command.hpp"
#include "harness/cli/metrics.hpp"
#include "harness/cli/plugin_options.hpp"

namespace attnbench::completion_command {
namespace {

using Words = std::vector<std::string>;

// Each asks `attnbench completion words BEFORE... CURRENT`. Without an answer the shell completes names of files. Bash
// would break words at = and :, which specs contain; the scripts complete the part behind them.
constexpr const char* bash_script =
    R"sh(# attnbench completion bash > ~/.local/share/bash-completion/completions/attnbench
_attnbench() {
  local line=${COMP_LINE:0:COMP_POINT} words current answers
  read -r -a words <<< "$line"
  current=
  [[ $line != *" " ]] && current=${words[-1]} && unset 'words[-1]'
  mapfile -t answers < <("${words[0]}" completion words -- "${words[@]:1}" "$current" 2> /dev/null)
  local cut=${current%"${current##*[=:]}"}
  COMPREPLY=("${answers[@]#"$cut"}")
  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=:] ]] && compopt -o nospace
}
complete -o default -F _attnbench attnbench
)sh";
constexpr const char* zsh_script = R"sh(#compdef attnbench
# attnbench completion zsh > a file _attnbench in a folder of $fpath
_attnbench() {
  local -a answers
  answers=(${(f)"$("${words[1]}" completion words -- "${(@)words[2,CURRENT]}" 2> /dev/null)"})
  if (( $#answers )); then
    compadd -Q -- $answers
  else
    _files
  fi
}
if [ "$funcstack[1]" = _attnbench ]; then _attnbench "$@"; else compdef _attnbench attnbench; fi
)sh";
constexpr const char* fish_script = R"sh(# attnbench completion fish > ~/.config/fish/completions/attnbench.fish
function __attnbench
    set -l before (commandline -opc)
    $before[1] completion words -- $before[2..-1] (commandline -ct) 2> /dev/null
end
complete -c attnbench -a '(__attnbench)'
)sh";

Words names_of(const std::string& kind) {
  if (kind == "metrics") {
    Words names;
    for (const auto& [name, experiments] : all_metrics()) names.push_back(name);
    return names;
  }
  if (kind == "kinds")
    return {"methods", "features", "deterministic-features", "projections", "key-scores", "inputs", "experiments",
            "recipes", "metrics"};
  if (kind == "shells") return {"bash", "zsh", "fish"};
  return catalogues().contains(kind) ? catalogue(kind).names() : Words();
}

// The parameters of the spec that is being typed: "performer:m=64,pr" may become "performer:m=64,projection=".
Words with_parameters(const std::string& plural, const std::string& typed) {
  const size_t colon = typed.find(':');
  const std::string name = typed.substr(0, colon);
  if (colon == std::string::npos || !catalogue(plural).has(name)) return {};
  const size_t last = typed.find_last_of(":,") + 1, equals = typed.find('=', last);
  Words all;
  for (const Parameter& p : Params(plural, name).declared()) {
    if (equals == std::string::npos) {
      all.push_back(typed.substr(0, last) + p.name + "=");
      continue;
    }
    if (p.name != typed.substr(last, equals - last)) continue;
    Words values = p.choices;
    if (p.kind == Parameter::Kind::flag) values = {"true", "false"};
    if (p.kind == Parameter::Kind::entry) values = names_of(p.catalogue);
    for (const std::string& value : values) all.push_back(typed.substr(0, equals + 1) + value);
  }
  return all;
}

// Axes of the methods that the line has so far, and sizes.
Words axes_of(const Words& line) {
  Words all{"n=", "d=", "dv=", "heads=", "logit_scale="};
  for (const std::string& word : line) {
    const std::string name = word.substr(0, word.find(':'));
    if (!catalogue("methods").has(name)) continue;
    for (const Parameter& p : Params("methods", name).declared()) all.push_back(p.name + "=");
  }
  return all;
}

// The value of an option: what the option is named after.
Words values_of(const std::string& option, const std::string& typed, const Words& line) {
  if (option == "--sweep") return axes_of(line);
  if (option == "--metric") return names_of("metrics");
  for (const auto& [option_names, plural] : {std::pair(Words{"--method", "--methods", "-m"}, "methods"),
                                             std::pair(Words{"--input", "--inputs", "-i"}, "inputs")})
    if (std::find(option_names.begin(), option_names.end(), option) != option_names.end()) {
      const Words more = with_parameters(plural, typed);
      return more.empty() && typed.find(':') == std::string::npos ? names_of(plural) : more;
    }
  return {};
}

// The completions of the last of these words. The words are those after `attnbench`.
Words completions(const Words& line) {
  const std::string typed = line.empty() ? "" : line.back();
  Words all;
  if (line.size() < 2) {
    all = catalogue("commands").names();
    for (const char* more : {"help", "--help", "--version"}) all.emplace_back(more);
  } else if (line[0] == "help") {
    all = catalogue("commands").names();
  } else if (catalogue("commands").has(line[0])) {
    const auto& command = find<CommandEntry>(line[0]);
    std::vector<KnownOption> known = options_of(line[0]);
    const options::options_description plugins = plugin_options();
    for (const auto& option : plugins.options()) known.push_back({"--" + option->long_name(), "", true});
    // The last option before the word, which may take it as its value. Only --methods takes several.
    const std::string& before = line[line.size() - 2];
    std::string option;
    for (const KnownOption& one : known)
      if (one.takes_value && (one.name == before || (one.name == "--methods" && std::find(line.begin(), line.end() - 1,
                                                                                          one.name) != line.end() - 1)))
        if (option.empty() || one.name == before) option = one.name;
    if (typed.starts_with("-")) {
      for (const KnownOption& one : known) all.push_back(one.name);
    } else if (!option.empty()) {
      all = values_of(option, typed, line);
    } else {
      for (const std::string& kind : command.names) {
        Words more = names_of(kind);
        if (catalogues().contains(kind) && typed.find(':') != std::string::npos) more = with_parameters(kind, typed);
        all.insert(all.end(), more.begin(), more.end());
      }
    }
  }
  std::erase_if(all, [&](const std::string& word) { return !word.starts_with(typed); });
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

int run(const Words& arguments) {
  if (!arguments.empty() && arguments[0] == "words") {  // what the scripts ask; no word of the line is an option here
    Words line(arguments.begin() + 1, arguments.end());
    if (!line.empty() && line[0] == "--") line.erase(line.begin());
    for (const std::string& word : completions(line)) std::cout << word << "\n";
    return 0;
  }
  std::string shell;
  options::options_description visible("options");
  visible.add_options()("shell", options::value(&shell), "bash, zsh or fish");
  if (!parse_arguments("completion", visible, arguments, {{"shell", 1}})) return 0;
  if (shell == "bash")
    std::cout << bash_script;
  else if (shell == "zsh")
    std::cout << zsh_script;
  else if (shell == "fish")
    std::cout << fish_script;
  else
    throw Misuse(fmt::format("completion: {}expected bash, zsh or fish, such as: eval \"$(attnbench completion bash)\"",
                             shell.empty() ? "" : fmt::format("there is no script for '{}'; ", shell)));
  return 0;
}

const bool registered =
    add(CommandEntry{.text = {.name = "completion",
                              .summary = "a script that completes names and options in your shell",
                              .formula = "completion bash|zsh|fish"},
                     .run = run,
                     .examples = {"completion bash > ~/.local/share/bash-completion/completions/attnbench",
                                  "completion fish > ~/.config/fish/completions/attnbench.fish"},
                     .names = {"shells"}});

}  // namespace
}  // namespace attnbench::completion_command
