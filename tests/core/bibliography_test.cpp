// Every number at arXiv that an entry of any catalogue cites has its BibTeX.
#include "harness/core/bibliography.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>

#include "harness/core/registry.hpp"
#include "harness/store/citable.hpp"
#include "harness/store/store.hpp"
#include "tests/misuse.hpp"
#include "tests/store/results_file.hpp"

namespace attnbench {

TEST_CASE("every paper that a reference names by its number has a BibTeX entry", "[unit]") {
  const auto entries = bibliography();
  size_t named = 0;
  for (const auto& [plural, entries_of_kind] : catalogues())
    for (const auto& name : entries_of_kind->names()) {
      const std::string& reference = entries_of_kind->description(name).reference;
      for (const auto& key : cited_keys(reference)) {
        INFO(plural << " " << name << ": " << reference);
        ++named;
        CHECK(entries.count(key) == 1);
      }
    }
  CHECK(named > 50);  // or this has looked at nothing
}

TEST_CASE("a BibTeX entry says of itself what its key says", "[unit]") {
  for (const auto& [key, entry] : bibliography()) {
    INFO(key);
    for (const char* field : {"author", "title", "year"}) CHECK_FALSE(entry.fields.at(field).empty());
    CHECK(entry.fields.at("year").find_first_not_of("0123456789") == std::string::npos);
    if (key.starts_with("kexue.fm/"))
      CHECK(contains(entry.fields.at("howpublished"), key));
    else {
      CHECK(entry.fields.at("eprint") == key);
      CHECK(cited_keys("arXiv:" + key) == std::set{key});
    }
    // A number at arXiv begins with the year and the month of its first version.
    if (std::isdigit(static_cast<unsigned char>(key[0]))) CHECK(entry.fields.at("year").substr(2) == key.substr(0, 2));
  }
}

TEST_CASE("references are read in all spellings of their keys", "[unit]") {
  CHECK(cited_keys("Choromanski et al. 2020, arXiv:2009.14794, Lemma 1") == std::set<std::string>{"2009.14794"});
  CHECK(cited_keys("Su Jianlin, kexue.fm 8338; Su 2021, kexue.fm/archives/8610") ==
        std::set<std::string>{"kexue.fm/archives/8338", "kexue.fm/archives/8610"});
  CHECK(cited_keys("Mezzadri 2007, arXiv:math-ph/0609050.") == std::set<std::string>{"math-ph/0609050"});
  CHECK(cited_keys("Hurley and Rickard 2009, arXiv:0811.4706") == std::set<std::string>{"0811.4706"});
  CHECK(cited_keys("Rahimi and Recht 2007").empty());
}

TEST_CASE("a configuration cites what its parameters name, and what nests in it", "[unit]") {
  const auto references = references_of("methods", {"methods", "combine:[local],[performer:features=saderf]"});
  for (const char* key : {"2110.15343", "2009.14794", "2302.00787"}) {
    INFO(key);
    CHECK(std::any_of(references.begin(), references.end(),
                      [&](const auto& reference) { return cited_keys(reference).count(key) > 0; }));
  }
}

TEST_CASE("a reference names an entry of a plugin by arXiv number, DOI or key", "[unit]") {
  const Folder folder;
  std::ofstream(folder / "mine.bib") << R"(% exported by a reference manager
@string{nips = "Neural Information Processing Systems"}
@comment{ @misc{hidden, title = {no entry}} }
@InProceedings{doe2026gated,
  Author = "Doe, Jane and {van der} Roe, {R.}",
  title = "{Gates}" # { and more},
  booktitle = nips, year = 2026, date-added = {today},
  eprint = {2601.00001},
}
@article{10.1000/182, author = {A}, title = {B}, year = {2001}}
@article{smith, author = {S}, title = {T}, year = {2002}, doi = {10.1000/183}}
@misc{2009.14794, title = {another text for a paper that attnbench has}}
)";
  Bibliography known = bibliography();
  const size_t before = known.size();
  const std::string of_the_tree = known.at("2009.14794").text;
  add_bibliography(known, folder / "mine.bib");
  CHECK(known.size() == before + 5);  // two names for each of the first and the third
  CHECK(known.at("2009.14794").text == of_the_tree);
  const BibliographyEntry& doe = known.at("2601.00001");
  CHECK(doe.key == "doe2026gated");
  CHECK(doe.fields.at("author") == "Doe, Jane and {van der} Roe, {R.}");
  CHECK(doe.fields.at("title") == "{Gates} and more");
  CHECK(doe.fields.at("booktitle") == "nips");
  CHECK(doe.fields.at("year") == "2026");
  CHECK(doe.text.starts_with("@InProceedings{doe2026gated,"));
  CHECK(doe.text.ends_with("\n}"));
  const auto titles = [&](const std::string& reference) {
    std::set<std::string> keys;
    for (const auto& name : cited_keys(reference, known)) keys.insert(known.at(name).key);
    return keys;
  };
  using Keys = std::set<std::string>;
  CHECK(titles("Doe and Roe 2026, arXiv:2601.00001, eq. 3") == Keys{"doe2026gated"});
  CHECK(titles("Smith 2002, doi:10.1000/183, eq. 3") == Keys{"smith"});
  CHECK(titles("https://doi.org/10.1000/182.") == Keys{"10.1000/182"});
  CHECK(titles("smith, section 2") == Keys{"smith"});
  CHECK(titles("Blacksmith, smithy and smith_2") == Keys{});
  CHECK(cited_keys("doi:10.1000/a(b), page 3") == Keys{"10.1000/a(b"});
  CHECK(contains(misuse_of([&] { add_bibliography(known, folder / "none.bib"); }), "none.bib: it cannot be read"));
}

