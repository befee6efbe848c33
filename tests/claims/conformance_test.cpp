// The claims that every method makes without a word: each planted mistake fails the claim that it breaks and no other.
#include <fmt/format.h>

#include <set>

#include "harness/claims/print.hpp"
#include "harness/core/all_heads.hpp"
#include "harness/machine/peak_memory.hpp"
#include "tests/catch.hpp"

namespace attnbench::conformance_test {

namespace attnbench::conformance_test {
namespace {

using Names = std::set<std::string>;

Subject subject(const std::string& spec) { return subject_of(Params("methods", spec)); }

Names failing(const Subject& planted) {
  Names names;
  const Report report = check({planted}, {.work = 2e4});
  for (const Result& result : report.subjects[0].results)
    if (result.outcome == Outcome::fail) names.insert(result.claim);
  return names;
}

// Forwards to another instance. A planted mistake overrides a part.
template <class T>
class Wrapped : public Approximation<T> {
 public:
  explicit Wrapped(const Draw& draw) : inner_(make_approximation<T>(draw)) {}
  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    inner_->attend(head, mask, context, out);
  }
  Tensors state() const override { return inner_->state(); }
  const Kernel<T>* kernel() const override { return inner_->kernel(); }
  const Rows<T>* rows() const override { return inner_->rows(); }
  const Pattern<T>* pattern() const override { return inner_->pattern(); }
  const Differentiable<T>* differentiable() const override { return inner_->differentiable(); }
  std::unique_ptr<Decoder<T>> decoder(const Shape& shape) const override { return inner_->decoder(shape); }

 protected:
  std::unique_ptr<Approximation<T>> inner_;
};

template <template <class> class Method>
Subject made_by(const std::string& spec) {
  Subject planted = subject(spec);
  planted.f32 = [](const Draw& draw) { return std::make_unique<Method<float>>(draw); };
  planted.f64 = [](const Draw& draw) { return std::make_unique<Method<double>>(draw); };
  return planted;
}

template <class T>
class ZeroInFloat final : public Wrapped<T> {
 public:
  using Wrapped<T>::Wrapped;
  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    this->inner_->attend(head, mask, context, out);
    if (sizeof(T) == 4) out *= T(0);
  }
};

// exp(1.01 q.k) in float.
template <class T>
class OtherExponentInFloat final : public Wrapped<T> {
 public:
  using Wrapped<T>::Wrapped;
  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    const Matrix<T> Q = (sizeof(T) == 4 ? T(1.01) : T(1)) * head.Q;
    this->inner_->attend({Q, head.K, head.V}, mask, context, out);
  }
};

template <class T>
class ReadsPadding final : public Wrapped<T> {
 public:
  using Wrapped<T>::Wrapped;
  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    if (mask.keys > 0) mask.keys = -1;
    this->inner_->attend(head, mask, context, out);
  }
};

template <class T>
class EmptyRowsAreMeans final : public Wrapped<T> {
 public:
  using Wrapped<T>::Wrapped;
  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    this->inner_->attend(head, mask, context, out);
    for (Index i = 0; i < out.rows(); ++i)
      if (mask.visible(i, head.K.rows()) == 0) out.row(i) = head.V.colwise().mean();
  }
};

// Takes the rows of a view to lie one after the other.
template <class T>
class IgnoresStrides final : public Wrapped<T> {
 public:
  using Wrapped<T>::Wrapped;
  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    const In<T> V(head.V.data(), head.V.rows(), head.V.cols(), head.V.cols());
    this->inner_->attend({head.Q, head.K, V}, mask, context, out);
  }
};

template <class T>
class WritesBesideTheOutput final : public Wrapped<T> {
 public:
  using Wrapped<T>::Wrapped;
  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    this->inner_->attend(head, mask, context, out);
    if (out.outerStride() > out.cols()) out.data()[out.cols()] = 0;
  }
};

template <class T>
class DoubledState final : public Wrapped<T> {
 public:
  using Wrapped<T>::Wrapped;
  Tensors state() const override {
    Tensors state = this->inner_->state();
    for (auto& [name, tensor] : state) tensor *= 2;
    return state;
  }
};

template <class T>
class OneDrawForAll final : public Wrapped<T> {
 public:
  explicit OneDrawForAll(const Draw& draw) : Wrapped<T>(first(draw)) {}

