// Byte-level BPE: known answers of tiny vocabularies, round trips of any bytes, and the reason of every refusal.
// tests/scripts/tokeniser_test.py compares with Hugging Face's `tokenizers`, through the hidden test at the end.
#include "harness/inputs/checkpoint/tokeniser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "harness/inputs/checkpoint/byte_alphabet.hpp"
#include "tests/catch.hpp"
#include "tests/folder.hpp"
#include "tests/misuse.hpp"

namespace attnbench::tokeniser_test {

namespace {

using Json = nlohmann::json;
using Ids = std::vector<Index>;
using Texts = std::vector<std::string>;

// The 256 bytes in order, so that a byte's id is the byte, then what the merges make, in order.
TokeniserParts parts_with(const Texts& merges, const std::string& rule = "gpt-2") {
  TokeniserParts parts;
  for (unsigned byte = 0; byte < 256; ++byte)
    parts.vocabulary.push_back(character_of_byte(static_cast<unsigned char>(byte)));
  parts.merges = merges;
  for (const auto& merge : merges) {
    std::string result = merge;
    result.erase(result.find(' '), 1);
    if (std::find(parts.vocabulary.begin(), parts.vocabulary.end(), result) == parts.vocabulary.end())
      parts.vocabulary.push_back(result);
  }
  parts.splitter = split_rule(rule, "made").steps;
  return parts;
}
Tokeniser made(const Texts& merges, const std::string& rule = "gpt-2") { return {parts_with(merges, rule), "made"}; }

// The bytes of each token.
Texts tokens(const Tokeniser& tokeniser, const std::string& text) {
  Texts result;
  for (const Index id : tokeniser.encode(text)) result.push_back(tokeniser.decode(std::vector{id}));
  return result;
}

// The pieces of a text by a rule.
Texts pieces(const std::string& rule, std::string_view text) {
  const auto [bytes, found] = Splitter(split_rule(rule, "made").steps, "made").split(text);
  Texts result;
  for (const auto& piece : found) result.push_back(bytes.substr(piece.begin, piece.end - piece.begin));
  return result;
}

std::string refusal_of(const TokeniserParts& parts) {
  return misuse_of([&] { Tokeniser(parts, "made"); });
}

// A tokenizer.json with the 256 bytes, "ab" and the GPT-2 rule.
Json made_json() {
  const auto parts = parts_with({"a b"});
  Json vocab = Json::object();
  for (size_t id = 0; id < parts.vocabulary.size(); ++id) vocab[parts.vocabulary[id]] = id;
  return {{"version", "1.0"},
          {"added_tokens", Json::array()},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", {"a b"}}}}};
}
Json with(const std::string& pointer, const Json& value) {
  Json json = made_json();
  json[Json::json_pointer(pointer)] = value;
  return json;
}
Tokeniser read(const Json& json) { return tokeniser_of_json(json.dump(), "made.json"); }
std::string json_refusal(const Json& json) {
  return misuse_of([&] { read(json); });
}
Json split(const std::string& form, const std::string& pattern, const std::string& behavior, bool invert = false) {
  const Json step = {{"type", "Split"}, {"pattern", {{form, pattern}}}, {"behavior", behavior}, {"invert", invert}};
  const Json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  return with("/pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {step, bytes}}});
}
Json added(Index id, const std::string& content, bool special) {
  return {{"id", id}, {"content", content}, {"special", special}};
}

}  // namespace

TEST_CASE("the byte alphabet is GPT-2's, and each byte comes back", "[unit]") {
  CHECK(character_of_byte('A') == "A");
  CHECK(character_of_byte(' ') == "\u0120");
  CHECK(character_of_byte('\n') == "\u010A");
  CHECK(character_of_byte(0) == "\u0100");
  CHECK(character_of_byte(0x7F) == "\u0121");
  CHECK(character_of_byte(0xA0) == "\u0142");
  CHECK(character_of_byte(0xAD) == "\u0143");
  CHECK(character_of_byte(0xFF) == "\u00FF");
  for (unsigned byte = 0; byte < 256; ++byte) {
    const std::string expected(1, static_cast<char>(byte));
    CHECK(bytes_of_characters(character_of_byte(static_cast<unsigned char>(byte))) == expected);
  }
  CHECK_FALSE(bytes_of_characters("a b"));
  CHECK_FALSE(bytes_of_characters("\uFF5C"));
  CHECK_FALSE(bytes_of_characters("\xC4"));
}

TEST_CASE("the earliest merge in the list is applied first", "[unit]") {
  CHECK(made({"b c", "a b"}).encode("abc") == Ids{'a', 256});
  CHECK(made({"a b", "b c"}).encode("abc") == Ids{256, 'c'});
}

TEST_CASE("of equal merges the leftmost is applied first", "[unit]") {
  CHECK(made({"a a"}).encode("aaa") == Ids{256, 'a'});
  CHECK(made({"a a"}).encode("aaaaa") == Ids{256, 256, 'a'});
}

TEST_CASE("a merge enables later merges, also earlier ones in the list", "[unit]") {
  CHECK(made({"a b", "ab c", "abc d"}).encode("abcd") == Ids{258});
  // "c d" comes first; then "b cd", which is earlier in the list than "a b", takes the b.
  CHECK(made({"b cd", "c d", "a b"}).encode("abcd") == Ids{'a', 256});
  CHECK(tokens(made({"l o", "lo w", "e r"}), "lower low") == Texts{"low", "er", " ", "low"});
}

TEST_CASE("merges stay within pieces", "[unit]") {
  CHECK(made({"a b", "ab \u0120"}).encode("ab ab") == Ids{256, ' ', 256});
  CHECK(made({"\u0120 a", "1 2"}).encode(" a12") == Ids{256, 257});
  CHECK(made({"\u0120 a", "1 2"}, "smollm").encode(" a12") == Ids{256, '1', '2'});
}

TEST_CASE("GPT-2's rule: contractions, letters, numbers, others, white space", "[unit]") {
  CHECK(pieces("gpt-2", "I'll say it's 1234x!?") == Texts{"I", "'ll", " say", " it", "'s", " 1234", "x", "!?"});
  CHECK(pieces("gpt-2", "IT'S") == Texts{"IT", "'", "S"});
  CHECK(pieces("gpt-2", "\u00E9t\u00E9 \u6F22\u5B57\u0663\u00BD") ==
        Texts{"\u00E9t\u00E9", " \u6F22\u5B57", "\u0663\u00BD"});
}

TEST_CASE("white space before a word leaves its last character to the word", "[unit]") {
  CHECK(pieces("gpt-2", "a   b") == Texts{"a", "  ", " b"});
  CHECK(pieces("gpt-2", "a \n\n b  ") == Texts{"a", " \n\n", " b", "  "});
  CHECK(pieces("gpt-2", "a\n\nb") == Texts{"a", "\n", "\n", "b"});
  CHECK(pieces("gpt-2", "a\u00A0\u3000b") == Texts{"a", "\u00A0", "\u3000", "b"});
  CHECK(pieces("gpt-2", "a\u0085b\u180E") == Texts{"a", "\u0085", "b", "\u180E"});  // the latter is no white space
}

TEST_CASE("other rules: digits one by one or in threes, case, line ends", "[unit]") {
  CHECK(pieces("smollm", "x12 34 \u0664\u00B2") == Texts{"x", "1", "2", " ", "3", "4", " ", "\u0664", "\u00B2"});
  CHECK(pieces("llama-bpe", "12345 it'S .x\n\n  y") == Texts{"123", "45", " it", "'S", " .", "x", "\n\n", " ", " y"});
  CHECK(pieces("qwen2", "a 12\r\n  \n z") == Texts{"a", " ", "1", "2", "\r\n  \n", " z"});
  CHECK(pieces("qwen2", "e\u0301 \u212B") == Texts{"\u00E9", " \u00C5"});  // in normal form C
  CHECK(pieces("default", "a+1234 b") == Texts{"a", "+", "123", "4", " b"});
}

TEST_CASE("any bytes come back", "[unit]") {
  const auto tokeniser = made({"a b", "\u0120 a", "\u00C3 \u00A9"});
  CHECK(tokeniser.encode("").empty());
  CHECK(tokeniser.decode({}).empty());
  const std::string text = "ab\xFF\xFE a\xC3 \xC3\xA9\xED\xA0\x80\xF4\x90\x80\x80" + std::string(1, '\0') + "\xE2\x82";
  const auto ids = tokeniser.encode(text);
  CHECK(tokeniser.decode(ids) == text);
  CHECK(ids[0] == 256);
  CHECK(ids[1] == 0xFF);
  CHECK(std::count(ids.begin(), ids.end(), 258) == 1);  // the valid character, not the cut one
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    std::string bytes(random() % 40, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % 4 == 0 ? 'a' : random() % 256);
    CHECK(tokeniser.decode(tokeniser.encode(bytes)) == bytes);
  }
}

TEST_CASE("a token's bytes are those that it stands for", "[unit]") {
  auto parts = parts_with({"\u00C3 \u00A9", "\u0120 a"});
  parts.vocabulary.emplace_back("<\uFF5Cend\uFF5C>");
  const Tokeniser tokeniser(parts, "made");
  CHECK(tokeniser.size() == 259);
  CHECK(tokeniser.bytes_of(' ') == 1);
  CHECK(tokeniser.bytes_of(256) == 2);
  CHECK(tokeniser.decode(std::vector<Index>{256, 257}) == "\u00E9 a");
  CHECK(tokeniser.bytes_of(258) == 11);
  CHECK(tokeniser.decode(std::vector<Index>{258}) == "<\uFF5Cend\uFF5C>");
  CHECK(tokeniser.encode("<\uFF5Cend\uFF5C>").size() == 11);  // no special token is recognised
  CHECK_THAT(misuse_of([&] { tokeniser.decode(std::vector<Index>{259}); }),
             ContainsSubstring("there is no token 259; expected 0 to 258"));
  CHECK_THAT(misuse_of([&] { tokeniser.bytes_of(-1); }), ContainsSubstring("no token -1"));
}

TEST_CASE("a piece of 100,000 equal letters takes far less than a quadratic time", "[unit]") {
  const auto tokeniser = made({"a a", "aa aa", "aaaa aaaa"});
  const auto begin = std::chrono::steady_clock::now();
  CHECK(tokeniser.encode(std::string(100'003, 'a')).size() == 12'500 + 2);
  CHECK(tokeniser.encode(std::string(100'000, ' ') + "a").size() == 100'001);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));  // quadratic: minutes
}

TEST_CASE("a vocabulary without some single byte encodes texts without it", "[unit]") {
  auto parts = parts_with({"a b"});
  parts.vocabulary[0x04] = "\u2764";
  const Tokeniser tokeniser(parts, "made");
  CHECK(tokeniser.encode("ab") == Ids{256});
  CHECK_THAT(misuse_of([&] { tokeniser.encode("ab \x04"); }),
             ContainsSubstring("made: the vocabulary has no token for the byte 0x04") &&
                 ContainsSubstring("expected a text without it"));
}

TEST_CASE("vocabularies and merges that make no tokeniser are refused", "[unit]") {
  CHECK_THAT(refusal_of(parts_with({})), ContainsSubstring("made: the tokeniser has no merges"));
  auto parts = parts_with({"a b"});
  parts.vocabulary.emplace_back("a");
  CHECK_THAT(refusal_of(parts), ContainsSubstring("tokens 97 and 257 are both 'a'; expected each text once"));
  parts.vocabulary.back() = "";
  CHECK_THAT(refusal_of(parts), ContainsSubstring("token 257 is the empty text"));
  parts = parts_with({"a b", "ab c"});
  parts.vocabulary.pop_back();
  CHECK_THAT(refusal_of(parts), ContainsSubstring("merge 1 is 'ab c', and 'abc' is not in the vocabulary"));
  parts = parts_with({"a b"});
  parts.merges = {"a b", "ab zz"};
  CHECK_THAT(refusal_of(parts), ContainsSubstring("merge 1 is 'ab zz', and 'zz' is not in the vocabulary"));
  for (const std::string merge : {"ab", "a b c"}) {
    parts.merges = {merge};
    CHECK_THAT(refusal_of(parts), ContainsSubstring("which is not a pair; expected two tokens with a space"));
  }
  parts.merges = {"a b", "a b"};
  CHECK_THAT(refusal_of(parts), ContainsSubstring("merge 1 is 'a b', which is there twice"));
}

TEST_CASE("a GGUF file names the rule", "[unit]") {
  const auto parts = parts_with({"1 2"});
  const auto of_gguf = [&](const std::string& model, const std::string& pre) {
    return tokeniser_of_gguf(model, pre, parts.vocabulary, parts.merges, "m.gguf");
  };
  CHECK(of_gguf("gpt2", "gpt-2").encode("12") == Ids{256});
  CHECK(of_gguf("gpt2", "smollm").encode("12") == Ids{'1', '2'});
  CHECK_THAT(misuse_of([&] { of_gguf("llama", "default"); }),
             ContainsSubstring("m.gguf: tokenizer.ggml.model is 'llama'; expected gpt2"));
  CHECK_THAT(misuse_of([&] { of_gguf("gpt2", "tekken"); }),
             ContainsSubstring("tokenizer.ggml.pre: the splitting rule 'tekken' is unknown; expected one of gpt-2, ") &&
                 ContainsSubstring("llama-bpe"));
}

TEST_CASE("tokenizer.json: both forms of merges, added tokens, the steps of splitting", "[unit]") {
  CHECK(read(made_json()).encode("ab ab") == Ids{256, ' ', 256});
  CHECK(read(with("/model/merges", Json::array({Json::array({"a", "b"})}))).encode("ab") == Ids{256});
  CHECK(read(with("/pre_tokenizer/add_prefix_space", true)).encode("ab") == Ids{' ', 256});
  CHECK(read(with("/pre_tokenizer/add_prefix_space", true)).encode(" ab") == Ids{' ', 256});
  CHECK(read(with("/normalizer", {{"type", "NFC"}})).decode(read(made_json()).encode("e\u0301")) == "e\u0301");
  CHECK(read(with("/normalizer", {{"type", "NFC"}})).encode("e\u0301") == Ids{0xC3, 0xA9});
  CHECK(read(split("Regex", "a", "Isolated")).encode("ab") == Ids{'a', 'b'});
  CHECK(read(split("String", ".", "Isolated")).encode("ab.") == Ids{256, '.'});
  CHECK(read(split("String", "b", "Removed")).encode("ab") == Ids{'a'});
  CHECK(read(split("Regex", "[ab]", "Removed", true)).encode("acb") == Ids{'a', 'b'});
  const Json digits = {{"type", "Digits"}, {"individual_digits", true}};
  CHECK(read(with("/pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {digits, made_json()["pre_tokenizer"]}}}))
            .encode(" 1") == Ids{' ', '1'});
  CHECK(read(with("/added_tokens", Json::array({added(257, "<s>", true)}))).encode("<s>") == Ids{'<', 's', '>'});
  CHECK(read(with("/added_tokens", {added(257, "  ", false), added(258, "    ", false)})).encode("ab       ab") ==
        Ids{256, 258, 257, ' ', 256});
  const Json whole = with("/model/ignore_merges", true);
  CHECK(read(whole).encode("ab") == Ids{256});
  Json unreachable = whole;
  unreachable["model"]["vocab"]["xyz"] = 257;
  CHECK(read(unreachable).encode("xyz xy") == Ids{257, ' ', 'x', 'y'});
}

TEST_CASE("tokenizer.json: anything not understood is refused by name", "[unit]") {
  CHECK_THAT(misuse_of([] { tokeniser_of_json(R"({"model": )", "t.json"); }),
             ContainsSubstring("t.json: not JSON at its byte 11; fetch the file again"));
  CHECK_THAT(misuse_of([] { tokeniser_of_json(std::string("{}\0", 3), "t.json"); }),
             ContainsSubstring("byte 2 is NUL"));
  const auto refused = [](const std::string& pointer, const Json& value, const std::string& reason) {
    CHECK_THAT(json_refusal(with(pointer, value)), ContainsSubstring(reason));
  };
  CHECK_THAT(json_refusal(Json::array()), ContainsSubstring("its top is a list; expected an object"));
  CHECK_THAT(json_refusal(Json::object()), ContainsSubstring("its top lacks 'model'"));
  refused("/spam", 1, "its top has 'spam'; expected only version, ");
  refused("/model/type", "Unigram", "the model's type is 'Unigram'; expected BPE");
  refused("/model/byte_fallback", true, "the model has byte_fallback");
  refused("/model/end_of_word_suffix", "</w>", "the model's end_of_word_suffix is \"</w>\"");
  refused("/model/dropout", 0.1, "the model's dropout is 0.1");
  refused("/model/ignore_merges", 1, "'ignore_merges' of model is 1; expected true or false");
  refused("/model/vocab", Json::array(), "the model's vocab is no object with tokens");
  refused("/model/vocab/c", 1000, "the id of 'c' is 1000; expected an integer of 0 to 256");
  refused("/model/vocab/c", -1, "the id of 'c' is -1");
  refused("/model/vocab/c", 97, "'a' and 'c' both have the id 97");
  refused("/model/merges", Json::array(), "no merges");
  refused("/model/merges", {"a", 1}, "a merge is 1; expected \"left right\"");
  refused("/model/merges", Json::array({"b a"}), "'ba' is not in the vocabulary");
  refused("/added_tokens", {added(259, "<s>", true), added(257, "<t>", true)}, "the id of '<s>' is 259");
  refused("/added_tokens", {added(258, "<s>", true), added(0, "\u0100", true)}, "no token has the id 257");
  refused("/added_tokens", Json::array({added(97, "<s>", true)}), "'a' and '<s>' both have the id 97");
  Json strips = added(257, "<s>", false);
  strips["lstrip"] = true;
  refused("/added_tokens", Json::array({strips}), "the added token '<s>' has lstrip");
  refused("/normalizer", {{"type", "Lowercase"}}, "the normalizer is 'Lowercase'; expected none, NFC");
  refused("/pre_tokenizer", {{"type", "Metaspace"}}, "pre_tokenizer has 'Metaspace'");
  refused("/pre_tokenizer", {{"type", "Digits"}}, "pre_tokenizer has no ByteLevel");
  CHECK_THAT(json_refusal(split("Regex", "a", "MergedWithNext")), ContainsSubstring("the behavior 'MergedWithNext'"));
  CHECK_THAT(json_refusal(split("Regex", "(a", "Isolated")), ContainsSubstring("'(a' is no regular expression"));
  CHECK_THAT(json_refusal(split("Glob", "a", "Isolated")), ContainsSubstring("the pattern of Split lacks 'Regex'"));
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  for (const std::string key : {"model", "pre_tokenizer", "normalizer", "added_tokens"})
    CHECK_THAT(misuse_of([&] { tokeniser_of_json(fmt::format(R"({{"{}": {}}})", key, deep), "deep"); }),
               ContainsSubstring("deep: "));
  CHECK_THAT(misuse_of([] { tokeniser_of_json(R"({"model": 1e999})", "t.json"); }),
             ContainsSubstring("t.json: a number has too large an exponent"));
  const Folder folder;
  CHECK_THAT(misuse_of([&] { read_tokeniser(folder / "none.json"); }), ContainsSubstring("none.json"));
}

TEST_CASE("patterns are read as Oniguruma reads them, or refused", "[unit]") {
  const auto reads = [](const std::string& pattern) { return translated_pattern(pattern, "p"); };
  for (const std::string same :
       {R"((?i:'s|'t)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}|.)", R"([!-/:\-\]\\`{|}~]{2,}(?<=a)(?!b))", "\u4E00+|\\."})
    CHECK(reads(same) == same);
  CHECK(reads(R"(\p{Han}\P{Greek}\u4e00)") == R"(\p{sc:Han}\P{sc:Greek}\x{4e00})");
  for (const std::string other :
       {R"(\w)",  R"(\b)",   R"(\1)",   R"(\h)",     "^a",     "a$",    "[a[b]]", "[[:alpha:]]",
        "[a&&b]", "[]a]",    R"([\S])", R"([!-\s])", "a{,3}",  "a{2}+", "a{2}?",  "a{1,2,3}",
        "a{x}",   "(?<n>a)", "(*UCP)a", R"(\p{^L})", R"(\pL)", "[a",    "a\\",    R"(\u12)"})
    CHECK_THAT(misuse_of([&] { reads(other); }), ContainsSubstring("which is not understood; expected characters, "));
  CHECK_THAT(misuse_of([] { SplitPattern("a*", false, "p"); }), ContainsSubstring("matches the empty text"));
  CHECK_THAT(misuse_of([] { SplitPattern("", false, "p"); }), ContainsSubstring("0 bytes; expected 1 to 10000"));
  CHECK_THAT(misuse_of([] { SplitPattern(R"(\p{Elvish})", false, "p"); }), ContainsSubstring("no regular expression"));
  SplitPattern::Finder finder(SplitPattern("(?:a+)+[bd]", false, "p"));
  CHECK_THAT(misuse_of([&] { finder.next(std::string(60, 'a') + "c", 0); }),
             ContainsSubstring("p: the pattern '(?:a+)+[bd]' fails on the piece 'aaaa"));
}

// Encodes texts for tests/scripts/tokeniser_test.py. ATTNBENCH_TOKENISER is a tokenizer.json, or an object with GGUF's
// model, pre, tokens and merges; ATTNBENCH_TEXTS has the texts, each after its length. ATTNBENCH_IDS becomes, for each
// text, the number of ids, the ids, and the decoded bytes after their number. All numbers are 32 bits, little endian.
TEST_CASE("encodes what a script gives", "[.tokenise]") {
  const auto contents = [](const char* variable) {
    const char* path = std::getenv(variable);
    REQUIRE(path);
    std::ifstream stream(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  const std::string json = contents("ATTNBENCH_TOKENISER"), texts = contents("ATTNBENCH_TEXTS");
  const Json root = Json::parse(json);
  const Tokeniser tokeniser =
      root.contains("pre") ? tokeniser_of_gguf(root["model"], root["pre"], root["tokens"], root["merges"], "gguf")
                           : tokeniser_of_json(json, "json");
  REQUIRE(std::getenv("ATTNBENCH_IDS"));
  std::ofstream output(std::getenv("ATTNBENCH_IDS"), std::ios::binary);
  const auto write = [&](size_t number) {
    const auto narrow = static_cast<std::uint32_t>(number);
    output.write(reinterpret_cast<const char*>(&narrow), sizeof narrow);
  };
  for (size_t at = 0; at < texts.size();) {
    std::uint32_t length = 0;
    texts.copy(reinterpret_cast<char*>(&length), sizeof length, at);
    const auto ids = tokeniser.encode(std::string_view(texts).substr(at + sizeof length, length));
    at += sizeof length + length;
    const std::string decoded = tokeniser.decode(ids);
    const auto bytes = std::accumulate(ids.begin(), ids.end(), Index(0),
                                       [&](Index sum, Index id) { return sum + tokeniser.bytes_of(id); });
    REQUIRE(bytes == static_cast<Index>(decoded.size()));
    write(ids.size());
    for (const Index id : ids) write(static_cast<size_t>(id));
    write(decoded.size());
    output << decoded;
  }
  REQUIRE(output.flush());
}

}  // namespace attnbench::tokeniser_test
