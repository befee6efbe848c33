// A method on keys, values and queries that are rounded to a grid of integers, as an integer kernel or a cache of few
// bits holds them.
//   x^ = s round(x / s), s = max |x| / (2^(bits-1) - 1) over the numbers that share a scale                methods.md R
//   x^ = least + s round((x - least) / s), s = (greatest - least) / (2^bits - 1), with zero=true
//   k^ = mean + grid(k - mean) with smooth=true, mean that of the unpadded keys; v^ = grid(v), q^ = grid(q)
//   k^ = R^T grid(R k) and q^ = R^T grid(R q) with rotate, R orthogonal: q.k is the same, and one large channel is
//   spread over all (Ashkboos et al. 2024, QuaRot, arXiv:2404.00456)
// Zhang et al. 2024, SageAttention, arXiv:2410.02367: q and k - mean of 8 bits in blocks. Softmax is the same with or
// without the mean, which adds q.mean to all logits of a row; other methods need it. Liu et al. 2024, KIVI,
// arXiv:2402.02750: keys by channel, values by token.
//   granularity=tensor: all numbers share a scale; token: those of a token; channel: those of a column; block: those of
//     `block` consecutive tokens. A query's scale of a channel would not leave the product q.k: queries and values are
//     then scaled by token. group: at most so many numbers of a channel or of a token share a scale, 32 in KIVI.
// In float, softmax of queries and keys of at most 8 bits takes its logits from products of integers where the
// processor has fast ones (AVX-512 VNNI): integer_products.hpp. Their scales are of rows, so granularity=channel has
// none. Values stay real numbers. All else is emulated: numbers are rounded to the grid and stay real numbers; the
// method computes in the scalar type. Rounding is decided in double for both scalar types, halves go to the even
// number. Padded keys share no scale with others, nor do queries at padded positions. Under a causal mask the mean and
// shared scales are those of all keys, as published: a row then depends on later tokens by rounding. With
// granularity=token and smooth=false it does not.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

#include "approximations/low-rank/unpadded_queries.hpp"
#include "approximations/softmax/key_value_cache.hpp"
#include "approximations/softmax/tiled_softmax.hpp"
#include "harness/core/approximation.hpp"

