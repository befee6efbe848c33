// Decoders of every registered method that has one: a prompt of any length and then one token after another give the
// rows of causal attention over the whole. The tolerance is that of the conformance suite (methods_test.cpp).
#include <algorithm>
#include <cmath>

#include "tests/cases.hpp"
#include "tests/catch.hpp"
#include "tests/misuse.hpp"
#include "tests/oracle/oracle.hpp"

using namespace attnbench;

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

// Rows from `prompt` on, decoded into memory that held NaN.
template <class T>
Matrix<T> decoded(Decoder<T>& decoder, const HeadData<T>& head, Index prompt) {
  Context context;
  decoder.prefill(tokens(head, 0, prompt), context);
  Matrix<T> out = Matrix<T>::Constant(head.Q.rows() - prompt, head.V.cols(), std::numeric_limits<T>::quiet_NaN());
  for (Index t = prompt; t < head.Q.rows(); ++t)
    decoder.step(tokens(head, t, 1), context, row_block(out, t - prompt, 1));
  return out;
}

double error_of(const Case& one, const Matrix<double>& steps, const Matrix<double>& whole, Index prompt,
                const std::vector<double>& condition) {
  return worst_error(steps, whole.bottomRows(whole.rows() - prompt),
                     {condition.begin() + static_cast<std::ptrdiff_t>(prompt), condition.end()},
                     std::max(1.0, one.problem.head.V.cwiseAbs().maxCoeff()));
}

std::vector<Index> prompt_lengths(Index n) {
  std::vector<Index> lengths;
  for (const Index p : {Index(0), Index(1), Index(63), Index(64), Index(65), n - 1})
    if (p < n && std::find(lengths.begin(), lengths.end(), p) == lengths.end()) lengths.push_back(p);
  return lengths;
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

// A decoder that reads the cache before its own token is in it.
class OneTokenLate final : public Decoder<double> {
 public:
  explicit OneTokenLate(std::unique_ptr<Decoder<double>> decoder) : decoder_(std::move(decoder)) {}
  void prefill(const Head<double>& given, Context& context) override {
    for (Index j = 0; j < given.K.rows(); ++j) {
      const Matrix<double> k = given.K.row(j), v = given.V.row(j);
      come(given, k, v, context);
    }
  }
  void step(const Head<double>& token, Context& context, Out<double> out) override {
    const Matrix<double> k = token.K, v = token.V;
    const Matrix<double>&late_k = came_ ? last_k_ : k, &late_v = came_ ? last_v_ : v;
    decoder_->step({token.Q, late_k, late_v}, context, out);
    keep(k, v);
  }
  size_t bytes() const override { return decoder_->bytes(); }

 private:
  void come(const Head<double>& given, const Matrix<double>& k, const Matrix<double>& v, Context& context) {
    if (came_) decoder_->prefill({row_block(given.Q, 0, 1), last_k_, last_v_}, context);
    keep(k, v);
  }
  void keep(const Matrix<double>& k, const Matrix<double>& v) {
    last_k_ = k;
    last_v_ = v;
    came_ = true;
  }
  std::unique_ptr<Decoder<double>> decoder_;
  Matrix<double> last_k_, last_v_;
  bool came_ = false;
};

// A state holds sums of phi_l(k) v, so that the terms of phi(q).phi(k) are rounded before they cancel, where attend may
// form the weight first: a row of one key is then V itself in attend, and off by the weight's own condition in a step.
void raise_to_kernel_conditions(const Case& one, const Tensors& state, std::vector<double>& condition) {
  if (!oracle::transcribes(one.params.name()) || oracle::unknown_features(one.params)) return;
  const auto terms = oracle::kernel(one.params, state, one.problem.head);
  if (!terms) return;
  for (Index i = 0; i < one.shape.nq; ++i) {
    const Index keys = one.shape.mask.visible(i, one.shape.nk);
    if (keys == 0) continue;
    const double top = terms->log.row(i).head(keys).maxCoeff();
    double sum = 0, absolute = 0;
    for (Index j = 0; j < keys; ++j) {
      sum += terms->weight(i, j) * std::exp(terms->log(i, j) - top);
      absolute += terms->magnitude(i, j) * std::exp(terms->log(i, j) - top);
    }
    auto& own = condition[static_cast<size_t>(i)];
    own = std::max(own, absolute / std::abs(sum));
  }
}

}  // namespace