 private:
  static Draw first(Draw draw) {
    draw.replicate = 0;
    return draw;
  }
};

template <class T>
class OneDrawForHeads final : public Wrapped<T> {
 public:
  explicit OneDrawForHeads(const Draw& draw) : Wrapped<T>(first(draw)) {}

 private:
  static Draw first(Draw draw) {
    draw.head = 0;
    return draw;
  }
};

// Float draws other numbers than double.
template <class T>
class DrawByPrecision final : public Wrapped<T> {
 public:
  explicit DrawByPrecision(const Draw& draw) : Wrapped<T>(other(draw)) {}

 private:
  static Draw other(Draw draw) {
    if (sizeof(T) == 4) draw.replicate += 1000;
    return draw;
  }
};

// A decoder that reads its sums before its own token is in them.
template <class T>
class OneTokenLate final : public Decoder<T> {
 public:
  explicit OneTokenLate(std::unique_ptr<Decoder<T>> decoder) : decoder_(std::move(decoder)) {}
  void prefill(const Head<T>& given, Context& context) override {
    for (Index j = 0; j < given.K.rows(); ++j) {
      if (seen_) decoder_->prefill({row_block(given.Q, j, 1), k_, v_}, context);
      keep(given.K.row(j), given.V.row(j));
    }
  }
  void step(const Head<T>& token, Context& context, Out<T> out) override {
    const Matrix<T> k = token.K, v = token.V;
    if (!seen_) keep(k, v);
    decoder_->step({token.Q, k_, v_}, context, out);
    keep(k, v);
  }
  size_t bytes() const override { return decoder_->bytes(); }

 private:
  void keep(const Matrix<T>& k, const Matrix<T>& v) {
    k_ = k;
    v_ = v;
    seen_ = true;
  }
  std::unique_ptr<Decoder<T>> decoder_;
  Matrix<T> k_, v_;
  bool seen_ = false;
};

template <class T>
class LateDecoder final : public Wrapped<T> {
 public:
  using Wrapped<T>::Wrapped;
  std::unique_ptr<Decoder<T>> decoder(const Shape& shape) const override {
    auto inner = this->inner_->decoder(shape);
    return inner ? std::make_unique<OneTokenLate<T>>(std::move(inner)) : nullptr;
  }
};

// Of every prompt, or of a first prompt of 64 tokens or more.
template <class T>
class DropsLastOfPrompt final : public Decoder<T> {
 public:
  DropsLastOfPrompt(std::unique_ptr<Decoder<T>> decoder, bool every) : decoder_(std::move(decoder)), every_(every) {}
  void prefill(const Head<T>& given, Context& context) override {
    const bool drops = every_ || (first_ && given.K.rows() >= 64);
    first_ = false;
    const Index n = given.K.rows() - (drops ? 1 : 0);
    if (n > 0)
      decoder_->prefill({row_block(given.Q, 0, n), row_block(given.K, 0, n), row_block(given.V, 0, n)}, context);
  }
  void step(const Head<T>& token, Context& context, Out<T> out) override { decoder_->step(token, context, out); }
  size_t bytes() const override { return decoder_->bytes(); }

 private:
  std::unique_ptr<Decoder<T>> decoder_;
  bool every_, first_ = true;
};

template <class T, bool every>
class DroppingPrompts : public Wrapped<T> {
 public:
  using Wrapped<T>::Wrapped;
  std::unique_ptr<Decoder<T>> decoder(const Shape& shape) const override {
    auto inner = this->inner_->decoder(shape);
    return inner ? std::make_unique<DropsLastOfPrompt<T>>(std::move(inner), every) : nullptr;
  }
};
template <class T>
using ShortPrompt = DroppingPrompts<T, true>;
template <class T>
using ShortLongPrompt = DroppingPrompts<T, false>;

// The last token gets no gradient of its value.
template <class T>
class ForgetsOneGradient final : public Wrapped<T>, public Differentiable<T> {
 public:
  using Wrapped<T>::Wrapped;
  const Differentiable<T>* differentiable() const override { return this; }
  void forward(const Head<T>& head, Mask mask, Context& context, Out<T> out, std::vector<T>& saved) const override {
    this->inner_->differentiable()->forward(head, mask, context, out, saved);
  }
  void backward(const Head<T>& head, Mask mask, const In<T>& out, const std::vector<T>& saved, const In<T>& G,
                Context& context, Gradients<T> gradients) const override {
    this->inner_->differentiable()->backward(head, mask, out, saved, G, context, gradients);
    gradients.V.row(gradients.V.rows() - 1).setZero();
  }
};

