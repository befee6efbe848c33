// The order of methods that draw random features from the inputs' own laws: Performer, LARA, EVA and randomised
// attention at equal numbers of features, measured on the error of the output. methods.md A10.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/recipes/real_heads.hpp"
#include "harness/figures/looks.hpp"
#include "harness/runner/recipe.hpp"

namespace attnbench::ra_lara_eva_recipe {
namespace {

const std::string causal_head = "model:layer=2,head=0", masked_head = "masked-model:layer=2,head=0";
const std::string lara_paper = "Zheng, Wang and Kong 2022, arXiv:2204.04667, abstract",
                  eva_paper = "Zheng, Yuan, Wang and Kong 2023, arXiv:2302.04542, abstract";

// The four methods with `budget` features, samples a row, or chunks and keys of a window.
struct Budget {
  Index budget;

  std::string performer() const { return fmt::format("performer:m={}", budget); }
  std::string lara() const { return fmt::format("lara:c={}", budget); }
  std::string eva() const { return fmt::format("eva:c={0},window={0}", budget / 2); }
  std::string randomised() const { return fmt::format("randomised:m={}", budget); }
};
using Method = std::string (Budget::*)() const;

Panel panel(const std::string& title, const Cells& cells) {
  return {.title = title,
          .cells = cells,
          .x = {"m", "c"},
          .x_label = "features, samples of a row, or chunks",
          .x_scale = "log2",
          .y = "relative_output_error",
          .y_label = "|A'V - AV| / |AV|  (Frobenius)",
          .y_scale = "log10",
          .interval = "median"};
}

void write(Recipe& recipe) {
  const auto sizes = recipe.sized<std::vector<Index>>({8}, {16, 64}, {16, 32, 64, 128});
  // Where two methods err alike, only many draws tell them apart; the heads have 32 texts.
  const Index replicates = recipe.sized<Index>(2, 32, 256);
  std::vector<Budget> budgets;
  RunRequest request{.experiment = "attention-error:matrix=false",
                     .inputs = {"gaussian", "ar1"},
                     .n = {256},
                     .d = {16},
                     .causal = false,
                     .replicates = replicates};
  for (const Index size : sizes) {
    budgets.push_back({size});
    for (const Method method : {&Budget::performer, &Budget::lara, &Budget::eva, &Budget::randomised})
      request.methods.push_back((budgets.back().*method)());
  }
  RunRequest on_heads = request;
  on_heads.inputs = {causal_head, masked_head};
  on_heads.n = {recipe.sized<Index>(64, 256, 512)};
  on_heads.d = {};
  on_heads.replicates = recipe.sized<Index>(2, texts);
  const std::string inputs_and_texts = fmt::format("{} inputs or {} texts", replicates, on_heads.replicates);
  const Cells all = recipe.run(request) + recipe.run(on_heads);

  recipe.headline(9, "Do random features from the inputs' own laws approximate attention better?");
  std::vector<Panel> panels;
  for (const auto& input : all.by({"input"})) panels.push_back(panel(printed_spec("inputs", input.name), input.cells));
  recipe.figure("ra-lara-eva", "Performer, LARA, EVA and randomised attention at equal numbers of features",
                fmt::format("Bidirectional; medians with 95 % intervals over {}. Randomised attention draws for each "
                            "row alone and takes O(m n^2 d), the others O(n). EVA has as many keys in its window as "
                            "chunks, and is drawn at the number of these: half of its budget.",
                            inputs_and_texts),
                panels);

  const std::string measured = fmt::format(
      "the relative Frobenius error of the output, the median over {} of its ratio; B = {} features of "
      "Performer, "
      "proposals of LARA, draws of a row of randomised attention, or B/2 chunks and a window of B/2 tokens of EVA; "
      "normal tokens (n = 256, d = 16), tokens that resemble their neighbours (ar1), and layer 2, head 0 of the "
      "project's causal and masked byte-level models without causal mask, n = {}",
      inputs_and_texts, fmt::join(sizes, ", "), on_heads.n.front());
  // The error of one method over that of another: a region for each input.
  const auto ratios = [=, &recipe](Method method, Method over) {
    std::vector<Region> regions;
    const auto inputs = all.by({"input"});
    for (const auto& input : inputs) {
      Region region{input.name, {}};
      for (const Budget& budget : budgets)
        region.comparisons.push_back(
            {fmt::format("{}, {} over {}", input.name, (budget.*method)(), (budget.*over)()),
             median_ratio(input.cells.method((budget.*method)()).scalar("relative_output_error"),
                          input.cells.method((budget.*over)()).scalar("relative_output_error"),
                          recipe.error_rate(inputs.size() * budgets.size()))});
      regions.push_back(region);
    }
    return regions;
  };
  const std::string threshold =
      "1: equal errors; intervals that hold 1 and lie within a factor of 1.05 of it count as equal";
  recipe.judge({.text = "LARA errs less than Performer with as many random features",
                .source = lara_paper,
                .quotation = "Extensive experiments across various domains demonstrate that RA and LARA significantly "
                             "improve the performance of RFAs by a substantial margin.",
                .definition = measured,
                .threshold = threshold,
                .expected = Ruling::open,
                .because = "the paper's experiments train models; LARA's proposals are means of segments, which say "
                           "much of tokens that resemble their neighbours and nothing of independent ones"},
               [=] { return below_where(1, ratios(&Budget::lara, &Budget::performer), {}, 1.05); });
  recipe.judge(
      {.text = "EVA errs less than LARA at equal budgets",
       .source = eva_paper,
       .quotation = "Besides, it allows us to develop a more flexible form of control variates, resulting in a "
                    "novel attention mechanism that significantly reduces the approximation gap while "
                    "maintaining linear complexity.",
       .definition = measured,
       .threshold = threshold,
       .expected = Ruling::open,
       .because = "half of its budget is a window of exact weights, whose share of the mass depends on the head"},
      [=] { return below_where(1, ratios(&Budget::eva, &Budget::lara), {}, 1.05); });
  recipe.judge(
      {.text = "Randomised attention errs less than LARA at equal numbers of samples",
       .source = lara_paper,
       .quotation = "RA constructs positive random features via query-specific distributions and enjoys greatly "
                    "improved approximation fidelity, albeit exhibiting quadratic complexity.",
       .definition = measured,
       .threshold = threshold,
       .because = "both average the same function of a random vector; randomised attention draws it from its "
                  "own law for each row, LARA corrects shared draws by weights that vary"},
      [=] { return below_where(1, ratios(&Budget::randomised, &Budget::lara), {}, 1.05); });
  recipe.judge({.text = "Randomised attention errs less than EVA at equal budgets",
                .source = lara_paper,
                .paraphrase = "randomised attention is the method that LARA makes linear, and EVA its successor",
                .definition = measured,
                .threshold = threshold,
                .expected = Ruling::open,
                .because = "randomised attention has no bias but the variance of its draws; EVA has a bias, and exact "
                           "weights in its window"},
               [=] { return below_where(1, ratios(&Budget::randomised, &Budget::eva), {}, 1.05); });
}

const bool registered = add(RecipeEntry{
    .text = {.name = "ra-lara-eva",
             .summary = "Randomised attention, LARA and EVA beside Performer",
             .formula = "At equal numbers of random features, do features from the inputs' own laws err less?",
             .reference = "Zheng, Wang and Kong 2022, arXiv:2204.04667; Zheng et al. 2023, arXiv:2302.04542"},
    .write = write});

}  // namespace
}  // namespace attnbench::ra_lara_eva_recipe