TEST_CASE("a prompt and then step after step are the rows of causal attention", "[methods]") {
  std::vector<std::string> decoding;
  for_each_decoder([&](const Case& one) {
    decoding.push_back(one.params.name());
    const auto method = one.draw<double>();
    const auto& head = one.problem.head;
    const Matrix<double> whole = attend(*method, head, one.shape.mask);
    const auto condition = row_conditions(one, *method);
    for (const Index prompt : prompt_lengths(one.shape.nq)) {
      INFO("prompt of " << prompt);
      const auto decoder = method->decoder(one.shape);
      CHECK(error_of(one, decoded(*decoder, head, prompt), whole, prompt, condition) < tolerance);
    }
  });
  if (!all_are_tested()) return;
  for (const char* name : {"softmax", "uniform", "local", "sink-window", "heavy-hitter", "vq"}) {
    INFO(name);
    CHECK(std::find(decoding.begin(), decoding.end(), name) != decoding.end());
  }
}

// What attend in float is held to against double is in methods_test.cpp; a step adds the same terms in another order.
TEST_CASE("steps in float are as near to double as float's attend", "[methods]") {
  for_each_decoder([](const Case& one) {
    const auto single = one.draw<float>();
    const Tensors state = single->state();
    constexpr auto eps = static_cast<double>(std::numeric_limits<float>::epsilon());
    if (oracle::jumps(one.params) &&
        oracle::distance_to_jump(one.params, state, one.problem.head, one.shape.mask, eps) <= 1)
      return;
    const auto exact = one.draw<double>(&state);
    const HeadData<float> head = one.problem.head.cast<float>();
    const Matrix<double> want = attend(*exact, one.problem.head, one.shape.mask);
    auto condition = row_conditions(one, *exact);
    raise_to_kernel_conditions(one, state, condition);
    // As in methods_test.cpp: float's 1e-4 may change such a normaliser by a tenth of itself, and its row by anything.
    for (double& c : condition)
      if (c > 1e3) c = INFINITY;
    const double of_attend = error_of(one, attend(*single, head, one.shape.mask).cast<double>(), want, 0, condition);
    const double of_steps =
        error_of(one, decoded(*single->decoder(one.shape), head, 0).cast<double>(), want, 0, condition);
    // Beside what attend was off by: sums over up to 130 keys and 64 features, in numerator and normaliser, in another
    // order.
    CHECK(of_steps <= 3 * of_attend + 2 * (130 + 64) * static_cast<double>(std::numeric_limits<float>::epsilon()));
  });
}

TEST_CASE("several prompts after each other are one", "[methods]") {
  for_each_decoder([](const Case& one) {
    const Index n = one.shape.nq;
    if (n < 7) return;
    const auto method = one.draw<double>();
    const auto& head = one.problem.head;
    const auto decoder = method->decoder(one.shape);
    Context context;
    Matrix<double> out(1, one.shape.dv);
    decoder->prefill(tokens(head, 0, n / 3), context);
    decoder->step(tokens(head, n / 3, 1), context, out);
    decoder->prefill(tokens(head, n / 3 + 1, n - 2 - n / 3), context);
    decoder->step(tokens(head, n - 1, 1), context, out);
    CHECK(error_of(one, out, attend(*method, head, one.shape.mask), n - 1, row_conditions(one, *method)) < tolerance);
  });
}

TEST_CASE("decoders of one method do not know of each other", "[methods]") {
  for_each_decoder([](const Case& one) {
    const auto method = one.draw<double>();
    const HeadData<double>& head = one.problem.head;
    const HeadData<double> other{-head.Q, head.Q, head.V};
    const auto first = method->decoder(one.shape), second = method->decoder(one.shape);
    Context context;
    Matrix<double> row(1, one.shape.dv), mixed(one.shape.nq, one.shape.dv);
    for (Index t = 0; t < one.shape.nq; ++t) {
      first->step(tokens(head, t, 1), context, row_block(mixed, t, 1));
      second->step(tokens(other, t, 1), context, row);
    }
    CHECK(identical(mixed, decoded(*method->decoder(one.shape), head, 0)));
  });
}

TEST_CASE("the test of decoding sees a decoder that is off by one token", "[methods]") {
  for_each_decoder([](const Case& one) {
    // Rows without weight, or whose weights nearly cancel, tell nothing of the token that is missing.
    if (one.shape.nq < 66 || !one.claims.row_stochastic || !one.claims.non_negative) return;
    const auto method = one.draw<double>();
    const auto& head = one.problem.head;
    const Matrix<double> whole = attend(*method, head, one.shape.mask);
    const auto condition = row_conditions(one, *method);
    for (const Index prompt : prompt_lengths(one.shape.nq)) {
      OneTokenLate late(method->decoder(one.shape));
      CHECK_FALSE(error_of(one, decoded<double>(late, head, prompt), whole, prompt, condition) < 1e-6);
    }
  });
}

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
}

// methods.md H: a state of F (dv + 1) numbers, whatever the position. A scale for each feature may stand beside it.
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
  for (const char* spec : {"softmax", "softmax:cache=false", "local", "sink-window", "heavy-hitter"}) {
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