namespace attnbench::quantised_method {
namespace {

enum class Granularity { tensor, token, channel, block };

Granularity granularity_of(const Params& params) {
  const auto& name = params.text("granularity");
  if (name == "tensor") return Granularity::tensor;
  if (name == "token") return Granularity::token;
  return name == "channel" ? Granularity::channel : Granularity::block;
}

void check(const Params& params) {
  const auto parts = params.all_nested("method");
  if (parts.size() != 1)
    throw Misuse(params.spec() + ": " + std::to_string(parts.size()) +
                 " specs; expected one, the method that gets the rounded numbers, as in quantised:[softmax],bits=8");
  find<MethodEntry>(parts[0].name()).check(parts[0]);
  if (const auto& granularity = params.text("granularity");
      params.integer("group") > 0 && granularity != "channel" && granularity != "token")
    throw Misuse(params.spec() + ": group cuts a channel or a token; give granularity=channel or token, or block=" +
                 params.text("group") + " without group");
}

Params inner_of(const Params& params) {
  check(params);
  return params.all_nested("method")[0];
}
const MethodEntry& entry_of(const Params& inner) { return find<MethodEntry>(inner.name()); }

// Of queries and values. A scale of a channel of the queries would not leave the product q.k.
Granularity others_of(Granularity of_keys) { return of_keys == Granularity::channel ? Granularity::token : of_keys; }

// Whether no token enters the rounding of another.
bool by_token(const Params& params) { return params.text("granularity") == "token" && !params.flag("smooth"); }

// Whether the grid is the symmetric one, with a scale alone, that products of integers take.
bool plain_grid(const Params& params) {
  return !params.flag("zero") && params.integer("group") == 0 && params.text("rotate") == "none";
}

double levels_of(Index bits) { return static_cast<double>((Index{1} << (bits - 1)) - 1); }

// Of numbers that share a scale. 0: they are all too small for one, and become 0.
double scale_of(const Out<double>& X, Index bits) {
  return X.size() == 0 ? 0 : X.cwiseAbs().maxCoeff() / levels_of(bits);
}

// The integers of a row on the grid; max |x| / scale may exceed the last one by rounding.
using Integers = Eigen::Array<double, 1, Eigen::Dynamic>;
Integers codes_of(const In<double>& row, double scale, Index bits) {
  return (row.row(0).array() / scale).rint().max(-levels_of(bits)).min(levels_of(bits));
}

// Calls body(part, scale) for the numbers that share a scale. granularity: not channel, whose parts are columns.
template <class Body>
void for_scales(const Out<double>& X, Granularity granularity, Index block, Index bits, const Body& body) {
  Index together = block;
  if (granularity == Granularity::tensor) together = std::max<Index>(1, X.rows());
  if (granularity == Granularity::token) together = 1;
  for (Index i = 0; i < X.rows(); i += together) {
    const Out<double> part = row_block(X, i, std::min(together, X.rows() - i));
    body(i, part, scale_of(part, bits));
  }
}

// Which numbers share a scale, and whether a grid begins at the least of them.
struct Grid {
  Granularity granularity;
  Index block, group;  // group 0: all of a channel or of a token
  bool zero;
};

// The numbers of a part share a scale.
void round_together(Out<double> X, bool zero, Index bits) {
  if (X.size() == 0) return;
  if (zero) {
    const double least = X.minCoeff(), step = (X.maxCoeff() - least) / static_cast<double>((Index{1} << bits) - 1);
    if (step > 0) X = (least + step * ((X.array() - least) / step).rint()).matrix();
    return;
  }
  const double scale = scale_of(X, bits);
  if (scale == 0) return void(X.setZero());
  for (Index i = 0; i < X.rows(); ++i) X.row(i) = scale * codes_of(row_block(X, i, 1), scale, bits).matrix();
}

void round_rows(Out<double> X, const Grid& grid, Index bits) {
  const bool channel = grid.granularity == Granularity::channel, token = grid.granularity == Granularity::token;
  Index rows = token ? 1 : X.rows(), columns = channel ? 1 : X.cols();
  if (grid.granularity == Granularity::block) rows = grid.block;
  if (channel && grid.group > 0) rows = grid.group;
  if (token && grid.group > 0) columns = grid.group;
  for (Index i = 0; i < X.rows(); i += rows)
    for (Index l = 0; l < X.cols(); l += columns)
      round_together(Out<double>(X.data() + i * X.outerStride() + l, std::min(rows, X.rows() - i),
                                 std::min(columns, X.cols() - l), X.outerStride()),
                     grid.zero, bits);
}

// The codes of rows [0, X.rows()) of all, which become rows `first` and later of them.
void write_codes(const Out<double>& X, Index first, Granularity granularity, Index block, Index bits, Codes& codes) {
  for_scales(X, granularity, block, bits, [&](Index begin, const Out<double>& part, double scale) {
    if (scale == 0) return;
    for (Index i = 0; i < part.rows(); ++i) {
      const Integers numbers = codes_of(row_block(part, i, 1), scale, bits);
      codes.set(first + begin + i, {numbers.data(), static_cast<size_t>(numbers.size())}, scale);
    }
  });
}

// Whether the logits are products of integers.
bool in_integers(const Params& params, const Params& inner, Precision precision) {
  return integer_products_are_fast && precision == Precision::f32 && inner.name() == "softmax" &&
         inner.text("form") == "tiled" && params.integer("bits") <= 8 && params.integer("queries") > 0 &&
         params.integer("queries") <= 8 && granularity_of(params) != Granularity::channel && plain_grid(params);
}

template <class T>
class Quantised final : public Approximation<T>, public Kernel<T>, public Rows<T>, public Pattern<T> {
 public:
  explicit Quantised(const Draw& draw)
      : bits_(draw.params.integer("bits")),
        of_queries_(draw.params.integer("queries")),
        of_values_(draw.params.integer("values")),
        of_keys_{granularity_of(draw.params), draw.params.integer("block"), draw.params.integer("group"),
                 draw.params.flag("zero")},
        smooth_(draw.params.flag("smooth")),
        by_token_(by_token(draw.params)) {
    const Params inner = inner_of(draw.params);
    inner_ = make_approximation<T>(draw.with(inner));
    in_integers_ = std::is_same_v<T, float> && in_integers(draw.params, inner, Precision::f32);
    rotation_ = rotation_of(draw);
  }

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    if constexpr (std::is_same_v<T, float>)
      if (in_integers_ && context.whole()) return attend_in_integers(head, mask, context, out);
    const Rounded rounded(*this, head, mask, of_values_ > 0);
    inner_->attend(rounded.view(), mask, context, out);
  }

