// The parts of Transformer that language models of today have, against plain loops in double: the norm by the root mean
// square, keys that query heads share, shifts and norms of q and k, rotary positions, and the gated feed-forward part.
#include <cmath>
#include <vector>

#include "harness/inputs/transformer.hpp"
#include "harness/random/streams.hpp"
#include "tests/catch.hpp"

namespace attnbench::language_transformer_test {

namespace {

using Row = std::vector<double>;
using Table = std::vector<Row>;

constexpr Index heads = 4, key_heads = 2, d = 6, dv = 6, width = 10, hidden = 14, vocabulary = 17, tokens = 9;

Matrix<double> drawn(const std::string& name, Index layer, Index rows, Index columns, double mean = 0) {
  Generator generator = Streams(5).stream("language transformer", name, layer);
  return (standard_normal(generator, rows, columns).array() * 0.5 + mean).matrix();
}

// Every part there is, with sizes that differ from each other.
Transformer<double> everything() {
  Transformer<double> all{.heads = heads,
                          .d = d,
                          .dv = dv,
                          .key_heads = key_heads,
                          .rotary_frequencies = rotary_frequencies(d, 50),
                          .layers = {},
                          .output_norm = {drawn("output_norm", 0, 1, width, 1)},
                          .unembedding = drawn("unembedding", 0, vocabulary, width),
                          .norm_epsilon = 1e-2};
  for (Index l = 0; l < 2; ++l)
    all.layers.push_back({.attention_norm = {drawn("attention_norm", l, 1, width, 1)},
                          .feed_forward_norm = {drawn("feed_forward_norm", l, 1, width, 1)},
                          .queries = drawn("queries", l, heads * d, width),
                          .keys = drawn("keys", l, key_heads * d, width),
                          .values = drawn("values", l, key_heads * dv, width),
                          .out = drawn("out", l, width, heads * dv),
                          .up = drawn("up", l, hidden, width),
                          .down = drawn("down", l, width, hidden),
                          .gate = drawn("gate", l, hidden, width),
                          .query_shift = drawn("query_shift", l, 1, heads * d),
                          .key_shift = drawn("key_shift", l, 1, key_heads * d),
                          .value_shift = drawn("value_shift", l, 1, key_heads * dv),
                          .query_norm = {drawn("query_norm", l, 1, d, 1)},
                          .key_norm = {drawn("key_norm", l, 1, d, 1)}});
  return all;
}

double dot(const Row& x, const Row& y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

Row row_of(const Matrix<double>& X, Index i) { return {X.row(i).data(), X.row(i).data() + X.cols()}; }

Row times(const Weights<double>& W, const Row& x) {
  Row y;
  const Matrix<double> all = W.view();
  for (Index i = 0; i < all.rows(); ++i) y.push_back(dot(row_of(all, i), x));
  return y;
}

Row plus(Row x, const Matrix<double>& shift) {
  for (size_t i = 0; i < x.size(); ++i) x[i] += shift(0, static_cast<Index>(i));
  return x;
}

Row normed(const Row& x, const Norm<double>& norm, double epsilon) {
  const double size = std::sqrt(dot(x, x) / static_cast<double>(x.size()) + epsilon);
  Row y;
  for (size_t i = 0; i < x.size(); ++i) y.push_back(norm.scale(0, static_cast<Index>(i)) * x[i] / size);
  return y;
}

Row part(const Row& x, Index head, Index size) { return {x.begin() + head * size, x.begin() + (head + 1) * size}; }

// The rotation of one token's channels c and d/2 + c by position * 50^(-2 c / d).
Row turned(const Row& x, size_t position) {
  Row y = x;
  const size_t half = x.size() / 2;
  for (size_t c = 0; c < half; ++c) {
    const double angle = static_cast<double>(position) * std::pow(50, -2.0 * static_cast<double>(c) / d);
    y[c] = x[c] * std::cos(angle) - x[half + c] * std::sin(angle);
    y[half + c] = x[half + c] * std::cos(angle) + x[c] * std::sin(angle);
  }
  return y;
}

// Softmax over the keys of query head h at and before the token: its key head is h / 2.
Row attended(const Table& queries, const Table& keys, const Table& values, size_t token, Index h) {
  Row weights;
  double sum = 0;
  for (size_t j = 0; j <= token; ++j) {
    weights.push_back(std::exp(dot(queries[token], keys[j]) / std::sqrt(static_cast<double>(d))));
    sum += weights.back();
  }
  Row out(dv, 0.0);
  for (size_t j = 0; j <= token; ++j) {
    const Row v = part(values[j], h / 2, dv);
    for (size_t c = 0; c < out.size(); ++c) out[c] += weights[j] / sum * v[c];
  }
  return out;
}

void apply_layer(const TransformerLayer<double>& layer, double epsilon, Table& X) {
  Table Q, K, V;
  for (const Row& x : X) {
    const Row y = normed(x, layer.attention_norm, epsilon);
    Q.push_back(plus(times(layer.queries, y), layer.query_shift));
    K.push_back(plus(times(layer.keys, y), layer.key_shift));
    V.push_back(plus(times(layer.values, y), layer.value_shift));
  }
  Table mixed(X.size());
  for (Index h = 0; h < heads; ++h) {
    Table queries, keys;
    for (size_t i = 0; i < X.size(); ++i) {
      queries.push_back(turned(normed(part(Q[i], h, d), layer.query_norm, epsilon), i));
      keys.push_back(turned(normed(part(K[i], h / 2, d), layer.key_norm, epsilon), i));
    }
    for (size_t i = 0; i < X.size(); ++i) {
      const Row out = attended(queries, keys, V, i, h);
      mixed[i].insert(mixed[i].end(), out.begin(), out.end());
    }
  }
  for (size_t i = 0; i < X.size(); ++i) {
    const Row change = times(layer.out, mixed[i]);
    for (size_t c = 0; c < change.size(); ++c) X[i][c] += change[c];
    const Row y = normed(X[i], layer.feed_forward_norm, epsilon);
    Row up = times(layer.up, y);
    const Row gate = times(layer.gate, y);
    for (size_t c = 0; c < up.size(); ++c) up[c] *= gate[c] / (1 + std::exp(-gate[c]));
    const Row down = times(layer.down, up);
    for (size_t c = 0; c < down.size(); ++c) X[i][c] += down[c];
  }
}

Matrix<double> plain_logits(const Transformer<double>& all, const Matrix<double>& embedded) {
  Table X;
  for (Index i = 0; i < embedded.rows(); ++i) X.push_back(row_of(embedded, i));
  for (const auto& layer : all.layers) apply_layer(layer, all.norm_epsilon, X);
  Matrix<double> logits(embedded.rows(), vocabulary);
  for (size_t i = 0; i < X.size(); ++i) {
    const Row row = times(all.unembedding, normed(X[i], all.output_norm, all.norm_epsilon));
    for (Index token = 0; token < vocabulary; ++token)
      logits(static_cast<Index>(i), token) = row[static_cast<size_t>(token)];
  }
  return logits;
}

// Exact causal attention, written once more.
template <class T>
Matrix<T> logits_of(const Transformer<T>& all, const Matrix<T>& X) {
  Context context;
  const AttendHead<T> exact = [](Index, Index head, std::span<const HeadData<T>> drawn, Out<T> out) {
    const HeadData<T>& at = drawn[static_cast<size_t>(head)];
    for (Index i = 0; i < at.Q.rows(); ++i) {
      Matrix<T> weights = (at.K.topRows(i + 1) * at.Q.row(i).transpose() / std::sqrt(static_cast<T>(d))).transpose();
      weights = weights.array().exp();
      out.row(i) = weights * at.V.topRows(i + 1) / weights.sum();
    }
  };
  return token_logits<T>(context, all, last_hidden_state<T>(context, all, X, {}, exact));
}

double distance(const Matrix<double>& X, const Matrix<double>& Y) { return (X - Y).cwiseAbs().maxCoeff(); }

}  // namespace

TEST_CASE("norms, shared keys, shifts, rotation and gates are those of plain loops", "[unit]") {
  const Transformer<double> all = everything();
  const Matrix<double> X = drawn("tokens", 0, tokens, width);
  const Matrix<double> plain = plain_logits(all, X);
  REQUIRE(plain.cwiseAbs().maxCoeff() > 1);
  CHECK(distance(logits_of<double>(all, X), plain) < 1e-12);
  // Float: 2^-24 per number, grown by two layers and sums of at most 14 numbers (measured: 2e-6).
  const StoredTransformer stored(std::make_shared<const Transformer<double>>(all));
  CHECK(distance(logits_of<float>(*stored.in<float>(), X.cast<float>()).cast<double>(), plain) < 2e-5);
  CHECK(stored.in<double>()->layers[0].keys.view().data() == all.layers[0].keys.view().data());  // shared, not copied
}

TEST_CASE("each part of a language model's layer changes the logits", "[unit]") {
  const Matrix<double> X = drawn("tokens", 0, tokens, width);
  const Matrix<double> whole = logits_of<double>(everything(), X);
  const auto changed = [&](const auto& change) {
    Transformer<double> other = everything();
    change(other);
    return distance(logits_of<double>(other, X), whole);
  };
  using Layer = TransformerLayer<double>;
  for (const auto member : {&Layer::query_shift, &Layer::key_shift, &Layer::value_shift})
    CHECK(changed([&](auto& t) { t.layers[1].*member = Matrix<double>(); }) > 1e-3);
  for (const auto member : {&Layer::query_norm, &Layer::key_norm})
    CHECK(changed([&](auto& t) { (t.layers[1].*member).scale = Matrix<double>(); }) > 1e-3);
  CHECK(changed([](auto& t) { t.layers[1].gate = {}; }) > 1e-3);
  CHECK(changed([](auto& t) { t.rotary_frequencies.clear(); }) > 1e-3);
  CHECK(changed([](auto& t) { t.norm_epsilon = 1e-5; }) > 1e-3);
  CHECK(changed([](auto& t) { t.output_norm.shift = Matrix<double>::Zero(1, width); }) > 1e-3);  // LayerNorm
}

TEST_CASE("the heads of a layer are those that attention gets, and rotation can be left out", "[unit]") {
  const Transformer<double> all = everything();
  const Matrix<double> X = drawn("tokens", 0, tokens, width);
  Context context;
  std::vector<HeadData<double>> given;
  const auto states = hidden_states<double>(
      context, all, X, {},
      [&](Index layer, Index head, std::span<const HeadData<double>> drawn_heads, Out<double> out) {
        if (layer == 1 && head == 0) given.assign(drawn_heads.begin(), drawn_heads.end());
        out.setZero();
      });
  const auto found = layer_heads<double>(context, all, 1, states[1]),
             flat = layer_heads<double>(context, all, 1, states[1], false);
  REQUIRE((found.size() == 4 && given.size() == 4));
  for (size_t h = 0; h < found.size(); ++h) {
    CHECK((found[h].Q == given[h].Q && found[h].K == given[h].K && found[h].V == given[h].V));
    CHECK((flat[h].Q.row(0) == found[h].Q.row(0) && flat[h].V == found[h].V));  // position 0 is not turned
    CHECK(distance(flat[h].Q, found[h].Q) > 0.1);
    CHECK(distance(flat[h].Q.rowwise().norm(), found[h].Q.rowwise().norm()) < 1e-12);
  }
  CHECK((found[0].K == found[1].K && found[2].V == found[3].V && found[1].K != found[2].K));
}

}  // namespace attnbench::language_transformer_test
