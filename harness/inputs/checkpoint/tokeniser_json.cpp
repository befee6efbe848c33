// Hugging Face's tokenizer.json: {"added_tokens": [..], "normalizer": .., "pre_tokenizer": {..}, "model": {..}, ..}.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "harness/errors/error.hpp"
#include "harness/inputs/checkpoint/tokeniser.hpp"
#include "harness/inputs/tensor_formats.hpp"

namespace attnbench {

namespace {

using Json = nlohmann::json;
using Kind = SplitStep::Kind;

class TokeniserFile {
 public:
  TokeniserFile(const Json& root, const std::string& where) : root_(root), where_(where) {}

  TokeniserParts parts() {
    check_keys(root_, "its top",
               {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor",
                "decoder", "model"});
    const Json& model = member(root_, "model", "its top");
    check_model(model);
    read_vocabulary(model);
    const auto added = root_.find("added_tokens");
    if (added != root_.end() && !added->is_null()) read_added_tokens(*added);
    check_ids();
    read_merges(member(model, "merges", "model"));
    const auto normalizer = root_.find("normalizer");
    if (normalizer != root_.end() && !normalizer->is_null()) add_normalizer(*normalizer);
    add_splitter(member(root_, "pre_tokenizer", "its top"));
    if (!byte_level_)
      refuse("pre_tokenizer has no ByteLevel", "a byte-level tokeniser; SentencePiece and others do not work");
    return std::move(parts_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what, std::string_view expected) const {
    throw Misuse(fmt::format("{}: {}; expected {}", where_, what, expected));
  }
  // Lists and objects by their kind alone: to write one that nests deeply would take the stack.
  static std::string written(const Json& value) {
    if (value.is_array()) return "a list";
    if (value.is_object()) return "an object";
    return shown(value.dump());
  }
  const Json& member(const Json& object, const std::string& key, const std::string& of) const {
    if (!object.is_object()) refuse(fmt::format("{} is {}", of, written(object)), "an object {..}");
    const auto found = object.find(key);
    if (found == object.end()) refuse(fmt::format("{} lacks '{}'", of, key), "a tokenizer.json of `tokenizers`");
    return *found;
  }
  std::string text(const Json& object, const std::string& key, const std::string& of) const {
    const Json& value = member(object, key, of);
    if (!value.is_string()) refuse(fmt::format("'{}' of {} is {}", key, of, written(value)), "a text");
    return value.get<std::string>();
  }
  bool truth(const Json& object, const std::string& key, const std::string& of, bool otherwise) const {
    if (!object.contains(key)) return otherwise;
    const Json& value = object.at(key);
    if (!value.is_boolean()) refuse(fmt::format("'{}' of {} is {}", key, of, written(value)), "true or false");
    return value.get<bool>();
  }
  // Refuses a key that this reader does not know, since it may change the ids.
  void check_keys(const Json& object, const std::string& of, const std::vector<std::string>& known) const {
    if (!object.is_object()) refuse(fmt::format("{} is {}", of, written(object)), "an object {..}");
    for (const auto& [key, value] : object.items()) {
      if (std::find(known.begin(), known.end(), key) == known.end())
        refuse(fmt::format("{} has '{}'", of, shown(key)), fmt::format("only {}", fmt::join(known, ", ")));
    }
  }
  // The parts of a Sequence, or the object itself in a list of one. Every one has a "type".
  std::vector<const Json*> sequence(const Json& object, const std::string& parts_key, const std::string& of) const {
    if (text(object, "type", of) != "Sequence") return {&object};
    const Json& list = member(object, parts_key, of);
    if (!list.is_array()) refuse(fmt::format("'{}' of {} is {}", parts_key, of, written(list)), "a list");
    std::vector<const Json*> parts;
    for (const auto& part : list) parts.push_back(&part);
    return parts;
  }

  void check_model(const Json& model) const {
    check_keys(model, "model",
               {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                "byte_fallback", "ignore_merges", "vocab", "merges"});
    if (const auto type = text(model, "type", "model"); type != "BPE")
      refuse(fmt::format("the model's type is '{}'", shown(type)), "BPE");
    if (truth(model, "byte_fallback", "model", false)) refuse("the model has byte_fallback", "byte_fallback false");
    for (const std::string key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      const auto found = model.find(key);
      if (found != model.end() && !found->is_null() && *found != Json(std::string()))
        refuse(fmt::format("the model's {} is {}", key, written(*found)), "none: byte-level models mark no words");
    }
    const auto dropout = model.find("dropout");
    if (dropout != model.end() && !dropout->is_null() && *dropout != 0)
      refuse(fmt::format("the model's dropout is {}", written(*dropout)), "none: it makes ids random");
  }

  Index id_of(const Json& value, const std::string& token) const {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= most_ids())
      refuse(fmt::format("the id of '{}' is {}", shown(token), written(value)),
             fmt::format("an integer of 0 to {}, as there are so many tokens", most_ids() - 1));
    return static_cast<Index>(value.get<std::uint64_t>());
  }
  // No id is larger than the number of tokens, since each id is one.
  std::uint64_t most_ids() const { return most_ids_; }
  void set_token(Index id, const std::string& token) {
    std::string& place = parts_.vocabulary[static_cast<size_t>(id)];
    if (!place.empty() && place != token)
      refuse(fmt::format("'{}' and '{}' both have the id {}", shown(place), shown(token), id), "one token an id");
    place = token;
  }