  Tensors state() const override {
    Tensors all = inner_->state();
    if (rotation_.size() > 0) all.emplace("grid_rotation", rotation_);
    return all;
  }
  // out = A V^ is no product with V. Parts of a head have other scales, unless each token has its own.
  const Kernel<T>* kernel() const override { return of_values_ == 0 && by_token_ && inner_->kernel() ? this : nullptr; }
  const Rows<T>* rows() const override { return of_values_ == 0 && inner_->rows() ? this : nullptr; }
  const Pattern<T>* pattern() const override { return inner_->pattern() ? this : nullptr; }
  // Only if each token has scales of its own, and a cache of keys and values holds the tokens.
  std::unique_ptr<Decoder<T>> decoder(const Shape& shape) const override {
    auto inner = by_token_ ? inner_->decoder(shape) : nullptr;
    auto* cache = dynamic_cast<KeyValueCache<T>*>(inner.get());
    if (!cache) return nullptr;
    static_cast<void>(inner.release());
    return std::make_unique<RoundedCache>(*this, std::unique_ptr<KeyValueCache<T>>(cache), shape);
  }

  void kernel(const Head<T>& head, Context& context, Out<T> block, std::span<T> log_rows,
              std::span<T> log_columns) const override {
    inner_->kernel()->kernel(Rounded(*this, head, {}, false).view(), context, block, log_rows, log_columns);
  }
  void diagonal(const Head<T>& head, Context& context, std::span<T> values, std::span<T> log_scale) const override {
    inner_->kernel()->diagonal(Rounded(*this, head, {}, false).view(), context, values, log_scale);
  }
  void normalisers(const Head<T>& head, Mask mask, Context& context, std::span<T> values,
                   std::span<T> log_scale) const override {
    inner_->kernel()->normalisers(Rounded(*this, head, mask, false).view(), mask, context, values, log_scale);
  }
  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    inner_->rows()->attention_rows(Rounded(*this, head, mask, false).view(), mask, first, context, A);
  }
  void keys_of_rows(const Head<T>& head, Mask mask, Index first, Context& context,
                    std::span<std::vector<Index>> keys) const override {
    inner_->pattern()->keys_of_rows(Rounded(*this, head, mask, false).view(), mask, first, context, keys);
  }

