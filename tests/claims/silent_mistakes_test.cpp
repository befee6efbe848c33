// Mistakes that short heads, ordinary numbers and declared costs do not show: each planted one fails the claim that
// looks for it and no other.
#include <fmt/format.h>

#include <cmath>
#include <set>

#include "harness/claims/print.hpp"
#include "harness/machine/peak_memory.hpp"
#include "tests/catch.hpp"

namespace attnbench::silent_mistakes_test {

namespace {

using Names = std::set<std::string>;

Subject subject(const std::string& spec) { return subject_of(Params("methods", spec)); }

Report checked(const Subject& planted) { return check({planted}, {.work = 2e4}); }

Names failing(const Subject& planted) {
  Names names;
  const Report report = checked(planted);
  for (const Result& result : report.subjects[0].results)
    if (result.outcome == Outcome::fail) names.insert(result.claim);
  return names;
}

Result deciding_of(const Subject& planted, const std::string& claim) {
  return deciding(of_claim(checked(planted).subjects[0].results, claim));
}

// Plain softmax: a maximum that starts anywhere, or none, and keys that one number of so many bits can count.
struct Plain {
  bool subtracts = true;
  double first_maximum = -INFINITY;
  Index most_keys = 1'000'000'000;

  template <class T>
  void attend(const Head<T>& head, Mask mask, Out<T> out) const {
    out.setZero();
    for (Index i = 0; i < head.Q.rows(); ++i) {
      const Index seen = mask.visible(i, head.K.rows());
      T top = static_cast<T>(first_maximum), sum = 0;
      std::vector<T> logits(static_cast<size_t>(seen));
      for (Index j = 0; j < seen; ++j) {
        logits[static_cast<size_t>(j)] = head.Q.row(i).dot(head.K.row(j % most_keys));
        top = std::max(top, logits[static_cast<size_t>(j)]);
      }
      for (Index j = 0; j < seen; ++j) {
        const T weight = std::exp(logits[static_cast<size_t>(j)] - (subtracts ? top : T(0)));
        sum += weight;
        out.row(i) += weight * head.V.row(j % most_keys);
      }
      if (seen > 0) out.row(i) /= sum;
    }
  }
};

template <class T>
class PlainMethod final : public Approximation<T> {
 public:
  explicit PlainMethod(const Plain& plain) : plain_(plain) {}
  void attend(const Head<T>& head, Mask mask, Context&, Out<T> out) const override {
    plain_.attend<T>(head, mask, out);
  }

 private:
  Plain plain_;
};

// The subject with these makers. It counts no work and declares no memory.
template <class Make32, class Make64>
Subject made_by(Subject planted, const Make32& f32, const Make64& f64) {
  planted.f32 = f32;
  planted.f64 = f64;
  planted.cost_assumed = planted.memory_assumed = true;
  return planted;
}

Subject plain(const Plain& kind) {
  Subject planted = made_by(
      subject("softmax"), [kind](const Draw&) { return std::make_unique<PlainMethod<float>>(kind); },
      [kind](const Draw&) { return std::make_unique<PlainMethod<double>>(kind); });
  planted.params = Params("methods", "softmax");
  planted.transcription = [](const Draw&, const Approximation<double>&, const Head<double>& head, Mask mask) {
    Matrix<double> out(head.Q.rows(), head.V.cols());
    Plain{}.attend<double>(head, mask, out);
    return out;
  };
  return planted;
}

// Softmax whose logits decay with the sum of gates since the key (forgetting attention). The sums are kept in Sum.
template <class T, class Sum>
class Forgetting final : public Approximation<T> {
 public:
  explicit Forgetting(const Draw&) {}
  void attend(const Head<T>& head, Mask mask, Context&, Out<T> out) const override {
    std::vector<Sum> gates(static_cast<size_t>(head.K.rows()));
    Sum sum = 0;
    for (size_t j = 0; j < gates.size(); ++j)
      gates[j] = sum += static_cast<Sum>(0.7 + 0.1 * std::sin(static_cast<double>(j)));
    out.setZero();
    for (Index i = 0; i < head.Q.rows(); ++i) {
      const Index seen = mask.visible(i, head.K.rows());
      if (seen == 0) continue;
      std::vector<T> logits;
      for (Index j = 0; j < seen; ++j)
        logits.push_back(head.Q.row(i).dot(head.K.row(j)) +
                         static_cast<T>(gates[static_cast<size_t>(j)] - gates[static_cast<size_t>(seen - 1)]));
      const T top = *std::max_element(logits.begin(), logits.end());
      T total = 0;
      for (Index j = 0; j < seen; ++j) {
        const T weight = std::exp(logits[static_cast<size_t>(j)] - top);
        total += weight;
        out.row(i) += weight * head.V.row(j);
      }
      out.row(i) /= total;
    }
  }
};

template <class T>
using ForgettingInDouble = Forgetting<T, double>;
template <class T>
using ForgettingInScalar = Forgetting<T, T>;

template <template <class> class Method>
Subject forgetting() {
  Subject planted = made_by(
      subject("softmax"), [](const Draw& draw) { return std::make_unique<Method<float>>(draw); },
      [](const Draw& draw) { return std::make_unique<Method<double>>(draw); });
  planted.claims = [](const Params&, const Shape& shape) {
    return Claims{.row_stochastic = true,
                  .non_negative = true,
                  .no_form = shape.mask.causal ? "" : "gates are of earlier tokens",
                  .causal_exact = true};
  };
  return planted;
}

// Copies the keys, which its entry does not say.
template <class T>
class CopiesKeys final : public Approximation<T> {
 public:
  explicit CopiesKeys(const Draw& draw) : inner_(make_approximation<T>(draw)) {}
  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    const Matrix<T> K = head.K;
    inner_->attend({head.Q, K, head.V}, mask, context, out);
  }

