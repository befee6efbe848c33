// Specs as users type them: several in one option, files by their path, and all heads of an input.
#pragma once

#include <string>
#include <vector>

namespace attnbench {

// The specs of methods in words such as "a,b:m=64,projection=iid" and "c": a part "name=value" continues the arguments
// of the spec before it, and so does every part of a spec that holds others (per-head:a,b). option: for messages.
std::vector<std::string> method_specs(const std::string& option, const std::vector<std::string>& words);

// The spec of an input. "heads.npz" and "heads.npz,head=3" are the input `file`.
std::string input_spec(const std::string& word);

// Throws Misuse for a spec that is not UTF-8, such as one with a path in another encoding: results files keep specs.
void require_text(const std::string& spec);

// The specs of inputs, with one for each head in place of head=all. Reads what stores the heads. Throws Misuse.
std::vector<std::string> with_all_heads(const std::vector<std::string>& inputs);

// For an input with several heads, a sentence that says which of them is measured and how to measure all; empty for
// others. Also says that a file with more heads than tokens may have its axes in another order.
std::string remark_on_heads(const std::string& input);

}  // namespace attnbench