 private:
  // The head with rounded numbers; it refers to those of the given one that stay as they are.
  class Rounded {
   public:
    Rounded(const Quantised& of, const Head<T>& head, Mask mask, bool values) : whole_(head) {
      const Index keys = Mask{.keys = mask.keys}.visible(0, head.K.rows());
      Matrix<double> K = head.K.template cast<double>();
      K.bottomRows(K.rows() - keys).setZero();
      const Eigen::RowVectorXd mean = of.take_mean(K, keys);
      const bool rotated = of.rotation_.size() > 0;
      if (rotated) K = K * of.rotation_.transpose();
      round_rows(row_block(K, 0, keys), of.of_keys_, of.bits_);
      if (rotated) K = K * of.rotation_;
      K.topRows(keys).rowwise() += mean;
      K_ = K.cast<T>();
      if (of.of_queries_ > 0) {
        const Index queries = unpadded_queries(head.Q.rows(), mask);
        Matrix<double> Q = head.Q.template cast<double>();
        if (rotated) Q = Q * of.rotation_.transpose();
        round_rows(row_block(Q, 0, queries), of.of_others(), of.of_queries_);
        round_rows(row_block(Q, queries, Q.rows() - queries), of.of_others(), of.of_queries_);
        if (rotated) Q = Q * of.rotation_;
        Q_ = Q.cast<T>();
      }
      if (values) V_ = of.rounded_values(head.V, keys);
    }

    Head<T> view() const {
      return {Q_.size() > 0 ? In<T>(Q_) : whole_.Q, K_, V_.size() > 0 ? In<T>(V_) : whole_.V, whole_.extra};
    }

   private:
    Head<T> whole_;
    Matrix<T> Q_, K_, V_;
  };

  // Rounds tokens as they come.
  class RoundedCache final : public Decoder<T> {
   public:
    RoundedCache(const Quantised& of, std::unique_ptr<KeyValueCache<T>> cache, const Shape& shape)
        : of_(of), cache_(std::move(cache)), d_(shape.d), dv_(shape.dv) {}
    void prefill(const Head<T>& tokens, Context& context) override {
      cache_->prefill(Rounded(of_, tokens, {}, of_.of_values_ > 0).view(), context);
    }
    void step(const Head<T>& token, Context& context, Out<T> out) override {
      cache_->step(Rounded(of_, token, {}, of_.of_values_ > 0).view(), context, out);
    }
    // Counts codes of that many bits and, for each group of a token's numbers, a scale, with zero=true a least number
    // as well. The emulation holds real numbers.
    size_t bytes() const override {
      const auto of_token = [this](Index numbers, Index bits) {
        const Index size = sizeof(T), group = of_.of_keys_.group > 0 ? of_.of_keys_.group : numbers;
        const Index scales = (numbers + group - 1) / group * (of_.of_keys_.zero ? 2 : 1);
        return bits > 0 ? (numbers * bits + 7) / 8 + scales * size : numbers * size;
      };
      return static_cast<size_t>(cache_->kept() * (of_token(d_, of_.bits_) + of_token(dv_, of_.of_values_)));
    }

   private:
    const Quantised& of_;
    std::unique_ptr<KeyValueCache<T>> cache_;
    Index d_, dv_;
  };

  // Takes their mean from the first `keys` keys if they are smoothed.
  Eigen::RowVectorXd take_mean(Matrix<double>& K, Index keys) const {
    Eigen::RowVectorXd mean = Eigen::RowVectorXd::Zero(K.cols());
    if (smooth_ && keys > 0) mean = K.topRows(keys).colwise().mean();
    K.topRows(keys).rowwise() -= mean;
    return mean;
  }

  Matrix<T> rounded_values(const In<T>& values, Index keys) const {
    Matrix<double> V = values.template cast<double>();
    V.bottomRows(V.rows() - keys).setZero();
    round_rows(row_block(V, 0, keys), of_others(), of_values_);
    return V.cast<T>();
  }

