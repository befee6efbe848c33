#include "harness/measures/attend_heads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/core/all_heads.hpp"
#include "harness/core/shared_budget.hpp"
#include "harness/linalg/rounding.hpp"
#include "harness/measures/attention_matrix.hpp"

namespace attnbench {

namespace {

template <class T>
HeadData<T> rounded(HeadData<T> head, Rounding rounding) {
  for (Matrix<T>* X : {&head.Q, &head.K, &head.V}) round_to<T>(rounding, *X);
  for (auto& [name, extra] : head.extra) round_to<double>(rounding, extra.numbers);
  return head;
}

// Copies X to position `place` of the caller's memory. Methods write into aligned memory of ours first: the alignment
// decides which exponentials are computed one by one, and so their last bits.
template <class T>
void keep(const Matrix<T>& X, Index place, std::span<T> numbers) {
  if (!numbers.empty()) std::copy_n(X.data(), X.size(), numbers.begin() + place * X.size());
}

// The kernel without its stabilisers, and the stabilisers.
template <class T>
struct WholeKernel {
  WholeKernel(const Kernel<T>& kernel, const Head<T>& head, Context& context)
      : block(head.Q.rows(), head.K.rows()), log_rows(head.Q.rows(), 1), log_columns(1, head.K.rows()) {
    kernel.kernel(head, context, block, {log_rows.data(), static_cast<size_t>(log_rows.size())},
                  {log_columns.data(), static_cast<size_t>(log_columns.size())});
    for (Index i = 0; i < block.rows(); ++i)
      for (Index j = 0; j < block.cols(); ++j) block(i, j) *= std::exp(log_rows(i, 0) + log_columns(0, j));
  }
  Matrix<T> block, log_rows, log_columns;
};

// A tensor that the method does not know would be ignored, and the caller would compare a fresh draw with their model.
void refuse_unknown(const Params& params, const Tensors& injected, const Tensors& known) {
  for (const auto& [name, tensor] : injected) {
    if (known.contains(name)) continue;
    std::string names;
    for (const auto& [other, numbers] : known)
      names += fmt::format("{}'{}' ({} x {})", names.empty() ? "" : ", ", other, numbers.rows(), numbers.cols());
    throw Misuse(fmt::format("{}: there is no tensor '{}' in its state; {}", params.spec(), name,
                             names.empty() ? "its state is empty: it draws and learns nothing" : "there are " + names));
  }
}

}  // namespace

template <class T>
void attend_heads(const AttendRequest& request, const GivenHeads<T>& given, Context& context,
                  const AttendResults<T>& results) {
  const Params& params = request.method;
  const Index nq = given.nq, nk = given.nk;
  const Mask mask{.causal = request.causal, .offset = request.causal ? nk - nq : 0};
  const Precision precision = sizeof(T) == 8                         ? Precision::f64
                              : context.operands() == Operands::bf16 ? Precision::bf16
                                                                     : Precision::f32;
  const Shape shape{nq, nk, given.d, given.dv, mask, precision};
  const auto& entry = find<MethodEntry>(params.name());
  const auto claims = entry.claims(params, shape);
  if (!results.attention.empty() && !claims.no_attention_matrix.empty())
    throw Misuse(params.spec() + " has no attention matrix: " + claims.no_attention_matrix +
                 "; ask for its output alone");
  const bool fitted = entry.fitted(params);
  if (request.states.size() > 1 && static_cast<Index>(request.states.size()) != given.heads)
    throw Misuse(
        fmt::format("the state is of {} heads; expected one for all, or {}", request.states.size(), given.heads));
  const auto draw = [&](Index b, Index h) {
    std::optional<HeadData<double>> learnt;
    if (fitted) learnt = rounded<double>(given.calibration(b, h), context.rounding());
    const std::optional<Head<double>> learnt_view = learnt ? std::optional(learnt->view()) : std::nullopt;
    const Tensors* state = request.states.empty()       ? nullptr
                           : request.states.size() == 1 ? &request.states[0]
                                                        : &request.states[static_cast<size_t>(h)];
    auto method = make_approximation<T>({.shape = shape,
                                         .params = params,
                                         .streams = Streams(request.seed),
                                         .head = h,
                                         .calibration = learnt_view ? &*learnt_view : nullptr,
                                         .state = state,
                                         .layer = request.place.layer,
                                         .layers = request.place.layers});
    if (state && b == 0) refuse_unknown(params, *state, method->state());
    if (results.states && b == 0) results.states->push_back(method->state());
    return method;
  };
  // out: the head's output, where one call gave those of all heads.
  const auto keep_results = [&](Index b, Index h, const Approximation<T>& method, const Head<T>& head,
                                const Matrix<T>* given_out) {
    const Index place = b * given.heads + h;
    const auto check = [&](const Matrix<T>& X, const char* name) {
      require_finite<T>(X, fmt::format("{} on batch {}, head {}: {}", params.spec(), b, h, name));
    };
    if (!results.out.empty()) {
      Matrix<T> own(given_out ? 0 : nq, given.dv);
      if (!given_out) method.attend(head, mask, context, own);
      const Matrix<T>& out = given_out ? *given_out : own;
      check(out, "output");
      keep(out, place, results.out);
    }
    if (!results.attention.empty())
      keep<T>(attention_matrix(method, head, mask, context).template cast<T>(), place, results.attention);
    if (results.kernel.empty()) return;
    if (!method.kernel()) throw Misuse(params.spec() + " estimates no kernel; ask for its output alone");
    const WholeKernel<T> kernel(*method.kernel(), head, context);
    check(kernel.block, "kernel");
    keep(kernel.block, place, results.kernel);
    keep(kernel.log_rows, place, results.kernel_log_rows);
    keep(kernel.log_columns, place, results.kernel_log_columns);
  };
  for (Index b = 0; b < given.batches; ++b) {
    std::vector<HeadData<T>> heads;
    std::vector<std::unique_ptr<Approximation<T>>> methods;
    std::vector<Index> held;  // only heads that may be joined are held together
    for (Index h = 0; h < given.heads; ++h) {
      heads.push_back(rounded<T>(given.measured(b, h), context.rounding()));
      heads.back().extra = extras_for(params, shape, heads.back().extra, request.giver, request.advice);
      methods.push_back(draw(b, h));
      held.push_back(h);
      if (dynamic_cast<const Joinable<T>*>(methods.back().get()) ||
          dynamic_cast<const SharesBudget<T>*>(methods.back().get()))
        continue;
      keep_results(b, h, *methods.back(), heads.back().view(), nullptr);
      heads.pop_back();
      methods.pop_back();
      held.pop_back();
    }
    divide_budget<T>(methods, heads, mask, context);
    const auto together =
        results.out.empty() ? nullptr : all_heads<T>(methods, std::ssize(methods) == given.heads ? given.key_heads : 0);
    std::vector<Matrix<T>> outputs(together ? heads.size() : 0, Matrix<T>(nq, given.dv));
    if (together) together->attend(heads, mask, context, outputs);
    for (size_t h = 0; h < methods.size(); ++h)
      keep_results(b, held[h], *methods[h], heads[h].view(), together ? &outputs[h] : nullptr);
  }
}

template void attend_heads<float>(const AttendRequest&, const GivenHeads<float>&, Context&,
                                  const AttendResults<float>&);
template void attend_heads<double>(const AttendRequest&, const GivenHeads<double>&, Context&,
                                   const AttendResults<double>&);

}  // namespace attnbench
