// Attention sinks and a sliding window (StreamingLLM). Xiao et al., arXiv:2309.17453, section 3.2.
//   row i sees j < s (the sinks) and |i - j| <= w;  A = rownorm(softmax's A on those)                 methods.md F
// Trained heads put unused mass on the first tokens. A window alone loses these tokens; keeping a few of them repairs
// that. s = 0 is local attention, w >= n - 1 exact. Unlike in the paper, positions do not move with the window.
#include "approximations/sparse/window.hpp"

namespace attnbench::sink_window_method {
namespace {

const bool registered = add(sparse_method(
    {
        .text = {.name = "sink-window",
                 .printed = "Sinks and window",
                 .summary = "softmax over the first tokens and a sliding window",
                 .formula = "A_ij = exp(q_i.k_j) / sum over l < s or |i - l| <= w of exp(q_i.k_l), for such j",
                 .reference = "Xiao et al. 2023, StreamingLLM, arXiv:2309.17453, section 3.2",
                 .cost = "O(n (w + s) (d + dv)) time, O(w + s) memory beyond input and output",
                 .departure = "positions do not move with the window: q and k are taken as given",
                 .aliases = {"streaming-llm", "streamingllm"}},
        .parameters = {Parameter::integer("sinks", 4, "first tokens that every row sees", 0),
                       Parameter::integer("window", 64, "half width w: row i sees |i - j| <= w", 0).as_budget()},
        .claims = exact_with_a_full_window,
    },
    [](const Draw& draw) {
      return std::make_shared<Window>(draw.params.integer("sinks"), draw.params.integer("window"));
    }));

}  // namespace
}  // namespace attnbench::sink_window_method
