#include "harness/cli/specs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "harness/core/approximation.hpp"
#include "harness/inputs/input.hpp"
#include "harness/store/text.hpp"

namespace attnbench {

namespace {

// Whether the entry's values without a key are specs of others.
bool holds_specs(const std::string& spec) {
  const std::string name = spec.substr(0, spec.find(':'));
  if (spec.find(':') == std::string::npos || !catalogue("methods").has(name)) return false;
  const auto& parameters = catalogue("methods").parameters(name);
  return !parameters.empty() && parameters.front().kind == Parameter::Kind::specs;
}

// Files of torch.save are among them: the reader of files tells how to convert one.
bool ends_like_heads(std::string path) {
  std::transform(path.begin(), path.end(), path.begin(), [](unsigned char c) { return std::tolower(c); });
  return path.ends_with(".npz") || path.ends_with(".safetensors") || path.ends_with(".pt") || path.ends_with(".pth");
}

// The value of the argument `head`, or null.
std::string* head_of(Spec& spec) {
  for (auto& [key, value] : spec.arguments)
    if (key == "head") return &value;
  return nullptr;
}

}  // namespace

std::vector<std::string> method_specs(const std::string& option, const std::vector<std::string>& words) {
  std::vector<std::string> specs;
  for (const std::string& word : words) {
    specs.emplace_back();
    int depth = 0;
    for (size_t i = 0; i < word.size(); ++i) {
      depth += (word[i] == '[') - (word[i] == ']');
      if (word[i] != ',' || depth > 0) {
        specs.back() += word[i];
        continue;
      }
      const std::string part = word.substr(i + 1, word.find(',', i + 1) - i - 1);
      const bool argument = part.find('=') != std::string::npos && part.find('=') < part.find(':');
      if (argument || holds_specs(specs.back()))
        specs.back() += ',';
      else
        specs.emplace_back();
    }
  }
  for (const std::string& spec : specs)
    if (spec.empty())
      throw Misuse(
          fmt::format("{}: an empty spec; expected specs with commas or spaces between them, such as "
                      "performer,local:window=8",
                      option));
  return specs;
}

std::string input_spec(const std::string& word) {
  const std::string path = word.substr(0, word.find(','));
  // A spec's name has no dot and no slash: "file:heads.npz" does not come here.
  const bool is_path = ends_like_heads(path) && path.substr(0, path.find(':')).find_first_of("./") != std::string::npos;
  return is_path ? fmt::format("file:{}{}", quoted_value(path), word.substr(path.size())) : word;
}

void require_text(const std::string& spec) {
  if (!is_text(spec))
    throw Misuse(fmt::format("{}: this is not UTF-8, and a results file keeps text; rename the file or its folder",
                             on_one_line(spec)));
}

std::vector<std::string> with_all_heads(const std::vector<std::string>& inputs) {
  std::vector<std::string> all;
  for (const std::string& input : inputs) {
    require_text(input);
    Spec spec = parse_spec(input);
    std::string* head = head_of(spec);
    if (!head || *head != "all") {
      all.push_back(input);
      continue;
    }
    *head = "0";
    const Params first("inputs", spec);
    const Index heads = find<InputEntry>(first.name()).limits(first).heads;
    if (heads < 1)
      throw Misuse(fmt::format("{}: head=all needs an input that stores heads, such as file or model", input));
    for (Index h = 0; h < heads; ++h) {
      *head = std::to_string(h);
      all.push_back(to_string(spec));
    }
  }
  return all;
}

std::string remark_on_heads(const std::string& input) {
  Spec spec = parse_spec(input);
  const Params params("inputs", spec);
  const InputLimits limits = find<InputEntry>(params.name()).limits(params);
  if (limits.heads > limits.queries && limits.queries > 0)
    return fmt::format(
        "{} has {} heads of {} tokens; if its arrays are [n, heads, d], swap the first two axes: "
        "np.swapaxes(q, 0, 1)",
        input, limits.heads, limits.queries);
  if (limits.heads < 2 || head_of(spec)) return "";
  spec.arguments.emplace_back("head", "all");
  return fmt::format("{} has {} heads; this is head {} ({} takes all)", input, limits.heads, params.integer("head"),
                     to_string(spec));
}

}  // namespace attnbench