template <class T>
class PatternWithoutItself final : public Wrapped<T>, public Pattern<T> {
 public:
  using Wrapped<T>::Wrapped;
  const Pattern<T>* pattern() const override { return this; }
  void keys_of_rows(const Head<T>& head, Mask mask, Index first, Context& context,
                    std::span<std::vector<Index>> keys) const override {
    this->inner_->pattern()->keys_of_rows(head, mask, first, context, keys);
    for (size_t i = 0; i < keys.size(); ++i)
      if (keys[i].size() > 1) std::erase(keys[i], first + static_cast<Index>(i));
  }
};

// out = K V without a division, or each row of it divided by its length.
template <class T, bool unit_length>
class UnNormalised : public Wrapped<T> {
 public:
  using Wrapped<T>::Wrapped;
  void attend(const Head<T>& head, Mask mask, Context&, Out<T> out) const override {
    Matrix<T> weights = (head.Q * head.K.transpose()).array().exp();
    for (Index i = 0; i < out.rows(); ++i) {
      weights.row(i).tail(weights.cols() - mask.visible(i, weights.cols())).setZero();
      for (Index j = 0; j < weights.cols(); ++j)
        if (j >= mask.visible(i, weights.cols())) weights(i, j) = 0;
    }
    out.setZero();
    for (Index i = 0; i < out.rows(); ++i) {
      const Index seen = mask.visible(i, weights.cols());
      if (seen > 0) out.row(i) = weights.row(i).head(seen) * head.V.topRows(seen);
      if (unit_length && seen > 0) out.row(i).normalize();
    }
  }
  const Rows<T>* rows() const override { return nullptr; }
  const Differentiable<T>* differentiable() const override { return nullptr; }
  std::unique_ptr<Decoder<T>> decoder(const Shape&) const override { return nullptr; }
};
template <class T>
using PlainSums = UnNormalised<T, false>;
template <class T>
using UnitRows = UnNormalised<T, true>;

// All heads in one call. With another `shift` than 0, each head has the draw of another one.
template <class T, size_t shift>
class InOneCall final : public Wrapped<T>, public Joinable<T> {
 public:
  using Wrapped<T>::Wrapped;
  std::unique_ptr<AllHeads<T>> joined(std::span<const std::unique_ptr<Approximation<T>>> instances,
                                      Index) const override {
    return std::make_unique<Together>(instances);
  }

 private:
  class Together final : public AllHeads<T> {
   public:
    explicit Together(std::span<const std::unique_ptr<Approximation<T>>> instances) : instances_(instances) {}
    void attend(std::span<const HeadData<T>> heads, Mask mask, Context& context,
                std::span<Matrix<T>> outputs) const override {
      for (size_t h = 0; h < heads.size(); ++h)
        instances_[(h + shift) % heads.size()]->attend(heads[h].view(), mask, context, outputs[h]);
    }

   private:
    std::span<const std::unique_ptr<Approximation<T>>> instances_;
  };
};
template <class T>
using EachItsDraw = InOneCall<T, 0>;
template <class T>
using AnothersDraw = InOneCall<T, 1>;

Subject claiming(Subject subject, const std::function<void(Claims&)>& change) {
  subject.claims = [stated = subject.claims, change](const Params& params, const Shape& shape) {
    Claims claims = stated(params, shape);
    change(claims);
    return claims;
  };
  return subject;
}

ClaimResults results_of(const Subject& one, const std::string& claim) {
  return of_claim(check({one}, {.work = 2e4}).subjects[0].results, claim);
}

}  // namespace

TEST_CASE("float that is not double, in zeros or in one percent of its exponents, is found", "[unit]") {
  CHECK(failing(made_by<ZeroInFloat>("local")).contains("precision"));
  CHECK(failing(made_by<ZeroInFloat>("linear:features=relu")).contains("precision"));
  CHECK(failing(made_by<OtherExponentInFloat>("softmax")).contains("precision"));
  CHECK(failing(made_by<OtherExponentInFloat>("performer:m=32")).contains("precision"));
}

