// A sink: a logit in the denominator of every row that has no value, so that a row may attend to nothing.
//   out_i = sum_j exp(q_i.k_j) v_j / (exp(logit) + sum_j exp(q_i.k_j))                                  methods.md W2
// logit=0 is "softmax off by one" (Miller 2023, evanmiller.org, "Attention is off by one"). A learnt logit a head is in
// OpenAI 2025, gpt-oss, arXiv:2508.10925. Here it is a first token with the value 0, whose logit is a
// product of one further coordinate; its own query is 0 beside that coordinate.
#include "harness/inputs/logit_terms/inner_input.hpp"

namespace attnbench::sink_logit_term {
namespace {

// The sink is a token, so it has a query if queries are tokens too: if there are as many of them as keys.
bool has_query(const InputRequest& request) { return request.nq == request.nk; }

HeadData<double> draw(const Params& params, const InputRequest& request) {
  const Index d = request.d - 1, keys = request.nk - 1, queries = has_query(request) ? keys : request.nq;
  const HeadData<double> inner = inner_head(params, request, queries, keys, d);
  const double unit = unit_coordinate(request.d);
  HeadData<double> head{Matrix<double>::Zero(request.nq, request.d), Matrix<double>::Zero(request.nk, request.d),
                        Matrix<double>::Zero(request.nk, request.dv)};
  head.Q.bottomLeftCorner(queries, d) = inner.Q;
  head.K.bottomLeftCorner(keys, d) = inner.K;
  head.V.bottomRows(keys) = inner.V;
  head.Q.rightCols(1).setConstant(unit);
  head.K(0, d) = params.real("logit") * unit;
  return head;
}

const bool registered = add(InputEntry{
    .text = {.name = "sink-logit",
             .summary = "another input behind a token whose logit is the same for all rows and whose value is 0",
             .formula = "out_i = sum_j exp(q_i.k_j) v_j / (exp(logit) + sum_j exp(q_i.k_j)), as one more key and "
                        "coordinate",
             .reference = "Miller 2023, evanmiller.org/attention-is-off-by-one.html; OpenAI 2025, arXiv:2508.10925",
             .cost = "that of the other input",
             .family = "logit term"},
    .parameters = {inner_parameter(),
                   Parameter::real("logit", 0, "of the sink; 0 adds 1 to every denominator", -1e6, 1e6)},
    .draw = draw,
    .limits =
        [](const Params& params) {
          return wider_limits(
              params, [](Index d) { return d + 1; }, 1);
        },
    .content = inner_content,
});

}  // namespace
}  // namespace attnbench::sink_logit_term
