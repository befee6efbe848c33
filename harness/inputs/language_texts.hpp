// The texts that language models read: harness/inputs/texts/README.md says from where they are.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace attnbench {

struct LanguageText {
  std::string kind;  // "prose", "documentation", "code", "french"
  std::string text;  // UTF-8
};

// All of them, in the order of texts.json: text r of kind r mod 4. Throws Misuse if the files are damaged or missing.
std::shared_ptr<const std::vector<LanguageText>> language_texts();

// Hash of the files.
std::string content_of_language_texts();

}  // namespace attnbench