  // The mean of the keys, if they are less it, adds the same number to all logits of a row.
  void attend_in_integers(const Head<float>& head, Mask mask, Context& context, const Out<float>& out) const {
    const Index nq = head.Q.rows(), queries = unpadded_queries(nq, mask);
    const Index keys = Mask{.keys = mask.keys}.visible(0, head.K.rows());
    Codes of_queries(nq, head.Q.cols()), of_keys(head.K.rows(), head.K.cols());
    Matrix<double> X = head.K.cast<double>();
    take_mean(X, keys);
    write_codes(row_block(X, 0, keys), 0, of_keys_.granularity, of_keys_.block, bits_, of_keys);
    X = head.Q.cast<double>();
    const Grid others = of_others();
    write_codes(row_block(X, 0, queries), 0, others.granularity, others.block, of_queries_, of_queries);
    write_codes(row_block(X, queries, nq - queries), queries, others.granularity, others.block, of_queries_,
                of_queries);
    if (of_values_ == 0) return tiled_softmax_of_codes(of_queries, of_keys, head.V, mask, context, out);
    const Matrix<float> V = rounded_values(head.V, keys);
    tiled_softmax_of_codes(of_queries, of_keys, V, mask, context, out);
  }

  // d x d; empty with rotate=none.
  static Matrix<double> rotation_of(const Draw& draw) {
    const auto& kind = draw.params.text("rotate");
    const Index d = draw.shape.d;
    if (kind == "none") return {};
    if (const auto* given = draw.injected("grid_rotation", d, d)) return *given;
    Generator generator = draw.streams.stream("quantised rotation", draw.head, draw.replicate);
    if (kind == "haar") return haar_orthogonal(generator, d);
    // Its columns times random signs. Where d is no power of two, a block for each power of two in it.
    Matrix<double> H = Matrix<double>::Zero(d, d);
    for (Index begin = 0, size = 0; begin < d; begin += size) {
      size = static_cast<Index>(std::bit_floor(static_cast<std::uint64_t>(d - begin)));
      for (Index l = 0; l < size; ++l) {
        const double entry = (generator() % 2 == 0 ? 1 : -1) / std::sqrt(static_cast<double>(size));
        for (Index r = 0; r < size; ++r)
          H(begin + r, begin + l) = std::popcount(static_cast<std::uint64_t>(r & l)) % 2 == 0 ? entry : -entry;
      }
    }
    return H;
  }

  // The grid of queries and values.
  Grid of_others() const { return {others_of(of_keys_.granularity), of_keys_.block, of_keys_.group, of_keys_.zero}; }

  Index bits_, of_queries_, of_values_;
  Grid of_keys_;
  bool smooth_, by_token_, in_integers_ = false;
  Matrix<double> rotation_;
  std::unique_ptr<Approximation<T>> inner_;
};

Claims claims(const Params& params, const Shape& shape) {
  const Params inner = inner_of(params);
  Claims claims = entry_of(inner).claims(inner, shape);
  claims.permutation_equivariant &= params.text("granularity") != "block";
  claims.causal_exact &= by_token(params);
  claims.exact_when = "";
  claims.implied = {};
  if (params.integer("values") > 0) {
    claims.scales_with_V |= claims.linear_in_V;
    claims.linear_in_V = claims.equal_keys = false;
    if (claims.no_attention_matrix.empty()) claims.no_attention_matrix = "its values are rounded; values=exact has one";
  }
  return claims;
}

double memory(const Params& params, const Shape& shape) {
  const Params inner = inner_of(params);
  const double d = static_cast<double>(shape.d), dv = static_cast<double>(shape.dv);
  const double nq = static_cast<double>(shape.nq), nk = static_cast<double>(shape.nk);
  const double values = params.integer("values") > 0 ? nk * dv : 0;
  if (in_integers(params, inner, shape.precision))
    return (nq + nk) * (d + sizeof(float)) + 8 * std::max({nq * d, nk * d, values}) + values * sizeof(float);
  double rounded = nk * d, largest = nk * d;
  if (params.integer("queries") > 0) {
    rounded += nq * d;
    largest = std::max(largest, nq * d);
  }
  if (params.integer("values") > 0) {
    rounded += nk * dv;
    largest = std::max(largest, nk * dv);
  }
  if (params.text("rotate") != "none") largest *= 2;  // before and behind a product with the rotation
  // Numbers in double are given back before the method begins.
  return rounded * bytes_of(shape.precision) + std::max(8 * largest, entry_of(inner).memory(inner, shape));
}