TEST_CASE("a method that reads padding, strides or empty rows wrongly is found", "[unit]") {
  CHECK(failing(made_by<ReadsPadding>("uniform")) == Names{"padding"});
  CHECK(failing(made_by<ReadsPadding>("linear")).contains("padding"));
  CHECK(failing(made_by<EmptyRowsAreMeans>("uniform")) == Names{"empty-rows"});
  CHECK(failing(made_by<IgnoresStrides>("uniform")) == Names{"views"});
  CHECK(failing(made_by<WritesBesideTheOutput>("uniform")) == Names{"views"});
}

TEST_CASE("a draw that is shared, or other numbers in float, or a state that is another one, is found", "[unit]") {
  CHECK(failing(made_by<DoubledState>("performer:m=8,projection=iid")).contains("state"));
  CHECK(failing(made_by<OneDrawForAll>("performer:m=8,projection=iid")) == Names{"draws"});
  CHECK(failing(made_by<OneDrawForHeads>("performer:m=8,projection=iid")) == Names{"draws"});
  CHECK(failing(made_by<DrawByPrecision>("performer:m=8,projection=iid")) == Names{"draws"});
}

TEST_CASE("a decoder that is a token late, and a prompt without its last token, are found", "[unit]") {
  for (const char* spec : {"uniform", "linear", "performer:m=8", "local:window=5", "softmax"}) {
    INFO(spec);
    CHECK(failing(made_by<LateDecoder>(spec)) == Names{"decoder", "lengths"});
    CHECK(failing(made_by<ShortPrompt>(spec)) == Names{"decoder", "lengths"});
    CHECK(failing(made_by<ShortLongPrompt>(spec)) == Names{"decoder", "lengths"});
  }
}

TEST_CASE("heads that have the draw of another one when all are one call are found", "[unit]") {
  CHECK(failing(made_by<EachItsDraw>("performer:m=8,projection=iid")) == Names{});
  CHECK(failing(made_by<AnothersDraw>("performer:m=8,projection=iid")) == Names{"heads"});
  CHECK(results_of(made_by<EachItsDraw>("uniform"), "heads").size() > 3);
  CHECK(results_of(subject("uniform"), "heads").at(0).outcome == Outcome::skipped);
}

TEST_CASE("a backward pass that forgets a token is found", "[unit]") {
  CHECK(failing(made_by<ForgetsOneGradient>("softmax")) == Names{"gradients"});
  CHECK(failing(made_by<ForgetsOneGradient>("linear")) == Names{"gradients"});
}

TEST_CASE("a pattern without a key that has weight is found", "[unit]") {
  CHECK(failing(made_by<PatternWithoutItself>("local:window=5")) == Names{"pattern"});
}

TEST_CASE("costs that are not what a call counts and takes are found", "[unit]") {
  Subject dear = subject("linear"), negative = dear, empty = dear, no_exponentials = subject("performer:m=32"),
          large = dear, small = subject("softmax:form=materialised"), flat = subject("performer:m=32");
  dear.cost = [stated = dear.cost](const Params& p, const Shape& s) {
    Work work = stated(p, s);
    work.flops *= 100;
    return work;
  };
  CHECK(failing(dear) == Names{"work"});
  negative.cost = [](const Params&, const Shape&) { return Work{.flops = -1}; };
  CHECK(failing(negative) == Names{"work"});
  no_exponentials.cost = [stated = no_exponentials.cost](const Params& p, const Shape& s) {
    Work work = stated(p, s);
    work.exps = 0;
    return work;
  };
  CHECK(failing(no_exponentials) == Names{"work"});
  large.memory = [](const Params&, const Shape&) { return 1e12; };
  if (!sanitized) CHECK(failing(large) == Names{"memory"});
  small.memory = [](const Params&, const Shape&) { return 1e3; };
  if (!sanitized) CHECK(failing(small) == Names{"memory"});
  empty.memory = [](const Params&, const Shape&) { return NAN; };
  if (!sanitized) CHECK(failing(empty) == Names{"memory"});
  flat.cost = [stated = flat.cost](const Params& p, const Shape& s) { return stated(p.with("m", "32"), s); };
  CHECK(failing(flat) == Names{"budget"});
}