 private:
  std::unique_ptr<Approximation<T>> inner_;
};

// A method that ignores what its spec says: one parameter keeps this value.
Subject constant(const std::string& spec, const std::string& parameter, const std::string& value) {
  const auto with = [=](const Draw& draw, const auto& make) {
    const Params params = draw.params.with(parameter, value);
    return make(draw.with(params));
  };
  return made_by(
      subject(spec), [with](const Draw& draw) { return with(draw, make_approximation<float>); },
      [with](const Draw& draw) { return with(draw, make_approximation<double>); });
}

// Another method's instances under this subject's claims.
Subject replaced(const std::string& spec, const std::string& by) {
  const auto with = [by](const Draw& draw, const auto& make) {
    const Params params("methods", by);
    return make(draw.with(params));
  };
  return made_by(
      subject(spec), [with](const Draw& draw) { return with(draw, make_approximation<float>); },
      [with](const Draw& draw) { return with(draw, make_approximation<double>); });
}

// Softmax that adds one unit where it is given threads, or where two calls meet.
template <class T>
class CountsThreads final : public Approximation<T> {
 public:
  explicit CountsThreads(const Draw& draw) : inner_(make_approximation<T>(draw)) {}
  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    inner_->attend(head, mask, context, out);
    if (head.Q.rows() > 1000 && context.threads() > 1) out(0, 0) += T(1);
  }

 private:
  std::unique_ptr<Approximation<T>> inner_;
};

enum class Says { all, one_token, tenfold };

// A decoder that is right, and says something else of its bytes.
template <class T>
class SaysOther final : public Decoder<T> {
 public:
  SaysOther(std::unique_ptr<Decoder<T>> decoder, Says says) : decoder_(std::move(decoder)), says_(says) {}
  void prefill(const Head<T>& tokens, Context& context) override { decoder_->prefill(tokens, context); }
  void step(const Head<T>& token, Context& context, Out<T> out) override { decoder_->step(token, context, out); }
  size_t bytes() const override {
    const size_t kept = decoder_->bytes();
    return says_ == Says::all ? kept : says_ == Says::one_token ? 512 : 10 * kept;
  }

 private:
  std::unique_ptr<Decoder<T>> decoder_;
  Says says_;
};

template <class T>
class OfOtherBytes final : public Approximation<T> {
 public:
  OfOtherBytes(const Draw& draw, Says says) : inner_(make_approximation<T>(draw)), says_(says) {}
  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    inner_->attend(head, mask, context, out);
  }
  std::unique_ptr<Decoder<T>> decoder(const Shape& shape) const override {
    return std::make_unique<SaysOther<T>>(inner_->decoder(shape), says_);
  }

 private:
  std::unique_ptr<Approximation<T>> inner_;
  Says says_;
};

Subject of_other_bytes(const std::string& spec, Says says) {
  return made_by(
      subject(spec), [says](const Draw& draw) { return std::make_unique<OfOtherBytes<float>>(draw, says); },
      [says](const Draw& draw) { return std::make_unique<OfOtherBytes<double>>(draw, says); });
}

}  // namespace

