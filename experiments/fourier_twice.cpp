// FNet applied to its own output. methods.md G1. With F the unnormalised Fourier transform over tokens and channels and
// V reversed V^-_ij = V_(-i mod n, -j mod dv),
//   F(F(V)) = n dv V^-,   but Re F(Re F(V)) = n dv (V + V^-) / 2:   the odd part, V = -V^-, is lost in the first step.
// The complex transform is computed here, as plain sums, for comparison with the method.
#include <complex>
#include <numbers>

#include "harness/experiment/experiment.hpp"
#include "harness/measures/attention_matrix.hpp"

namespace attnbench::fourier_twice_experiment {
namespace {

using Complex = Eigen::MatrixXcd;

Complex fourier_matrix(Index n) {
  Complex F(n, n);
  for (Index j = 0; j < n; ++j)
    for (Index k = 0; k < n; ++k)
      F(j, k) = std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n));
  return F;
}

Matrix<double> reversed(const Matrix<double>& V) {
  const Index n = V.rows(), dv = V.cols();
  Matrix<double> R(n, dv);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < dv; ++j) R(i, j) = V((n - i) % n, (dv - j) % dv);
  return R;
}

void refuse_what_is_no_transform(const Cell& cell) {
  if (cell.method.name() != "fnet")
    throw Misuse("fourier-twice with --method " + cell.method.spec() + ": expected --method fnet, the only transform");
}

void measure(const Task& task, Recorder& record) {
  const auto head = draw_cell_head(task.cell, task.replicate, 0, Purpose::measured);
  const auto method = task.method<double>(0, task.replicate);
  const Matrix<double>& V = head.V;
  const auto transformed = [&](const Matrix<double>& X) {
    Matrix<double> out(V.rows(), V.cols());
    method->attend({head.Q, head.K, X, &head.extra}, task.cell.problem.shape.mask, task.context, out);
    require_finite<double>(out, "output");
    return out;
  };
  const auto size = static_cast<double>(V.size());
  const Matrix<double> once = transformed(V), twice = transformed(once) / size;
  const Matrix<double> R = reversed(V), odd = (V - R) / 2;
  const Complex Fn = fourier_matrix(V.rows()), Fd = fourier_matrix(V.cols());
  const Complex complex_twice = Fn * (Fn * V.cast<std::complex<double>>() * Fd) * Fd / size;
  record.scalar("to_reversal", "1", (twice - R).norm() / V.norm());
  record.scalar("to_even_part", "1", (twice - (V + R) / 2).norm() / V.norm());
  record.scalar("complex_to_reversal", "1", (complex_twice - R.cast<std::complex<double>>()).norm() / V.norm());
  record.scalar("odd_part_kept", "1", transformed(odd).norm() / (std::sqrt(size) * odd.norm()));
  record.scalar("share_of_odd_part", "1", odd.norm() / V.norm());
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "fourier-twice",
             .summary = "FNet applied to its own output: the reversal of V, or its even part",
             .formula = "|FNet(FNet(V)) / (n dv) - X| / |V| for X the reversal and the even part of V",
             .reference = "Lee-Thorp et al. 2021, arXiv:2105.03824, eq. 3",
             .cost = "O(n^2 dv) for the complex transform beside it"},
    .parameters = {},
    .metrics = {{"to_reversal",
                 "1",
                 "|FNet(FNet(V)) / (n dv) - V^-| / |V|, V^-_ij = V_(-i, -j) mod n and dv",
                 {},
                 "distance / |V|",
                 "log10"},
                {"to_even_part", "1", "|FNet(FNet(V)) / (n dv) - (V + V^-) / 2| / |V|", {}, "distance / |V|", "log10"},
                {"complex_to_reversal",
                 "1",
                 "|F(F(V)) / (n dv) - V^-| / |V| of the complex transform F",
                 {},
                 "distance / |V|",
                 "log10"},
                {"odd_part_kept", "1", "|FNet(V_odd)| / ((n dv)^1/2 |V_odd|), V_odd = (V - V^-) / 2; |F(V)| gives 1"},
                {"share_of_odd_part", "1", "|V_odd| / |V|"}},
    .headline = {.metric = "to_reversal", .label = "distance of FNet twice to the reversal"},
    .check = refuse_what_is_no_transform,
    .run = measure,
});

}  // namespace
}  // namespace attnbench::fourier_twice_experiment
