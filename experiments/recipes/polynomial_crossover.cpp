// From which length the polynomial kernel of degree 2 is cheaper than softmax. With D^2 features 4 n D^2 (D + 1)
// against 4 n^2 D FLOPs: n > D^2 (1 + 1/D). The kernel needs only D (D + 1) / 2 features since q_l q_m = q_m q_l, so
// n > (D + 1)^2 / 2 suffices: half as long, methods.md C5. Time also includes softmax's exponentials and the features.
#include <fmt/format.h>

#include "experiments/recipes/growth.hpp"

namespace attnbench::polynomial_crossover_recipe {
namespace {

struct Width {
  Index d;
  Cells timed, counted;
};

void draw(Recipe& recipe, const std::vector<Width>& widths) {
  std::vector<Panel> panels;
  for (const auto& [d, timed, counted] : widths)
    panels.push_back(speedup_panel(
        fmt::format("D = {}: D^2 = {}, (D + 1)^2 / 2 = {:g}", d, d * d, static_cast<double>((d + 1) * (d + 1)) / 2),
        timed));
  recipe.figure("polynomial-crossover", "Where the polynomial kernel overtakes softmax",
                "One head, dv = d = D, float, one thread, bidirectional: medians of the ratios within a block, with "
                "distribution-free 95 % intervals; lines are the ratios of FLOPs. The legend has the n from which on "
                "the polynomial kernel is faster.",
                panels);
}

void write(Recipe& recipe) {
  std::vector<Width> widths;
  for (const Index d : recipe.sized<std::vector<Index>>({8}, {16, 32}, {16, 32, 64})) {
    RunRequest request{.experiment = "speed:" + turns(recipe),
                       .methods = {"polynomial"},
                       .inputs = {"gaussian"},
                       .n = recipe.sized<std::vector<Index>>({32, 64}, {64, 128, 256, 512, 1024, 2048},
                                                             {32, 64, 128, 256, 512, 1024, 2048, 4096, 8192}),
                       .d = {d},
                       .causal = false,
                       .precision = Precision::f32};
    const Cells timed = recipe.run(request);
    request.experiment = "layer-flops";
    request.methods = {"polynomial", "softmax"};
    request.n = {d * d};
    widths.push_back({d, timed, recipe.run(request)});
  }
  draw(recipe, widths);

  recipe.judge(
      {.text = "From n = D^2 on at the latest, attention with the polynomial kernel of degree 2 takes fewer "
               "floating-point operations than softmax attention",
       .source = "Katharopoulos et al. 2020, arXiv:2006.16236, section 3.2.1",
       .quotation = "The computational cost for a linearized polynomial transformer of degree 2 is O(N D^2 M). "
                    "This makes the computational complexity favorable when N > D^2.",
       .definition =
           "the n at which both take equally many floating-point operations by this project's formulas, one head, dv = "
           "d = D, no mask, D = 16 and 32 (at full size also 64), each judged. The kernel (q.k)^2 is evaluated with D "
           "(D + 1) / 2 features, each product of two channels once; the source counts D^2 features",
       .threshold =
           "D^2, the source's condition. With each product once (D + 1)^2 / 2 is enough, since q_l q_m = q_m q_l",
       .because = "4 n D (D + 1) (D + 1) / 2 = 4 n^2 D at n = (D + 1)^2 / 2"},
      [=] {
        // The kernel's FLOPs are proportional to n, softmax's to n^2.
        std::vector<Bounded> all;
        for (const auto& [d, timed, counted] : widths) {
          const auto flops = [&, &one = counted](const std::string& method) {
            return one.method(method).scalar("attention_flops").at(0);
          };
          const auto square = static_cast<double>(d * d);
          all.push_back(
              {fmt::format("n of equal FLOPs, D = {}", d), square * flops("polynomial") / flops("softmax"), square});
        }
        return all_at_most(all);
      });
  recipe.judge(
      {.text = "On one CPU thread, attention with the polynomial kernel of degree 2 is faster than exact softmax "
               "attention from n = D^2 on",
       .definition =
           "the n from which on softmax's seconds over the kernel's stay at 1 or above up to the longest measured n, "
           "over D^2: interpolated between lengths on logarithmic scales, one number a block of turns (0 where the "
           "kernel is faster from the shortest n on, infinite where it is slower at the longest), median over blocks, "
           "by D. Softmax is this project's tiled one; one head, dv = d = D, float, one thread, no mask, n = 64 to "
           "2048 (at full size 32 to 8192), D = 16 and 32 (at full size also 64)",
       .threshold = "1: n = D^2, the published condition for operations, here asked of time",
       .expected = Ruling::open,
       .because = "both take equally many operations at half of D^2, but their code runs at different speeds"},
      [=, &recipe] {
        std::vector<Region> regions;
        std::vector<Curve> curves;
        for (const auto& [d, timed, counted] : widths) {
          std::vector<double> over = crossings(timed);
          for (double& n : over) n /= static_cast<double>(d * d);
          regions.push_back({fmt::format("D = {}", d),
                             {{"", median_of(over, recipe.error_rate(widths.size()))}},
                             static_cast<double>(d)});
          curves.push_back({regions.back().name, timed});
        }
        return with_disturbances(below_where(1, regions, "D"), curves);
      });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "polynomial-crossover",
                             .summary = "The length from which the polynomial kernel is cheaper than softmax",
                             .formula = "From which length on does attention with the polynomial kernel of degree 2 "
                                        "take fewer operations than softmax, and less time?",
                             .reference = "Katharopoulos et al. 2020, arXiv:2006.16236, section 3.2.1"},
                    .write = write});

}  // namespace
}  // namespace attnbench::polynomial_crossover_recipe