TEST_CASE("exponentials without their maximum, and a maximum that starts at 0, are found", "[unit]") {
  CHECK(failing(plain({})) == Names{});
  CHECK(failing(plain({.subtracts = false})) == Names{"finite"});
  CHECK(failing(plain({.first_maximum = 0})) == Names{"finite"});
  CHECK_THAT(deciding_of(plain({.first_maximum = 0}), "finite").tested, ContainsSubstring("all logits below -1000"));
}

TEST_CASE("a method may say why it takes no extreme numbers", "[unit]") {
  Subject planted = plain({.subtracts = false});
  planted.claims = [stated = planted.claims](const Params& params, const Shape& shape) {
    Claims claims = stated(params, shape);
    claims.no_extremes = "the paper's kernel has no maximum";
    return claims;
  };
  CHECK(failing(planted) == Names{});
  CHECK_THAT(deciding_of(planted, "finite").reason, ContainsSubstring("the paper's kernel has no maximum"));
}

TEST_CASE("what begins behind the short heads is found: keys that 12 bits count", "[unit]") {
  if (sanitized) return;  // heads are shorter there
  CHECK(failing(plain({.most_keys = 4096})) == Names{"lengths"});
  CHECK_THAT(deciding_of(plain({.most_keys = 4096}), "lengths").tested, ContainsSubstring("n = 1 of 40000"));
  CHECK(failing(plain({.most_keys = 1000})) == Names{"lengths"});
}

TEST_CASE("sums over tokens that are kept in float are found, and in double they pass", "[unit]") {
  if (sanitized) return;
  CHECK(failing(forgetting<ForgettingInDouble>()) == Names{});
  CHECK(failing(forgetting<ForgettingInScalar>()) == Names{"lengths"});
}

TEST_CASE("costs of a plugin that are half of what is counted, and a copy of the keys, are found", "[unit]") {
  Subject half = subject("softmax");
  half.built_in = false;
  half.memory_assumed = true;
  CHECK(deciding_of(half, "work").outcome == Outcome::pass);
  half.cost = [stated = half.cost](const Params& params, const Shape& shape) {
    Work work = stated(params, shape);
    work.flops /= 2;
    return work;
  };
  CHECK(failing(half) == Names{"work"});
  half.cost = [stated = half.cost](const Params& params, const Shape& shape) {  // twice what is counted
    Work work = stated(params, shape);
    work.flops *= 4;
    return work;
  };
  CHECK_THAT(deciding_of(half, "work").reason, ContainsSubstring("unproved"));
  if (sanitized) return;
  Subject copies = made_by(
      subject("softmax"), [](const Draw& draw) { return std::make_unique<CopiesKeys<float>>(draw); },
      [](const Draw& draw) { return std::make_unique<CopiesKeys<double>>(draw); });
  copies.memory_assumed = false;
  CHECK(failing(copies) == Names{"memory"});
}

TEST_CASE("a parameter that nothing reads is found, whatever it is declared as", "[unit]") {
  CHECK(failing(constant("local:window=5", "window", "9")) == Names{"effect", "exact-when"});
  CHECK_THAT(deciding_of(constant("local:window=5", "window", "9"), "effect").tested, ContainsSubstring("window"));
  // Its values beside another one's: `bits` of a hash shows where blocks are small.
  CHECK(failing(constant("hyper", "bits", "5")) == Names{"effect"});
  CHECK(failing(subject("hyper")) == Names{});
}

TEST_CASE("a parameter that changes more than rounding is found where it says that it does not", "[unit]") {
  CHECK(failing(subject("retnet")) == Names{});
  const Subject planted = [] {
    // retnet's `chunk` is declared to change rounding only. Here it changes the decay.
    const auto with = [](const Draw& draw, const auto& make) {
      const Params params = draw.params.integer("chunk") == 64 ? draw.params : draw.params.with("slope", "0.5");
      return make(draw.with(params));
    };
    return made_by(
        subject("retnet"), [with](const Draw& draw) { return with(draw, make_approximation<float>); },
        [with](const Draw& draw) { return with(draw, make_approximation<double>); });
  }();
  CHECK(deciding_of(planted, "effect").outcome == Outcome::fail);
}

TEST_CASE("softmax in place of a method with a budget is found", "[unit]") {
  CHECK(deciding_of(replaced("top-k", "softmax"), "differs").outcome == Outcome::fail);
  CHECK(deciding_of(subject("top-k"), "differs").outcome == Outcome::pass);
  CHECK_THAT(deciding_of(subject("softmax"), "differs").reason, ContainsSubstring("says that it is softmax"));
}