std::vector<std::string> caveats(const Params& params, const Shape& shape) {
  const Params inner = inner_of(params);
  auto all = entry_of(inner).caveats(inner, shape);
  if (in_integers(params, inner, shape.precision))
    all.push_back("logits are products of integers of 8 bits (AVX-512 VNNI), at every bits; values stay real numbers");
  else
    all.push_back("emulated: numbers are rounded to a grid and stay real, so that time and memory are those of " +
                  inner.spec() + " and more, at every bits");
  if (shape.mask.causal && !by_token(params))
    all.push_back(
        "under a causal mask scales and means are those of all keys: rows depend on later tokens by rounding");
  return all;
}

const bool registered = add(method<Quantised>({
    .text =
        {.name = "quantised",
         .printed = "Quantised",
         .summary = "a method on keys, values and queries rounded to a grid of integers",
         .formula = "method(q^, k^, v^), x^ = s round(x / s), s = max |x| / (2^(bits-1) - 1) of the numbers that "
                    "share a scale",
         .reference = "Zhang et al. 2024, SageAttention, arXiv:2410.02367; Liu et al. 2024, KIVI, "
                      "arXiv:2402.02750; Ashkboos et al. 2024, QuaRot, arXiv:2404.00456",
         .cost =
             "that of the method, and O(n (d + dv)) time and memory; emulated, but for logits of 8 bits of softmax in "
             "float (AVX-512 VNNI)",
         .family = "quantised",
         .departure = "KIVI leaves the last tokens of a cache as they are, and here all are rounded; weights after the "
                      "softmax are not rounded, as SageAttention's are; blocks of queries and keys are of one "
                      "length, where SageAttention has 128 and 64",
         .aliases = {"quantized"}},
    .parameters = {Parameter::specs("method", "[softmax]", "the method that gets the rounded numbers", "methods"),
                   Parameter::integer("bits", 8, "bits of a number of the keys", 2, 16),
                   Parameter::choice(
                       "granularity", "block",
                       "the numbers that share a scale: all, those of a token, of a channel (queries and values: "
                       "of a token), or of a block of tokens",
                       {"tensor", "token", "channel", "block"}),
                   Parameter::integer("block", 64, "tokens of a block, with granularity=block", 1),
                   Parameter::integer_or("group", "all",
                                         "numbers of a channel, or of a token, that share a scale: all, or at most "
                                         "so many, 32 in KIVI",
                                         1, 1 << 20),
                   Parameter::flag("zero", false,
                                   "the grid begins at the least number of those that share a scale, as KIVI's; "
                                   "false: symmetric about 0"),
                   Parameter::choice("rotate", "none",
                                     "keys and queries are rotated before they are rounded, and back: none, by a "
                                     "random Hadamard matrix, or by any rotation (haar)",
                                     {"none", "hadamard", "haar"}),
                   Parameter::flag("smooth", false, "round the keys less their mean, which is added again"),
                   Parameter::integer_or("queries", "exact",
                                         "bits of a number of the queries; exact: they stay as they are", 2, 16),
                   Parameter::integer_or("values", "exact",
                                         "bits of a number of the values; exact: they stay as they are", 2, 16)},
    .claims = claims,
    .memory = memory,
    .cost =
        [](const Params& params, const Shape& shape) {
          const Params inner = inner_of(params);
          Work work = entry_of(inner).cost(inner, shape);
          const bool rotates = params.text("rotate") != "none", queries = params.integer("queries") > 0;
          if (rotates)  // there and back
            work.flops += 4 * static_cast<double>((shape.nk + (queries ? shape.nq : 0)) * shape.d * shape.d);
          return work;
        },
    .fitted =
        [](const Params& params) {
          const Params inner = inner_of(params);
          return entry_of(inner).fitted(inner);
        },
    .check = check,
    .caveats = caveats,
}));

}  // namespace
}  // namespace attnbench::quantised_method
