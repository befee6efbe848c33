// Specs, parameters and registries: one string names one configuration. Any other string is a Misuse that says what
// was given and what was expected.
#include "harness/core/spec.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "harness/core/approximation.hpp"
#include "harness/core/parameters.hpp"
#include "harness/core/projection.hpp"
#include "harness/core/registry.hpp"
#include "harness/random/streams.hpp"
#include "tests/misuse.hpp"

namespace attnbench::spec_test {

namespace {

using Arguments = std::vector<std::pair<std::string, std::string>>;

// A catalogue with a parameter of every kind, and a second one that its `mount` parameter names.
struct Instrument {
  static constexpr const char* kind = "instrument";
  static constexpr const char* plural = "instruments";
  Description text;
  std::vector<Parameter> parameters;
};
struct Mount {
  static constexpr const char* kind = "mount";
  static constexpr const char* plural = "mounts";
  Description text;
  std::vector<Parameter> parameters;
};

// Registered when a test asks for it, so that no other test sees more catalogues than the program has.
void register_instruments() {
  static const bool once = [] {
    add(Mount{{.name = "table"}, {}});
    add(Mount{{.name = "wall"}, {Parameter::integer("screws", 4, "", 1, 8)}});
    add(Mount{{.name = "arm"}, {Parameter::real("reach", 1, "", 0, 2)}});
    add(Instrument{{.name = "bell"}, {}});
    add(Instrument{
        {.name = "meter"},
        {Parameter::integer("range", 3, "", 1, 10), Parameter::real("gain", 0.5, "", -1, 1),
         Parameter::flag("logarithmic", false, ""), Parameter::choice("colour", "green", "", {"green", "red"}),
         Parameter::text("label", "", ""), Parameter::entry("mount", "table", "", "mounts")}});
    add(Instrument{{.name = "twice"},
                   {Parameter::real("reach", 1, "", 0, 2), Parameter::entry("mount", "arm", "", "mounts")}});
    return true;
  }();
  (void)once;
}

Params meter(const std::string& arguments) {
  register_instruments();
  return {"instruments", arguments.empty() ? "meter" : "meter:" + arguments};
}

std::string misuse_of_meter(const std::string& arguments) {
  return misuse_of([&] { meter(arguments); });
}

size_t below(Generator& generator, size_t bound) { return generator() % bound; }

// One to four edits: insert, delete, replace, repeat a part, or splice in a part of another string.
std::string mutated(Generator& generator, std::string text, const std::vector<std::string>& corpus) {
  static const std::string alphabet = std::string("[],:=-_. amf019") + '\0' + '\n' + '\xff' + "[],=";
  for (size_t edits = 1 + below(generator, 4); edits > 0; --edits) {
    const size_t at = below(generator, text.size() + 1), length = below(generator, 6);
    const char c = alphabet[below(generator, alphabet.size())];
    switch (below(generator, 5)) {
      case 0:
        text.insert(at, 1, c);
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        if (at < text.size()) text[at] = c;
        break;
      case 3:
        text.insert(at, text.substr(at, length));
        break;
      default: {
        const std::string& other = corpus[below(generator, corpus.size())];
        text.insert(at, other.substr(below(generator, other.size())));
      }
    }
  }
  return text;
}

std::string random_text(Generator& generator) {
  static const std::string alphabet = "[],:=a1-";
  std::string text;
  for (size_t length = below(generator, 16); length > 0; --length) text += alphabet[below(generator, alphabet.size())];
  return text;
}

}  // namespace

TEST_CASE("a spec is a name and its arguments in their order", "[unit]") {
  CHECK(parse_spec("softmax").name == "softmax");
  CHECK(parse_spec("softmax").arguments.empty());
  const Spec spec = parse_spec("performer:m=256,projection=orthogonal");
  CHECK(spec.name == "performer");
  CHECK(spec.arguments == Arguments{{"m", "256"}, {"projection", "orthogonal"}});
}

TEST_CASE("brackets hold what would end a value, and are no part of it", "[unit]") {
  const auto arguments = [](const char* text) { return parse_spec(text).arguments; };
  CHECK(arguments("file:path=[a,b.npz],head=1") == Arguments{{"path", "a,b.npz"}, {"head", "1"}});
  CHECK(arguments("per-head:[local:window=8],[performer:m=4,features=trig]") ==
        Arguments{{"", "local:window=8"}, {"", "performer:m=4,features=trig"}});
  CHECK(arguments("combine:[per-head:[local],[performer:m=4]]") == Arguments{{"", "per-head:[local],[performer:m=4]"}});
  CHECK(arguments("file:[[x]]") == Arguments{{"", "[x]"}});
}

TEST_CASE("a value without a key may hold anything but commas and brackets", "[unit]") {
  const auto arguments = [](const char* text) { return parse_spec(text).arguments; };
  CHECK(arguments("vq:256") == Arguments{{"", "256"}});
  CHECK(arguments("file:/a b/c.npz,2") == Arguments{{"", "/a b/c.npz"}, {"", "2"}});
  CHECK(arguments("file:C:/heads.npz") == Arguments{{"", "C:/heads.npz"}});
  CHECK(arguments("file:/x=1/c.npz") == Arguments{{"", "/x=1/c.npz"}});
  CHECK(arguments("file:path=a=b") == Arguments{{"path", "a=b"}});
  CHECK(arguments("file:[a=b]") == Arguments{{"", "a=b"}});
}

TEST_CASE("every malformed spec is refused with what was given and what was expected", "[unit]") {
  struct Malformed {
    std::string text, given, expected;
  };
  const std::vector<Malformed> all = {
      {"", "spec ''", "expected name"},
      {":", "spec ':'", "expected name"},
      {":m=3", "spec ':m=3'", "expected name"},
      {"per former", "'per former'", "expected letters"},
      {"performer=3", "'performer=3'", "expected letters"},
      {"[performer]", "'[performer]'", "expected letters"},
      {"performer,m=3", "'performer,m=3'", "expected letters"},
      {"p\xc3\xa9rformer", "p\xc3\xa9rformer", "expected letters"},
      {"performer:", "performer:", "expected key=value"},
      {"performer:m=3,", "performer:m=3,", "expected key=value"},
      {"performer:,m=3", "performer:,m=3", "expected key=value"},
      {"performer:m=3,,d=4", "performer:m=3,,d=4", "expected key=value"},
      {"performer:m=", "'m='", "expected key=value"},
      {"performer:m=[]", "'m=[]'", "expected key=value"},
      {"performer:[]", "'[]'", "expected key=value"},
      {"performer:m=[3", "performer:m=[3", "add ']'"},
      {"performer:[[3]", "performer:[[3]", "add ']'"},
      {"performer:m=3]", "performer:m=3]", "open the bracket"},
      {"performer:m=]3[", "performer:m=]3[", "open the bracket"},
      {"performer:m=3,]", "performer:m=3,]", "open the bracket"},
      {"per-head:[local][performer]", "'[local][performer]'", "around the whole value"},
      {"file:a[1].npz", "'a[1].npz'", "[a[1].npz]"},
      {"file:path=a[1]", "'a[1]'", "[a[1]]"},
      {"file:path=[a]1", "'[a]1'", "[[a]1]"},
  };
  for (const auto& [text, given, expected] : all) {
    CAPTURE(text);
    const std::string message = misuse_of([&, spec = text] { parse_spec(spec); });
    CHECK(contains(message, given));
    CHECK(contains(message, expected));
  }
}

TEST_CASE("a spec is read up to 4096 characters, and a zero byte is no end", "[unit]") {
  CHECK_THROWS_AS(parse_spec(std::string_view("soft\0max", 8)), Misuse);
  CHECK(parse_spec("file:" + std::string(4091, 'x')).arguments.front().second.size() == 4091);
  CHECK(contains(misuse_of([] { parse_spec("file:" + std::string(4092, 'x')); }), "at most 4096"));
  CHECK(contains(misuse_of([] { parse_spec(std::string(100'000, '[')); }), "at most 4096"));
}

TEST_CASE("brackets nest sixteen deep and no deeper", "[unit]") {
  // Found by fuzzing: each level of per-head:[per-head:[...]] is read again by those around it.
  const auto nested = [](size_t depth) {
    return "per-head:" + std::string(depth, '[') + 'x' + std::string(depth, ']');
  };
  CHECK(parse_spec(nested(16)).arguments.size() == 1);
  CHECK(contains(misuse_of([&] { parse_spec(nested(17)); }), "more than 16 deep; nest less"));
}

TEST_CASE("a spec is spelled with brackets only where they are needed, and reads back as itself", "[unit]") {
  const auto spelled = [](const char* text) { return to_string(parse_spec(text)); };
  for (const char* text :
       {"softmax", "performer:m=256,projection=orthogonal", "file:path=[a,b.npz],head=1", "file:[[x]]", "file:[a=b]",
        "file:path=a=b", "file:/x=1/c.npz", "combine:[per-head:[local],[performer:m=4]]"})
    CHECK(spelled(text) == text);
  CHECK(spelled("performer:m=[256]") == "performer:m=256");
  CHECK(spelled("per-head:[local:window=8],[performer]") == "per-head:local:window=8,performer");
}

TEST_CASE("a hundred thousand random specs are read or refused, and what is read reads back as itself", "[unit]") {
  const std::vector<std::string> corpus = {"softmax",
                                           "performer:m=256,projection=orthogonal,features=positive",
                                           "truncated:base=performer,window=8,m=16,renormalise=false",
                                           "per-head:[local:window=8],[performer:m=4]",
                                           "file:path=[a,b.npz],head=1",
                                           "file:[a=b],[[x],[y]]",
                                           "vq:64,sweeps=3"};
  Generator generator = Streams(1).stream("spec fuzz");
  int read = 0, refused = 0;
  for (int i = 0; i < 100'000; ++i) {
    const std::string text =
        i % 4 == 0 ? random_text(generator) : mutated(generator, corpus[below(generator, corpus.size())], corpus);
    try {
      const Spec spec = parse_spec(text);
      const std::string spelled = to_string(spec);
      const Spec again = parse_spec(spelled);
      if (again.name != spec.name || again.arguments != spec.arguments || to_string(again) != spelled) {
        CAPTURE(text, spelled);
        FAIL("a spec does not read back as itself");
      }
      ++read;
    } catch (const Misuse&) {
      ++refused;
    }
  }
  CHECK(read > 10'000);
  CHECK(refused > 10'000);
}

TEST_CASE("parameters that are not given have their defaults", "[unit]") {
  const Params params = meter("");
  CHECK(params.name() == "meter");
  CHECK(params.integer("range") == 3);
  CHECK(params.real("gain") == 0.5);
  CHECK_FALSE(params.flag("logarithmic"));
  CHECK(params.text("colour") == "green");
  CHECK(params.text("label").empty());
  CHECK(params.text("mount") == "table");
  CHECK(params.has("range"));
  CHECK_FALSE(params.has("reach"));
  CHECK(params.values() == Arguments{{"range", "3"},
                                     {"gain", "0.5"},
                                     {"logarithmic", "false"},
                                     {"colour", "green"},
                                     {"label", ""},
                                     {"mount", "table"}});
}

TEST_CASE("given parameters are read in any order, and one without a key is the first", "[unit]") {
  const Params params = meter("mount=wall,gain=-1,7,logarithmic=true,colour=red,label=[a, b],screws=8");
  CHECK(params.integer("range") == 7);
  CHECK(params.real("gain") == -1);
  CHECK(params.flag("logarithmic"));
  CHECK(params.text("colour") == "red");
  CHECK(params.text("label") == "a, b");
  CHECK(params.integer("screws") == 8);
  CHECK(params.spec() == "meter:range=7,gain=-1,logarithmic=true,colour=red,label=[a, b],mount=wall,screws=8");
}

TEST_CASE("an unknown parameter is refused with the nearest names, or with all when none is near", "[unit]") {
  CHECK(contains(misuse_of_meter("rang=3"), "meter: unknown parameter 'rang'; did you mean range?"));
  CHECK(contains(misuse_of_meter("xyz=3"), "known: range, gain, logarithmic, colour, label, mount"));
  CHECK(contains(misuse_of_meter("reach=1"), "unknown parameter 'reach'"));
  CHECK(contains(misuse_of_meter("mount=arm,screws=3"), "unknown parameter 'screws'"));
  CHECK(contains(misuse_of_meter("mount=arm,screws=3"), "reach"));
  register_instruments();
  CHECK(contains(misuse_of([] { Params("instruments", "bell:tone=3"); }), "takes no parameters, but tone=3"));
  CHECK(contains(misuse_of([] { Params("instruments", "bell:3"); }), "takes no parameters, but '3'"));
}

TEST_CASE("a parameter that is given twice is refused, once without its key as well", "[unit]") {
  CHECK(contains(misuse_of_meter("gain=1,gain=1"), "'gain' is given twice"));
  CHECK(contains(misuse_of_meter("3,range=4"), "'range' is given twice"));
  CHECK(contains(misuse_of_meter("3,4"), "'range' is given twice"));
  CHECK(contains(misuse_of_meter("unknown=1,unknown=2"), "'unknown' is given twice"));
}

TEST_CASE("only whole numbers within the range are integers", "[unit]") {
  for (const char* value : {"0", "11", "-1", "1e3", "1e0", "3.0", "3.", "+3", " 3", "3 ", "0x3", "nan", "inf", "three",
                            "9223372036854775807", "9223372036854775808", "99999999999999999999", "-"}) {
    const std::string message = misuse_of_meter(std::string("range=") + value);
    CHECK(contains(message, std::string("range=") + value));
    CHECK(contains(message, "expected an integer from 1 to 10"));
  }
  CHECK(meter("range=1").integer("range") == 1);
  CHECK(meter("range=10").integer("range") == 10);
}

TEST_CASE("only finite numbers within the range are numbers", "[unit]") {
  for (const char* value : {"1.0000000000000002", "-1.1", "nan", "-nan", "nan(1)", "inf", "-inf", "infinity", "1e999",
                            "-1e999", "1e-999", "0.5x", "0x1p-1", "1e", ".", "+0.5", " 0.5", "half"}) {
    const std::string message = misuse_of_meter(std::string("gain=") + value);
    CHECK(contains(message, std::string("gain=") + value));
    CHECK(contains(message, "expected a number from -1 to 1"));
  }
  CHECK(meter("gain=1").real("gain") == 1);
  CHECK(meter("gain=-1").real("gain") == -1);
  CHECK(meter("gain=1e-3").real("gain") == 1e-3);
  CHECK(meter("gain=5e-324").real("gain") == 5e-324);
}

TEST_CASE("flags, choices and names of entries are refused with what is allowed", "[unit]") {
  for (const char* value : {"1", "yes", "True", "TRUE"})
    CHECK(contains(misuse_of_meter(std::string("logarithmic=") + value), "expected true or false"));
  CHECK(contains(misuse_of_meter("colour=blue"), "colour=blue is not allowed; expected one of green, red"));
  CHECK(contains(misuse_of_meter("mount=tabel"), "unknown mount in mount=tabel"));
  CHECK(contains(misuse_of_meter("mount=ar"), "did you mean arm?"));
  CHECK(contains(misuse_of([] { Params("instruments", "metr"); }), "unknown instrument 'metr'; did you mean meter?"));
}

TEST_CASE("a value has one spelling, and a default is not spelled at all", "[unit]") {
  CHECK(meter("").spec() == "meter");
  CHECK(meter("range=3,gain=0.5,logarithmic=false,colour=green,mount=table").spec() == "meter");
  CHECK(meter("range=003,gain=5e-1").spec() == "meter");
  CHECK(meter("gain=0.250,range=05").spec() == "meter:range=5,gain=0.25");
  CHECK(meter("gain=-0").spec() == "meter:gain=0");
  CHECK(meter("gain=.1").spec() == "meter:gain=0.1");
  CHECK(meter("gain=0.1000000000000000055511151231257827").spec() == "meter:gain=0.1");
  CHECK(meter("mount=wall,screws=4").spec() == "meter:mount=wall");
  CHECK(meter("label=[x]").spec() == "meter:label=x");
  for (const char* arguments : {"range=9", "label=[a,[b]]", "label=a=b", "label=[[x][y]]",
                                "gain=5e-324,label= ", "mount=arm,reach=0.3333333333333333"}) {
    CAPTURE(arguments);
    const Params params = meter(arguments);
    const Params again("instruments", params.spec());
    CHECK(again.spec() == params.spec());
    CHECK(again.values() == params.values());
  }
}

TEST_CASE("changing one parameter keeps the others and is checked like the first time", "[unit]") {
  const Params params = meter("range=9,mount=arm,reach=0.5");
  CHECK(params.with("gain", "0.25").spec() == "meter:range=9,gain=0.25,mount=arm,reach=0.5");
  CHECK(params.with("range", "3").spec() == "meter:mount=arm,reach=0.5");
  CHECK(params.with("label", "a,b").spec() == "meter:range=9,label=[a,b],mount=arm,reach=0.5");
  CHECK(params.spec() == "meter:range=9,mount=arm,reach=0.5");
  CHECK(contains(misuse_of([&] { params.with("range", "11"); }), "range=11 is not allowed"));
  CHECK(contains(misuse_of([&] { params.with("breadth", "11"); }), "unknown parameter 'breadth'"));
  CHECK(contains(misuse_of([&] { params.with("mount", "table"); }), "unknown parameter 'reach'"));
  CHECK(contains(misuse_of([&] { params.with("label", "a]b"); }), "brackets balance"));
}

TEST_CASE("an entry that a parameter names brings in its own parameters", "[unit]") {
  const Params params("methods", "truncated:base=performer,features=trig,m=16,projection=iid,window=3");
  CHECK(params.integer("m") == 16);
  CHECK(params.text("projection") == "iid");
  const Params base = params.nested("base");
  CHECK(base.spec() == "performer:features=trig,m=16,projection=iid");
  CHECK_FALSE(base.has("window"));
  CHECK(Params("methods", "truncated").nested("base").spec() == "linear");
  CHECK(meter("mount=arm,reach=0.5").nested("mount").spec() == "arm:reach=0.5");
  CHECK_THROWS_AS(meter("").nested("gain"), std::logic_error);
  CHECK_THROWS_AS(meter("").nested("absent"), std::logic_error);
  const auto files = params.source_files();
  const auto names_file = [&](const char* end) {
    return std::any_of(files.begin(), files.end(), [&](const std::string& file) { return file.ends_with(end); });
  };
  for (const char* end : {"truncated.cpp", "performer.cpp", "features/trig.cpp", "projections/iid.cpp"})
    CHECK(names_file(end));
  CHECK_FALSE(names_file("positive.cpp"));
}

TEST_CASE("two parts of a spec with a parameter of one name are refused together", "[unit]") {
  register_instruments();
  CHECK(contains(misuse_of([] { Params("instruments", "twice"); }), "mount 'arm' has a parameter 'reach'"));
  CHECK(Params("instruments", "twice:mount=table").has("reach"));
}

TEST_CASE("every registered entry's defaults are a configuration, spelled by its name alone", "[unit]") {
  for (const char* plural : {"methods", "features", "deterministic-features", "projections", "inputs", "experiments"}) {
    CHECK_FALSE(catalogue(plural).names().empty());
    for (const auto& name : catalogue(plural).names()) {
      CAPTURE(plural, name);
      CHECK(Params(plural, name).spec() == name);
      CHECK(parse_spec(name).name == name);
    }
  }
}

TEST_CASE("random configurations are made or refused, and what is made reads back as itself", "[unit]") {
  const std::vector<std::pair<std::string, std::string>> corpus = {
      {"methods", "performer:m=256,projection=orthogonal,features=positive"},
      {"methods", "truncated:base=performer,window=8,m=16,features=trig,renormalise=false"},
      {"methods", "vq:64,sweeps=3"},
      {"inputs", "clustered:clusters=4,spread=0.25,scale=1.5"},
      {"inputs", "file:path=[a,b.npz],head=1"},
      {"experiments", "kernel-error:draws=64,pairs=4"},
      {"instruments", "meter:3,gain=0.5,logarithmic=true,colour=red,label=[a=b],mount=arm,reach=0.5"}};
  register_instruments();
  std::vector<std::string> texts;
  for (const auto& [plural, text] : corpus) texts.push_back(text);
  Generator generator = Streams(1).stream("configuration fuzz");
  int made = 0, refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto& [plural, valid] = corpus[below(generator, corpus.size())];
    const std::string text = mutated(generator, valid, texts);
    try {
      const Params params(plural, text);
      const Params again(plural, params.spec());
      if (again.spec() != params.spec() || again.values() != params.values()) {
        CAPTURE(text, params.spec());
        FAIL("a configuration does not read back as itself");
      }
      ++made;
    } catch (const Misuse&) {
      ++refused;
    }
  }
  CHECK(made > 500);
  CHECK(refused > 10'000);
}

TEST_CASE("a name that is registered twice is kept aside with both files, and the first stays", "[unit]") {
  register_instruments();
  auto& duplicates = duplicate_registrations();
  const size_t before = duplicates.size();
  CHECK_FALSE(Registry<Instrument>::instance().add({{.name = "bell", .summary = "another"}, {}}, "another.cpp"));
  REQUIRE(duplicates.size() == before + 1);
  CHECK(contains(duplicates.back(), "instrument 'bell'"));
  CHECK(contains(duplicates.back(), "spec_test.cpp"));
  CHECK(contains(duplicates.back(), "another.cpp"));
  CHECK(find<Instrument>("bell").text.summary.empty());
  duplicates.pop_back();
}

TEST_CASE("no name of this build is registered twice", "[unit]") { CHECK(duplicate_registrations().empty()); }

TEST_CASE("a registry lists its names in order and knows the file of each", "[unit]") {
  register_instruments();
  const Catalogue& instruments = catalogue("instruments");
  CHECK(instruments.kind() == "instrument");
  CHECK(instruments.names() == std::vector<std::string>{"bell", "meter", "twice"});
  REQUIRE(instruments.source_files("bell").size() == 1);
  CHECK(contains(instruments.source_files("bell").front(), "spec_test.cpp"));
  CHECK(instruments.parameters("meter").size() == 6);
  CHECK_THROWS_AS(catalogue("nothing"), std::logic_error);
}

TEST_CASE("an unknown name is refused with the nearest ones", "[unit]") {
  CHECK(
      contains(misuse_of([] { find<MethodEntry>("perfomer"); }), "unknown method 'perfomer'; did you mean performer"));
  CHECK(contains(misuse_of([] { find<MethodEntry>("softmx"); }), "did you mean softmax?"));
  // Without a near one: all of them, or where to read them if they are many.
  CHECK(contains(misuse_of([] { find<MethodEntry>("quadrature"); }), "attnbench list prints the "));
  CHECK(contains(misuse_of([] { find<MethodEntry>(""); }), "attnbench list prints the "));
  CHECK(contains(misuse_of([] { find<ProjectionEntry>("quadrature"); }), "known: "));
}

TEST_CASE("names are near by a few edits or a common beginning", "[unit]") {
  const std::vector<std::string> known = {"performer", "softmax", "d"};
  const auto nearest = [&](const std::string& given) { return nearest_names(given, known); };
  CHECK(nearest("prformer") == "; did you mean performer?");
  CHECK(nearest("performerr") == "; did you mean performer?");
  CHECK(nearest("sotfmax") == "; did you mean softmax?");
  CHECK(nearest("dv") == "; did you mean d?");
  CHECK(nearest("linear") == "; known: performer, softmax, d");
  CHECK(nearest(std::string(100'000, 'x')) == "; known: performer, softmax, d");
  CHECK(nearest_names("x", {}) == "; none are known here");
}

}  // namespace attnbench::spec_test