  void read_vocabulary(const Json& model) {
    const Json& vocab = member(model, "vocab", "model");
    if (!vocab.is_object() || vocab.empty())
      refuse("the model's vocab is no object with tokens", R"({"token": id, ..})");
    const auto added = root_.find("added_tokens");
    most_ids_ = vocab.size() + (added != root_.end() && added->is_array() ? added->size() : 0);
    parts_.vocabulary.resize(most_ids_);
    for (const auto& [token, id] : vocab.items()) set_token(id_of(id, token), token);
    parts_.ignore_merges = truth(model, "ignore_merges", "model", false);
  }

  void read_added_tokens(const Json& list) {
    if (!list.is_array()) refuse(fmt::format("added_tokens is {}", written(list)), "a list");
    // `tokenizers` looks for those that are not normalised first.
    SplitStep raw{.kind = Kind::find_tokens}, normalized{.kind = Kind::find_tokens};
    for (const auto& token : list) {
      const std::string content = text(token, "content", "an added token");
      if (content.empty()) refuse("an added token is the empty text", "at least one character");
      const Index id = id_of(member(token, "id", "an added token"), content);
      set_token(id, content);
      if (truth(token, "special", "an added token", false)) continue;
      for (const std::string key : {"single_word", "lstrip", "rstrip"}) {
        if (truth(token, key, "an added token", false))
          refuse(fmt::format("the added token '{}' has {}", shown(content), key),
                 "none of lstrip, rstrip, single_word");
      }
      (truth(token, "normalized", "an added token", true) ? normalized : raw).tokens[content] = id;
    }
    for (const auto& step : {raw, normalized}) {
      if (!step.tokens.empty()) parts_.splitter.push_back(step);
    }
  }

  // The ids have no holes.
  void check_ids() {
    auto& tokens = parts_.vocabulary;
    while (!tokens.empty() && tokens.back().empty()) tokens.pop_back();  // added tokens that the vocabulary has as well
    const auto hole = std::find(tokens.begin(), tokens.end(), "");
    if (hole != tokens.end())
      refuse(fmt::format("no token has the id {}", hole - tokens.begin()),
             "an id for each token, from 0 without a gap");
  }

