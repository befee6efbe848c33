#include "harness/experiment/cell.hpp"

#include <fmt/format.h>

#include "harness/experiment/experiment.hpp"

namespace attnbench {

namespace {
std::string problem_key(const Problem& p) {
  const auto& s = p.shape;
  const std::string round = p.rounding == Rounding::none ? "" : " round=" + to_string(p.rounding);
  return fmt::format("nq={} nk={} d={} dv={} causal={} offset={} keys={} precision={} heads={} logit_scale={}{}", s.nq,
                     s.nk, s.d, s.dv, s.mask.causal, s.mask.offset, s.mask.keys, to_string(s.precision), p.heads,
                     p.logit_scale, round);
}
}  // namespace

std::string Cell::input_key() const {
  return fmt::format("{} {} {} seed={}", input.spec(), find<InputEntry>(input.name()).content(input),
                     problem_key(problem), seed);
}

bool Cell::timing() const { return find<ExperimentEntry>(experiment.name()).timing(); }

Context context_of(const Cell& cell, int threads) {
  return Context(threads, cell.problem.rounding, operands_of(cell.problem.shape.precision));
}

namespace {
InputRequest input_request(const Cell& cell, Index replicate, Index head, Purpose purpose) {
  const auto& shape = cell.problem.shape;
  return {.nq = shape.nq,
          .nk = shape.nk,
          .d = shape.d,
          .dv = shape.dv,
          .streams = Streams(cell.seed),
          .head = head,
          .replicate = replicate,
          .purpose = purpose,
          .needs = needs_of(cell.method)};
}
}  // namespace

HeadData<double> draw_cell_head(const Cell& cell, Index replicate, Index head, Purpose purpose) {
  auto drawn = draw_head(cell.input, input_request(cell, replicate, head, purpose), cell.problem.logit_scale);
  drawn.extra =
      extras_for(cell.method, cell.problem.shape, drawn.extra, "the input " + cell.input.spec(), inputs_that_give);
  for (Matrix<double>* X : {&drawn.Q, &drawn.K, &drawn.V}) round_to<double>(cell.problem.rounding, *X);
  for (auto& [name, extra] : drawn.extra) round_to<double>(cell.problem.rounding, extra.numbers);
  return drawn;
}

std::vector<Index> needles_of(const Cell& cell, Index replicate) {
  const auto& entry = find<InputEntry>(cell.input.name());
  if (!entry.needles) return {};
  return entry.needles(cell.input, input_request(cell, replicate, 0, Purpose::measured));
}

}  // namespace attnbench