TEST_CASE("softmax in place of a method without a budget is a note of the report", "[unit]") {
  const Report report = checked(replaced("linear", "softmax"));
  CHECK_THAT(fmt::format("{}", report.subjects[0].notes.size()), !ContainsSubstring("0"));
  CHECK_THAT(text_of(report.subjects[0], [](Outcome outcome) { return std::string(name_of(outcome)); }),
             ContainsSubstring("is anything approximated?"));
}

TEST_CASE("threads that change numbers of long heads are found", "[unit]") {
  const Subject planted = made_by(
      subject("softmax"), [](const Draw& draw) { return std::make_unique<CountsThreads<float>>(draw); },
      [](const Draw& draw) { return std::make_unique<CountsThreads<double>>(draw); });
  CHECK(failing(planted) == Names{"threads"});
}

TEST_CASE("each of several cases of exact_when is tested", "[unit]") {
  const auto with = [](const char* when) {
    Subject one = subject("softmax");
    one.claims = [stated = one.claims, when](const Params& params, const Shape& shape) {
      Claims claims = stated(params, shape);
      claims.exact_when = when;
      return claims;
    };
    return one;
  };
  CHECK(failing(with("form=materialised; cache=false")) == Names{});
  CHECK(failing(with("form=materialised; cache=false is uniform")) == Names{"exact-when"});
  CHECK(failing(with("form=materialised is uniform; cache=false")) == Names{"exact-when"});
}

TEST_CASE("bytes of a decoder that are not those that it keeps are found", "[unit]") {
  if (sanitized) return;
  for (const char* spec : {"softmax", "local:window=300", "linear"}) {
    INFO(spec);
    CHECK(failing(of_other_bytes(spec, Says::all)) == Names{});
    CHECK(failing(of_other_bytes(spec, Says::tenfold)) == Names{"state-bytes"});
  }
  CHECK(failing(of_other_bytes("softmax", Says::one_token)) == Names{"state-bytes"});
}

TEST_CASE("bytes that a method declares are compared as well", "[unit]") {
  if (sanitized) return;
  Subject declared = subject("softmax");
  declared.decoder_bytes = [](const Params&, const Shape& shape) {
    return bytes_of(shape.precision) * 128 * static_cast<double>(shape.nk);
  };
  CHECK(failing(declared) == Names{});
  declared.decoder_bytes = [](const Params&, const Shape& shape) { return 4.0 * 128 * static_cast<double>(shape.nk); };
  CHECK(failing(declared) == Names{"state-bytes"});                                      // doubles take twice as much
  declared.decoder_bytes = [](const Params&, const Shape&) { return 4.0 * 128 * 512; };  // it does not grow
  CHECK(failing(declared) == Names{"state-bytes"});
}

TEST_CASE("numbers of the authors' code are compared, and are an anchor", "[unit]") {
  Subject local = subject("local:window=5");
  local.built_in = false;
  local.claims = [stated = local.claims](const Params& params, const Shape& shape) {
    Claims claims = stated(params, shape);
    claims.exact_when = "";
    return claims;
  };
  const auto notes = [](const Subject& one) {
    const Report report = checked(one);
    std::string all;
    for (const std::string& note : report.subjects[0].notes) all += note + "\n";
    return all;
  };
  CHECK_THAT(notes(local), ContainsSubstring("nothing proves its formula"));
  const auto golden = [](double factor) {
    return [factor](const Params& params) {
      const Subject right = subject_of(params);
      const Probe one = gaussian_probe(params, {.nq = 20, .nk = 20, .d = 8, .dv = 5}, 3);
      const auto method = Drawing(right, params, one.shape, 1).draw<double>(0);
      return std::vector<Golden>{{.name = "theirs.npz",
                                  .head = one.head,
                                  .mask = {},
                                  .out = factor * attended(*method, one.head, {}),
                                  .spacing = 1e-7}};
    };
  };
  local.golden = golden(1);
  CHECK(failing(local) == Names{});
  CHECK_THAT(notes(local), !ContainsSubstring("nothing proves"));
  local.golden = golden(1.001);
  CHECK(failing(local) == Names{"golden"});
  local.golden = {};
  local.transcription = [](const Draw& draw, const Approximation<double>& drawn, const Head<double>& head, Mask mask) {
    Matrix<double> out(draw.shape.nq, draw.shape.dv);
    Context context;
    drawn.attend(head, mask, context, out);
    return out;
  };
  CHECK_THAT(notes(local), ContainsSubstring("its formula has no anchor"));
}

}  // namespace attnbench::silent_mistakes_test
