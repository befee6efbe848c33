#include "harness/inputs/language_texts.hpp"

#include <fmt/format.h>
#include <zip.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/core/installed.hpp"
#include "harness/errors/error.hpp"
#include "harness/inputs/captured_heads.hpp"
#include "harness/inputs/last_read.hpp"
#include "harness/random/streams.hpp"

namespace attnbench {

namespace {

constexpr zip_uint64_t longest_text = 1'000'000;

std::filesystem::path path_of(const char* name) { return source_tree() / "harness/inputs/texts" / name; }

[[noreturn]] void refuse_damaged(const std::filesystem::path& path, const std::string& what) {
  throw Misuse(fmt::format("{}: {}; write both files again with scripts/language_texts.py", path.string(), what));
}

std::string text_in(zip_t* archive, const std::string& entry) {
  zip_stat_t facts;
  zip_stat_init(&facts);
  const auto path = path_of("texts.zip");
  if (zip_stat(archive, entry.c_str(), 0, &facts) != 0 || facts.size > longest_text)
    refuse_damaged(path, fmt::format("there is no text '{}'", entry));
  std::string text(facts.size, '\0');
  const std::unique_ptr<zip_file_t, decltype(&zip_fclose)> file(zip_fopen(archive, entry.c_str(), 0), &zip_fclose);
  if (!file || zip_fread(file.get(), text.data(), facts.size) != static_cast<zip_int64_t>(facts.size))
    refuse_damaged(path, fmt::format("the text '{}' cannot be read", entry));
  return text;
}

std::shared_ptr<const std::vector<LanguageText>> read_texts() {
  const auto list = path_of("texts.json"), file = path_of("texts.zip");
  std::ifstream stream(list);
  const auto entries = nlohmann::json::parse(stream, nullptr, false);
  int code = 0;
  const std::unique_ptr<zip_t, decltype(&zip_discard)> archive(zip_open(file.c_str(), ZIP_RDONLY, &code), &zip_discard);
  if (!entries.is_array() || !archive) refuse_damaged(archive ? list : file, "missing or damaged");
  auto texts = std::make_shared<std::vector<LanguageText>>();
  for (const auto& entry : entries) {
    if (!entry.contains("entry") || !entry.contains("kind")) refuse_damaged(list, "a text without 'entry' or 'kind'");
    texts->push_back(
        {entry.at("kind").get<std::string>(), text_in(archive.get(), entry.at("entry").get<std::string>())});
  }
  return texts;
}

}  // namespace

std::shared_ptr<const std::vector<LanguageText>> language_texts() {
  static LastRead<std::shared_ptr<const std::vector<LanguageText>>, 1> kept;
  return kept.get(version_of(path_of("texts.zip")) + version_of(path_of("texts.json")), read_texts);
}

std::string content_of_language_texts() {
  return content_hash(path_of("texts.zip")) + content_hash(path_of("texts.json"));
}

}  // namespace attnbench
