// Decoders: the memory that they keep, and the tokens that they refuse. methods_test.cpp has the claim that their rows
// are those of causal attention.
#include <algorithm>
#include <cmath>

#include "tests/cases.hpp"
#include "tests/catch.hpp"
#include "tests/misuse.hpp"
#include "tests/oracle/oracle.hpp"

namespace attnbench::decoding_test {

namespace {

constexpr double tolerance = 1e-12;

// Heads of 1, 7, 66 and 130 tokens: fewer than a window and many, both sides of a chunk of 64.
const std::vector<TestHead>& prompts() {
  static const std::vector<TestHead> all = [] {
    std::vector<TestHead> made;
    for (const Shape& shape : {Shape{.nq = 1, .nk = 1, .d = 4, .dv = 4},
                               {.nq = 7, .nk = 7, .d = 3, .dv = 5},
                               {.nq = 66, .nk = 66, .d = 1, .dv = 4},
                               {.nq = 130, .nk = 130, .d = 8, .dv = 3}})
      made.push_back(gaussian_problem(shape, 0.8));
    return made;
  }();
  return all;
}

Shape causal(Shape shape) {
  shape.mask = {.causal = true};
  return shape;
}

// Calls body(case) for every variant that decodes, on every prompt.
template <class Body>
void for_each_decoder(const Body& body) {
  for (const Params& variant : all_variants())
    for (const TestHead& problem : prompts()) {
      const Shape shape = causal(problem.shape);
      const Params params = with_small_budgets(variant, shape);
      const Claims claims = find<MethodEntry>(params.name()).claims(params, shape);
      if (!claims.no_form.empty()) continue;
      const Case one{params, claims, shape, problem};
      if (!one.draw<double>()->decoder(shape)) continue;
      INFO(to_string(one));
      body(one);
    }
}

template <class T>
Head<T> tokens(const HeadData<T>& head, Index first, Index count) {
  return {row_block(head.Q, first, count), row_block(head.K, first, count), row_block(head.V, first, count)};
}

std::vector<size_t> bytes_after(Decoder<double>& decoder, const HeadData<double>& head,
                                const std::vector<Index>& positions) {
  Context context;
  Matrix<double> out(1, head.V.cols());
  std::vector<size_t> bytes;
  Index t = 0;
  for (const Index position : positions) {
    for (; t < position; ++t) decoder.step(tokens(head, t, 1), context, out);
    bytes.push_back(decoder.bytes());
  }
  return bytes;
}

std::vector<size_t> bytes_of(const char* spec, const std::vector<Index>& positions) {
  const TestHead& problem = prompts().back();  // 130 tokens, d = 8, dv = 3
  const Shape shape = causal(problem.shape);
  const auto method = draw_method<double>(Params("methods", spec), shape, problem);
  return bytes_after(*method->decoder(shape), problem.head, positions);
}

}  // namespace

TEST_CASE("what a decoder keeps is what its method says", "[methods]") {
  const size_t token = (8 + 3) * sizeof(double);
  const std::vector<Index> positions{0, 10, 100, 130};
  CHECK(bytes_of("softmax", positions) == std::vector<size_t>{0, 10 * token, 100 * token, 130 * token});
  CHECK(bytes_of("local:window=20", positions) == std::vector<size_t>{0, 10 * token, 21 * token, 21 * token});
  CHECK(bytes_of("sink-window:sinks=4,window=20", positions) ==
        std::vector<size_t>{0, 10 * token, 25 * token, 25 * token});
  const size_t scored = token + sizeof(double) + sizeof(Index);
  CHECK(bytes_of("heavy-hitter:heavy=4,recent=20", positions) ==
        std::vector<size_t>{0, 10 * scored, 24 * scored, 24 * scored});
  const size_t code_sums = 16 * (3 + 1) * sizeof(double);
  CHECK(bytes_of("vq:codes=16", positions) == std::vector<size_t>(4, code_sums));
  const size_t sum = 3 * sizeof(double) + sizeof(Index);
  CHECK(bytes_of("uniform", positions) == std::vector<size_t>(4, sum));
  // Pages have a summary: the extremes of 8 channels, or their means.
  const size_t number = sizeof(double);
  CHECK(bytes_of("quest:page=16,keep=2", positions) ==
        std::vector<size_t>{0, 10 * token + 16 * number, 100 * token + 7 * 16 * number, 130 * token + 9 * 16 * number});
  CHECK(bytes_of("moba:block=10,keep=2", positions) ==
        std::vector<size_t>{0, 10 * token + 8 * number, 100 * token + 10 * 8 * number, 130 * token + 13 * 8 * number});
}

TEST_CASE("a cache with summaries of pages reads those that the rows of attention read", "[methods]") {
  const TestHead& problem = prompts().back();
  const Shape shape = causal(problem.shape);
  for (const char* spec : {"quest:page=4,keep=3", "quest:page=1,keep=5", "quest:page=7,keep=1", "moba:block=4,keep=3"})
    for (const Index prompt : {0, 1, 4, 50, 128}) {
      INFO(spec << " after a prompt of " << prompt);
      const auto method = draw_method<double>(Params("methods", spec), shape, problem);
      const Matrix<double> rows = attend(*method, problem.head, shape.mask);
      const auto decoder = method->decoder(shape);
      Context context;
      decoder->prefill(tokens(problem.head, 0, prompt), context);
      for (Index t = prompt; t < 130; ++t) {
        Matrix<double> row(1, 3);
        decoder->step(tokens(problem.head, t, 1), context, row);
        CHECK((row - rows.row(t)).norm() < tolerance);
      }
    }
}

// methods.md H: a state has F (dv + 1) numbers at every position. It may have a scale for each feature beside them.
TEST_CASE("states of linear attention do not grow", "[methods]") {
  for_each_decoder([](const Case& one) {
    if (find<MethodEntry>(one.params.name()).text.family != "linear" && one.params.name() != "soft-vq") return;
    if (one.shape.nq < 130) return;
    const auto bytes = bytes_after(*one.draw<double>()->decoder(one.shape), one.problem.head, {10, 100, 130});
    CHECK(bytes[0] == bytes[1]);
    CHECK(bytes[0] == bytes[2]);
  });
}

TEST_CASE("a decoder for so many tokens takes no more", "[methods]") {
  const TestHead& problem = prompts()[1];  // 7 tokens
  const Shape shape = causal(problem.shape);
  for (const char* spec : {"softmax", "softmax:cache=false", "local", "sink-window", "heavy-hitter", "quest"}) {
    INFO(spec);
    const auto method = draw_method<double>(Params("methods", spec), shape, problem);
    const auto decoder = method->decoder(shape);
    Context context;
    Matrix<double> out(1, problem.shape.dv);
    decoder->prefill(problem.head.view(), context);
    const std::string said = misuse_of([&] { decoder->step(tokens(problem.head, 0, 1), context, out); });
    CHECK(contains(said, "for 7 tokens"));
    CHECK(contains(said, "larger shape.nk"));
  }
}

TEST_CASE("sinks that reach into windows or beyond them are seen once", "[methods]") {
  const TestHead& problem = prompts().back();
  const std::vector<double> well(130, 1);
  for (const bool is_causal : {true, false}) {
    Shape shape = problem.shape;
    shape.mask.causal = is_causal;
    const auto out_of = [&](const std::string& spec) {
      return attend(*draw_method<double>(Params("methods", spec), shape, problem), problem.head, shape.mask);
    };
    const auto same = [&](const std::string& a, const std::string& b) {
      INFO(a << " and " << b);
      CHECK(worst_error(out_of(a), out_of(b), well, 1) < tolerance);
    };
    same("sink-window:sinks=0,window=5", "local:window=5");
    same("sink-window:sinks=130,window=0", "softmax");
    for (const char* spec : {"sink-window:sinks=3,window=5", "sink-window:sinks=70,window=5",
                             "sink-window:sinks=90,window=70", "sink-window:sinks=129,window=0"}) {
      INFO(spec);
      const auto want = oracle::attention(Params("methods", spec), {}, problem.head, shape.mask);
      CHECK(worst_error(out_of(spec), want.out, well, 1) < tolerance);
    }
    if (!is_causal) continue;
    same("sink-window:sinks=124,window=5", "softmax");
    same("heavy-hitter:heavy=0,recent=6", "local:window=5");
    same("heavy-hitter:heavy=124,recent=6", "softmax");
  }
}

}  // namespace attnbench::decoding_test