TEST_CASE("BibTeX is read with braces in its values, and what is none is refused with its line", "[unit]") {
  const auto entries = parse_bibliography(
      "a comment\n@misc{a/1, author = {{\\L}uk, A and others}, title={T {of} T}, year = {2001}, note = {}, }\n", "f");
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].key == "a/1");
  CHECK(entries[0].fields.at("author") == "{\\L}uk, A and others");
  CHECK(entries[0].fields.at("title") == "T {of} T");
  CHECK(entries[0].text.back() == '}');
  const std::string good = "@misc{a, author = {A}, title = {T}, year = {2001}}\n";
  for (const auto& [text, problem] : std::vector<std::pair<std::string, std::string>>{
           {"@misc{b, author = {B, title = {T}, year = {2002}", "a brace that nothing closes"},
           {"@misc{b, author = \"B, title = {T}, year = {2002}}", "a quotation mark that nothing closes"},
           {"@misc{b, author = {B}", "no '}'"},
           {"@misc{b, author = }", "no value"},
           {"@misc{b, author = {B} # }", "no value"},
           {"@misc{b, author = two words}", "no value"},
           {"@string{b", "a brace that nothing closes"},
           {"@misc{b author = {B}", "no key"},
           {"@misc{, author = {B}}", "no key"},
           {"@{b}", "no name"}}) {
    INFO(text);
    const std::string both = good + text;
    const std::string message = misuse_of([&] { parse_bibliography(both, "some.bib"); });
    CHECK(contains(message, "some.bib: line 2"));
    CHECK(contains(message, problem));
  }
}

TEST_CASE("a store says which methods and sources there are to cite", "[unit]") {
  const Folder folder;
  Store store(folder / "results.db");
  const auto run = store.begin_run("test", "{}");
  for (const Index n : {64, 128})
    for (const char* method : {"softmax", "linear"}) store.record(run, cell(method, n), 0, {}, 0.1, {});
  store.put_reproduction({.recipe = "r",
                          .verdicts = {{{.text = "s", .source = "a source"}, {Ruling::holds, "1"}},
                                       {{"without one"}, {Ruling::holds, "2"}}}});
  const auto [methods, sources] = citable(folder / "results.db");
  CHECK(methods == std::set<std::string>{"linear", "softmax"});
  CHECK(sources == std::set<std::string>{"a source"});
}

}  // namespace attnbench
