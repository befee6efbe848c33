#include "harness/measures/linear_map.hpp"

#include <atomic>
#include <cstdint>
#include <numeric>

#include "harness/linalg/products.hpp"
#include "harness/measures/attention_matrix.hpp"

namespace attnbench {

namespace {

constexpr Index most_entries = Index{1} << 24;

// The non-zero entries of a block of rows.
struct Entries {
  std::vector<size_t> row_begins{0};
  std::vector<std::int32_t> columns;
  std::vector<double> values;

  void add_row(const double* row, Index length) {
    for (Index j = 0; j < length; ++j)
      if (row[j] != 0) {
        columns.push_back(static_cast<std::int32_t>(j));
        values.push_back(row[j]);
      }
    row_begins.push_back(values.size());
  }
};

// Calls body(i, j, a_ij) for all entries in order.
template <class Body>
void for_entries(const std::vector<Entries>& blocks, const Body& body) {
  Index i = 0;
  for (const Entries& block : blocks)
    for (size_t row = 0; row + 1 < block.row_begins.size(); ++row, ++i)
      for (size_t e = block.row_begins[row]; e < block.row_begins[row + 1]; ++e)
        body(i, block.columns[e], block.values[e]);
}

// Threads take columns of G, so every entry of the result is one sum in a fixed order.
LinearMap::Product product_of(std::shared_ptr<const std::vector<Entries>> blocks, bool transposed) {
  return [blocks = std::move(blocks), transposed](Context& context, const In<double>& G, Out<double> out) {
    constexpr Index column_block = 16;
    context.for_blocks(G.cols(), column_block, [&](Context& single, Index first, Index count) {
      out.middleCols(first, count).setZero();
      double entries = 0;
      for_entries(*blocks, [&](Index i, Index j, double a) {
        const double* from = G.data() + (transposed ? i : j) * G.outerStride() + first;
        double* to = out.data() + (transposed ? j : i) * out.outerStride() + first;
        for (Index c = 0; c < count; ++c) to[c] += a * from[c];
        ++entries;
      });
      single.work.flops += 2 * entries * static_cast<double>(count);
    });
  };
}

}  // namespace

bool is_regular_triangle(const In<double>& A, Index first) {
  for (Index r = 0; r < A.rows(); ++r) {
    const Index i = first + r;
    if (i >= A.cols() || A(r, i) == 0) return false;
    for (Index j = i + 1; j < A.cols(); ++j)
      if (A(r, j) != 0) return false;
  }
  return true;
}

LinearMap map_of(const Matrix<double>& A) {
  return {A.rows(), A.cols(), A.squaredNorm(),
          [&A](Context& context, const In<double>& G, const Out<double>& out) { multiply<double>(context, A, G, out); },
          [&A](Context& context, const In<double>& G, Out<double> out) {
            out.setZero();
            transposed_multiply_add<double>(context, A, G, out);
          }};
}

StreamedAttention stream_attention(const Approximation<double>& method, const Head<double>& head, Mask mask,
                                   Context& context) {
  const Index nq = head.Q.rows(), nk = head.K.rows();
  const Index block = std::clamp<Index>((Index{1} << 22) / nk, 16, 256);
  const auto count_of_blocks = static_cast<size_t>((nq + block - 1) / block);
  auto entries = std::make_shared<std::vector<Entries>>(count_of_blocks);
  std::vector<double> squares(count_of_blocks);
  std::vector<char> triangular(count_of_blocks), finite(count_of_blocks);
  // Products over entries cannot use vectors along the keys. They pay off up to a tenth of the pairs.
  const Index most = std::min(most_entries, nq * nk / 10);
  std::atomic<Index> kept{0};
  context.for_blocks(nq, block, [&](Context& single, Index first, Index count) {
    const auto place = static_cast<size_t>(first / block);
    Matrix<double> A(count, nk);
    method.rows()->attention_rows(head, mask, first, single, A);
    finite[place] = A.allFinite();
    squares[place] = A.squaredNorm();
    triangular[place] = is_regular_triangle(A, first);
    Entries& own = (*entries)[place];
    for (Index r = 0; r < count && kept <= most; ++r) {
      own.add_row(&A(r, 0), nk);
      kept += static_cast<Index>(own.row_begins.back() - own.row_begins[own.row_begins.size() - 2]);
    }
  });
  if (const auto bad = std::find(finite.begin(), finite.end(), 0); bad != finite.end()) {
    const Index first = block * (bad - finite.begin());
    Matrix<double> A(std::min(block, nq - first), nk);
    method.rows()->attention_rows(head, mask, first, context, A);
    require_finite<double>(A, "attention matrix", first);
  }
  StreamedAttention result;
  result.regular_triangle = nq == nk && std::find(triangular.begin(), triangular.end(), 0) == triangular.end();
  result.map = {.rows = nq, .columns = nk, .frobenius_squared = std::accumulate(squares.begin(), squares.end(), 0.0)};
  if (kept <= most) {
    result.map.times = product_of(entries, false);
    result.map.transposed_times = product_of(entries, true);
    return result;
  }
  result.map.times = [&method, head, mask](Context& with, const In<double>& G, const Out<double>& out) {
    method.attend({head.Q, head.K, G, head.extra}, mask, with, out);
  };
  result.map.transposed_times = [&method, head, mask](Context& with, const In<double>& G, const Out<double>& out) {
    method.rows()->transposed_times(head, mask, G, with, out);
  };
  return result;
}

}  // namespace attnbench