  void read_merges(const Json& merges) {
    if (!merges.is_array()) refuse(fmt::format("the model's merges are {}", written(merges)), "a list");
    for (const auto& merge : merges) {
      const bool pair = merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
      if (!pair && !merge.is_string())
        refuse(fmt::format("a merge is {}", written(merge)), R"("left right" or ["left", "right"])");
      parts_.merges.push_back(pair ? merge[0].get<std::string>() + " " + merge[1].get<std::string>()
                                   : merge.get<std::string>());
    }
  }

  void add_normalizer(const Json& normalizer) {
    for (const Json* part : sequence(normalizer, "normalizers", "normalizer")) {
      if (const auto type = text(*part, "type", "normalizer"); type != "NFC")
        refuse(fmt::format("the normalizer is '{}'", shown(type)), "none, NFC or a Sequence of NFC");
      parts_.splitter.push_back({.kind = Kind::compose});
    }
  }

  void add_splitter(const Json& pre_tokenizer) {
    for (const Json* part : sequence(pre_tokenizer, "pretokenizers", "pre_tokenizer")) {
      const auto type = text(*part, "type", "pre_tokenizer");
      if (byte_level_)
        refuse(fmt::format("pre_tokenizer has '{}' after ByteLevel", shown(type)), "ByteLevel at the end");
      if (type == "Digits") {
        const bool individual = truth(*part, "individual_digits", type, false);
        parts_.splitter.push_back({.pattern = individual ? R"(\p{N})" : R"(\p{N}+)"});
      } else if (type == "Split") {
        add_split(*part);
      } else if (type == "ByteLevel") {
        if (truth(*part, "add_prefix_space", type, true)) parts_.splitter.push_back({.kind = Kind::prefix_space});
        if (truth(*part, "use_regex", type, true)) parts_.splitter.push_back({.pattern = std::string(gpt2_pattern())});
        byte_level_ = true;
      } else {
        refuse(fmt::format("pre_tokenizer has '{}'", shown(type)), "Split, Digits, ByteLevel or a Sequence of them");
      }
    }
  }

  void add_split(const Json& split) {
    const Json& pattern = member(split, "pattern", "Split");
    const bool literal = pattern.is_object() && pattern.contains("String");
    SplitStep step{.pattern = text(pattern, literal ? "String" : "Regex", "the pattern of Split"), .literal = literal};
    const auto behavior = text(split, "behavior", "Split");
    const bool invert = truth(split, "invert", "Split", false);
    if (behavior == "Removed") {
      step.kind = invert ? Kind::drop_rest : Kind::drop_matches;
    } else if (behavior != "Isolated") {
      refuse(fmt::format("Split has the behavior '{}'", shown(behavior)), "Isolated or Removed");
    }
    parts_.splitter.push_back(std::move(step));
  }

  const Json& root_;
  const std::string& where_;
  TokeniserParts parts_;
  std::uint64_t most_ids_ = 0;
  bool byte_level_ = false;
};

}  // namespace

Tokeniser tokeniser_of_json(const std::string& json, const std::string& where) {
  // The JSON library treats a NUL as the end of its input and would ignore the rest.
  if (json.find('\0') != std::string::npos)
    throw Misuse(fmt::format("{}: byte {} is NUL; expected JSON text", where, json.find('\0')));
  Json root;
  try {
    root = Json::parse(json);
  } catch (const Json::parse_error& error) {
    throw Misuse(fmt::format("{}: not JSON at its byte {}; fetch the file again", where, error.byte));
  } catch (const Json::out_of_range&) {
    throw Misuse(fmt::format("{}: a number has too large an exponent; expected ids of tokens", where));
  }
  return {TokeniserFile(root, where).parts(), where};
}

Tokeniser read_tokeniser(const std::filesystem::path& tokenizer_json) {
  size_of_regular_file(tokenizer_json);
  std::ifstream stream(tokenizer_json, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream) throw Misuse(fmt::format("{}: cannot be read; check its permissions", tokenizer_json.string()));
  return tokeniser_of_json(text.str(), tokenizer_json.string());
}

}  // namespace attnbench