TEST_CASE("an ensemble whose vectors depend on their number is found, unless it says so", "[unit]") {
  Subject planted = subject("performer:m=16,projection=iid");
  const auto by_number = [](const Draw& draw, const auto& make) {
    Generator generator = draw.streams.stream("by number", draw.params.text("m"), draw.head, draw.replicate);
    const Tensors state{{"projection", standard_normal(generator, draw.params.integer("m"), draw.shape.d)}};
    Draw injected = draw;
    if (!draw.state) injected.state = &state;
    return make(injected);
  };
  planted.f32 = [by_number](const Draw& draw) { return by_number(draw, make_approximation<float>); };
  planted.f64 = [by_number](const Draw& draw) { return by_number(draw, make_approximation<double>); };
  CHECK(failing(planted) == Names{"effect", "nested"});  // the spec's own projection is not read
  planted.law = [stated = planted.law](const Params& params, Index d) {
    EnsembleLaw law = stated(params, d);
    law.nested = false;
    return law;
  };
  CHECK(failing(planted) == Names{"effect"});
  CHECK_THAT(results_of(planted, "nested").at(0).reason, ContainsSubstring("not nested"));
}

TEST_CASE("a formula is proved by its transcription, and said to be unproved without one", "[unit]") {
  Subject local = subject("local:window=5");
  CHECK_THAT(results_of(local, "formula").at(0).reason, ContainsSubstring("tests/oracle"));
  local.built_in = false;
  const Report unproved = check({local}, {});
  CHECK_THAT(of_claim(unproved.subjects[0].results, "formula").at(0).reason, ContainsSubstring("no transcription"));
  CHECK_THAT(unproved.subjects[0].notes.at(0), ContainsSubstring("nothing proves its formula"));
  const auto windowed = [](Index less) {
    return [less](const Draw& draw, const Approximation<double>&, const Head<double>& head, Mask mask) {
      const Index width = draw.params.integer("window") - less;
      Matrix<double> out = Matrix<double>::Zero(head.Q.rows(), head.V.cols());
      const Index behind = mask.offset;
      for (Index i = 0; i < out.rows(); ++i) {
        double sum = 0;
        for (Index j = 0; j < mask.visible(i, head.K.rows()); ++j) {
          if (std::abs(i + behind - j) > width) continue;
          const double weight = std::exp(head.Q.row(i).dot(head.K.row(j)));
          sum += weight;
          out.row(i) += weight * head.V.row(j);
        }
        if (sum > 0) out.row(i) /= sum;
      }
      return out;
    };
  };
  local.transcription = windowed(0);
  CHECK(failing(local) == Names{});
  CHECK(results_of(local, "formula").size() > 2);
  local.transcription = windowed(1);
  CHECK(failing(local) == Names{"finite", "formula", "lengths"});
}

TEST_CASE("exact-when compares with the method that it names", "[unit]") {
  const auto exact_when = [](const char* words) {
    return claiming(subject("softmax"), [words](Claims& claims) { claims.exact_when = words; });
  };
  CHECK(failing(exact_when("form=materialised")) == Names{});
  CHECK(failing(exact_when("form=materialised is softmax:cache=false")) == Names{});
  CHECK(failing(exact_when("form=materialised is uniform")) == Names{"exact-when"});
}

TEST_CASE("a kernel that is not divided by its row sums is proved as what it is", "[unit]") {
  const auto claims = [](Normaliser normaliser, bool linear) {
    return [=](Claims& made) { made = {.causal_exact = true, .linear_in_V = linear, .normaliser = normaliser}; };
  };
  Subject sums = claiming(made_by<PlainSums>("softmax"), claims(Normaliser::none, true));
  Subject units = claiming(made_by<UnitRows>("softmax"), claims(Normaliser::l2, false));
  // Neither counts its work, and both materialise the matrix that softmax does not.
  for (Subject* one : {&sums, &units}) one->cost_assumed = one->memory_assumed = true;
  CHECK(failing(sums) == Names{});
  CHECK(failing(units) == Names{"finite"});  // its exponentials are not stabilised
  CHECK(results_of(sums, "second-paths").at(0).outcome == Outcome::pass);
  CHECK(failing(claiming(sums, claims(Normaliser::row_sums, true))).contains("second-paths"));
  CHECK(failing(claiming(units, claims(Normaliser::none, false))).contains("second-paths"));
  CHECK(failing(claiming(sums, claims(Normaliser::l2, true))).contains("second-paths"));
}

}  // namespace attnbench::conformance_test

}  // namespace attnbench::conformance_test
