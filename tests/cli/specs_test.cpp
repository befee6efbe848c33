// Specs as users type them, and text that fits a terminal.
#include "harness/cli/specs.hpp"

#include "harness/cli/terminal.hpp"
#include "harness/core/approximation.hpp"
#include "tests/catch.hpp"
#include "tests/misuse.hpp"

namespace attnbench::specs_test {

using Words = std::vector<std::string>;

TEST_CASE("commas separate methods, and not the arguments of one method", "[unit]") {
  const auto specs = [](const Words& words) { return method_specs("--methods", words); };
  CHECK(specs({"a", "b,c"}) == Words{"a", "b", "c"});
  CHECK(specs({"performer:m=64,projection=iid,local:window=8"}) ==
        Words{"performer:m=64,projection=iid", "local:window=8"});
  CHECK(specs({"performer:m=64,softmax"}) == Words{"performer:m=64", "softmax"});
  CHECK(specs({"per-head:[local:window=8,causal=x],[vq],softmax"}) ==
        Words{"per-head:[local:window=8,causal=x],[vq],softmax"});
  CHECK(specs({"scatterbrain:local,performer"}) == Words{"scatterbrain:local,performer"});  // an alias of combine
  CHECK(specs({"per-head,softmax"}) == Words{"per-head", "softmax"});
  for (const char* text : {"", "a,", ",a", "a,,b"})
    CHECK_THAT(misuse_of([&] { specs({text}); }), ContainsSubstring("--methods: an empty spec"));
}

TEST_CASE("a path of heads is the input file, and everything else is as it was", "[unit]") {
  CHECK(input_spec("heads.npz") == "file:heads.npz");
  CHECK(input_spec("../a/heads.safetensors,head=3") == "file:../a/heads.safetensors,head=3");
  CHECK(input_spec("a[1].npz") == "file:[a[1].npz]");
  for (const char* same : {"file:heads.npz", "file:heads.npz,head=all", "gaussian:scale=0.5", "model", "t.py"})
    CHECK(input_spec(same) == same);
  CHECK(input_spec("t.pt,head=1") == "file:t.pt,head=1");  // whose reader tells how to convert it
  CHECK(input_spec("t.pth") == "file:t.pth");
  CHECK(with_all_heads({"gaussian", "model:layer=1,head=all"}) ==
        Words{"gaussian", "model:layer=1,head=0", "model:layer=1,head=1", "model:layer=1,head=2"});
  CHECK_THAT(remark_on_heads("model"),
             ContainsSubstring("model has 3 heads; this is head 1 (model:head=all takes all)"));
  CHECK(remark_on_heads("model:head=1").empty());
  CHECK(remark_on_heads("gaussian").empty());
}

TEST_CASE("lines break between words, and a word that is too long stays whole", "[unit]") {
  CHECK(wrapped("one two three", 7, 0) == "one two\nthree");
  CHECK(wrapped("one two three", 9, 2, 4) == "one\n  two\n  three");
  CHECK(wrapped("one\ntwo three", 20, 1) == "one\n two three");
  CHECK(wrapped("unbreakable", 4, 0) == "unbreakable");
  CHECK(wrapped("", 10, 0).empty());
  CHECK(wrapped("one two three", 13, 3) == "one two three");  // "one" ends where later lines begin
  CHECK(wrapped("one   two three", 9, 2) == "one   two\n  three");
  CHECK(wrapped("a \x1b[31mFAIL\x1b[0m b", 8, 0) == "a \x1b[31mFAIL\x1b[0m b");  // styles take no room
  CHECK(wrapped("\u00b1\u00b1 \u00b1\u00b1", 5, 0) == "\u00b1\u00b1 \u00b1\u00b1");
  CHECK(wrapped_lines("  one two\n\nthree four\n", 7, 4) == "  one\n    two\n\nthree\n    four\n");
  CHECK(wrapped_lines("  one two", std::string::npos, 4) == "  one two");
}

TEST_CASE("an alias is the method in every case, and no name is an alias of another method", "[unit]") {
  const auto& methods = catalogue("methods");
  CHECK(Params("methods", "favor:m=8").spec() == "performer:m=8");
  CHECK(Params("methods", "FAVOR+:m=8").spec() == "performer:m=8");
  CHECK(Params("methods", "per-head:[flash],[h2o]").spec() == "per-head:softmax,heavy-hitter");
  CHECK(methods.canonical("Nystromformer") == "nystrom");
  CHECK_FALSE(methods.has("Performer"));  // the names themselves have one spelling
  CHECK_THAT(misuse_of([&] { methods.canonical("favour"); }), ContainsSubstring("did you mean favor?"));
  CHECK_THAT(misuse_of([&] { methods.canonical("xyzzy"); }), !ContainsSubstring("favor"));
  for (const auto& name : methods.names())
    for (const auto& alias : methods.description(name).aliases) {
      INFO(alias);
      CHECK(methods.canonical(alias) == name);
      CHECK(std::none_of(alias.begin(), alias.end(), [](char c) { return c >= 'A' && c <= 'Z'; }));
    }
}

}  // namespace attnbench::specs_test
