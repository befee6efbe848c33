// Inputs: laws that draw heads, and files that contain them. A law registers itself as an InputEntry.
#pragma once

#include <vector>

#include "harness/core/needs.hpp"
#include "harness/inputs/transformer.hpp"
#include "harness/random/streams.hpp"

namespace attnbench {

// The measured head, or the head that fitted methods may learn from.
enum class Purpose { measured, calibration };

struct InputRequest {
  Index nq = 0, nk = 0, d = 0, dv = 0;
  Streams streams;
  Index head = 0;
  Index replicate = 0;
  Purpose purpose = Purpose::measured;
  std::vector<Need> needs = {};  // of the method: an input that keeps many tensors reads only these
};

// The sizes and numbers of replicates that an input can provide. 0 means any.
struct InputLimits {
  Index queries = 0, keys = 0;  // most rows: a prefix of them is taken
  Index d = 0, dv = 0;          // fixed sizes
  Index replicates = 0;         // most replicates, if each has its own data
  Index heads = 0;              // how many heads there are: values of the parameter `head`
  bool causal = false;          // heads of a causal model, where causal_by_default does not say so of the whole input
};

// The name of an input in words, and the group that it belongs to.
struct InputPlace {
  std::string name;                // "layer 2, head 0"; of a law, its spec
  std::string group;               // "heads of the byte-level model"; of a law, empty
  std::string replicate = "draw";  // what a replicate is: a draw, a text, a seed
  Index texts = 1;                 // that the draws are on, in turn
};

struct InputEntry {
  static constexpr const char* kind = "input";
  static constexpr const char* plural = "inputs";

  Description text;
  std::vector<Parameter> parameters;
  // Q, K, V of the requested sizes, not scaled by d^-1/4, with the numbers of `provides`. Depends only on params and
  // request.
  std::function<HeadData<double>(const Params&, const InputRequest&)> draw;
  // Retrieval: the key at which each of the nq queries is aimed. Null: the input has no such keys.
  std::function<std::vector<Index>(const Params&, const InputRequest&)> needles = {};
  // The inputs beside Q, K and V that draw gives (HeadData::extra).
  std::vector<Need> provides = {};
  std::function<InputLimits(const Params&)> limits = [](const Params&) { return InputLimits{}; };
  // Files: a hash of their content, part of the cell key. Laws: empty.
  std::function<std::string(const Params&)> content = [](const Params&) { return std::string(); };
  // For heads of a whole transformer: the transformer, and the first request.nk tokens that enter it. Null: the heads
  // come from no transformer.
  std::function<EmbeddedTokens(const Params&, const InputRequest&)> transformer = {};
  // For a transformer that predicts tokens: what it reads of the first request.nk tokens, and what it should predict.
  std::function<PredictionTask(const Params&, const InputRequest&)> prediction = {};
  // Null: as of a law.
  std::function<InputPlace(const Params&)> place = {};
  bool has_calibration = true;     // false: the calibration head is the measured one, and rows say so
  bool causal_by_default = false;  // heads of a causal model
  // Replicates of an experiment on the whole model unless the user says otherwise, where its own number would take an
  // hour. 0: as the experiment says.
  Index usual_replicates = 0;
};

extern template class Registry<InputEntry>;

// Checks sizes against the input's limits and this machine's memory (Misuse), draws, refuses NaN and infinity (Misuse
// with the first place), and scales Q and K by sqrt(logit_scale) d^-1/4 each. The extras are those that request.needs
// names and the input provides.
HeadData<double> draw_head(const Params& input, const InputRequest& request, double logit_scale = 1);

InputPlace place_of(const Params& input);

// Whether fitted methods can learn from another text or draw than the measured one: of the input and of those in its
// spec.
bool has_calibration(const Params& input);

// "inputs that give it: ...": the end of a message about an input that has no such tensor.
std::string inputs_that_give(const Need& need);

// Throws Misuse if the input has too few rows or other widths, or as refuse_absurd_sizes does.
void refuse_sizes(const Params& input, Index nq, Index nk, Index d, Index dv);

// Throws Misuse if a head of these sizes, its output and one block of work do not fit in this machine's memory.
void refuse_absurd_sizes(Index nq, Index nk, Index d, Index dv);

}  // namespace attnbench
