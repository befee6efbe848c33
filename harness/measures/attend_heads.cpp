#include "harness/measures/attend_heads.hpp"

#include <fmt/format.h>

#include "harness/linalg/rounding.hpp"
#include "harness/measures/attention_matrix.hpp"

namespace attnbench {

namespace {

template <class T>
HeadData<T> rounded(HeadData<T> head, Rounding rounding) {
  for (Matrix<T>* X : {&head.Q, &head.K, &head.V}) round_to<T>(rounding, *X);
  return head;
}

// Matrix number `place`, rows x columns, in the caller's memory.
template <class T>
Out<T> matrix_at(std::span<T> numbers, Index place, Index rows, Index columns) {
  return {numbers.data() + place * rows * columns, rows, columns, columns};
}

// Writes the kernel without its stabilisers to position `place` of the results.
template <class T>
void write_kernel(const Kernel<T>& kernel, const Head<T>& head, Index place, Context& context,
                  const AttendResults<T>& results) {
  const Index nq = head.Q.rows(), nk = head.K.rows();
  Out<T> block = matrix_at(results.kernel, place, nq, nk);
  Matrix<T> log_rows(nq, 1), log_columns(1, nk);
  kernel.kernel(head, context, block, {log_rows.data(), static_cast<size_t>(nq)},
                {log_columns.data(), static_cast<size_t>(nk)});
  for (Index i = 0; i < nq; ++i)
    for (Index j = 0; j < nk; ++j) block(i, j) *= std::exp(log_rows(i, 0) + log_columns(0, j));
  if (!results.kernel_log_rows.empty()) matrix_at(results.kernel_log_rows, place, nq, 1) = log_rows;
  if (!results.kernel_log_columns.empty()) matrix_at(results.kernel_log_columns, place, 1, nk) = log_columns;
}

}  // namespace

template <class T>
void attend_heads(const AttendRequest& request, const GivenHeads<T>& given, Context& context,
                  const AttendResults<T>& results) {
  const Params& params = request.method;
  const Index nq = given.nq, nk = given.nk;
  const Mask mask{.causal = request.causal, .offset = request.causal ? nk - nq : 0};
  const Shape shape{nq, nk, given.d, given.dv, mask, sizeof(T) == 4 ? Precision::f32 : Precision::f64};
  const auto& entry = find<MethodEntry>(params.name());
  const auto claims = entry.claims(params, shape);
  if (!results.attention.empty() && !claims.no_attention_matrix.empty())
    throw Misuse(params.spec() + " has no attention matrix: " + claims.no_attention_matrix +
                 "; ask for its output alone");
  const bool fitted = entry.fitted(params);
  for (Index b = 0; b < given.batches; ++b)
    for (Index h = 0; h < given.heads; ++h) {
      const HeadData<T> data = rounded<T>(given.measured(b, h), context.rounding());
      const Head<T> head = data.view();
      std::optional<HeadData<double>> learnt;
      if (fitted) learnt = rounded<double>(given.calibration(b, h), context.rounding());
      const std::optional<Head<double>> learnt_view = learnt ? std::optional(learnt->view()) : std::nullopt;
      const auto method = make_approximation<T>({.shape = shape,
                                                 .params = params,
                                                 .streams = Streams(request.seed),
                                                 .head = h,
                                                 .calibration = learnt_view ? &*learnt_view : nullptr,
                                                 .state = request.state});
      const Index place = b * given.heads + h;
      const auto check = [&](const Out<T>& X, const char* name) {
        require_finite<T>(X, fmt::format("{} on batch {}, head {}: {}", params.spec(), b, h, name));
      };
      if (!results.out.empty()) {
        const Out<T> out = matrix_at(results.out, place, nq, given.dv);
        method->attend(head, mask, context, out);
        check(out, "output");
      }
      if (!results.attention.empty())
        matrix_at(results.attention, place, nq, nk) = attention_matrix(*method, head, mask, context).template cast<T>();
      if (results.kernel.empty()) continue;
      if (!method->kernel()) throw Misuse(params.spec() + " estimates no kernel; ask for its output alone");
      write_kernel(*method->kernel(), head, place, context, results);
      check(matrix_at(results.kernel, place, nq, nk), "kernel");
    }
}

template void attend_heads<float>(const AttendRequest&, const GivenHeads<float>&, Context&,
                                  const AttendResults<float>&);
template void attend_heads<double>(const AttendRequest&, const GivenHeads<double>&, Context&,
                                   const AttendResults<double>&);

}  // namespace attnbench
