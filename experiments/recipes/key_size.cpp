// Whether larger keys make linear attention sparser. methods.md I10: not on iid data, where a row is a sum over
// channels that concentrates on its mean as d grows. Heads of the model have key size 64; smaller ones keep the
// dimensions that approximate the logits best (model:key_size=). ReLU is homogeneous: raw and scaled q and k give the
// same rows.
#include <fmt/format.h>

#include "experiments/recipes/conventions.hpp"
#include "experiments/recipes/real_heads.hpp"

namespace attnbench::key_size_recipe {
namespace {

const std::string own_map = "linear:features=exp,inputs=unscaled";  // as in the source
const Specs other_maps{"linear:inputs=unscaled", "linear", "linear:features=exp", "linear:features=relu"};
const Specs laws{"gaussian", "ar1", "clustered"};
const std::string experiment = "sparsity:by_row=false", support = "relative_support";
constexpr Index model_d = 64, smallest = 4;

Specs maps() {
  Specs all{own_map};
  all.insert(all.end(), other_maps.begin(), other_maps.end());
  return all;
}
Specs drawn() {
  Specs all = maps();
  all.insert(all.end(), {"softmax", "uniform"});
  return all;
}
std::vector<Index> key_sizes(const Recipe& recipe) {
  return recipe.sized<std::vector<Index>>({4, 64}, {4, 16, 64, 256}, {4, 16, 64, 256, 512});
}
std::vector<Index> key_sizes_of_heads(const Recipe& recipe) {
  return recipe.sized<std::vector<Index>>({4, 64}, {4, 64}, {4, 16, 64});
}
std::string with_keys(const RealHead& head, Index d) { return fmt::format("{},key_size={}", head.input(), d); }

Panel panel(const std::string& title, const Cells& cells) {
  return {.title = title,
          .cells = cells,
          .x = {"d"},
          .x_label = "key size d",
          .x_scale = "log2",
          .y = support,
          .y_label = "effective support / n",
          .y_scale = "log10"};
}

// Support at the largest keys over that at the smallest: below 1, larger keys give sparser rows.
Estimate sparser(const Cells& large, const Cells& small, double error_rate) {
  return median_ratio(large.scalar(support), small.scalar(support), error_rate);
}

const std::string relieved =
    "要缓解这一点，还是需要增大key_"
    "size，来放大差距，直观来说，就是n向量放到一个低维空间太“挤”了，换到更高维的空间就“松”一些了。 "
    "(To relieve this one again needs a larger key_size, to amplify the differences; "
    "intuitively, n vectors in a low-dimensional space are too crowded, and in a space of more "
    "dimensions somewhat looser.)";
const std::string place = "Su 2021, kexue.fm/archives/8338, section 集中注意";
const std::string same = "1: equally dense";

void judge_laws(Recipe& recipe, const Cells& all) {
  const Index small = key_sizes(recipe).front(), large = key_sizes(recipe).back();
  const double rate = recipe.error_rate(laws.size() * maps().size());
  const auto by_law = [=](const Specs& which) {
    std::vector<Region> regions;
    for (const auto& law : which) {
      regions.push_back({law, {}});
      for (const auto& map : maps()) {
        const Cells here = all.input(law).method(map);
        regions.back().comparisons.push_back(
            {map, sparser(here.where({{"d", large}}), here.where({{"d", small}}), rate)});
      }
    }
    return regions;
  };
  const std::string defined = fmt::format(
      "effective support at d = {} over that at d = {}: exp of the entropy of a row, mean over rows; below 1 larger "
      "keys are sparser. Linear attention with 1 + elu and exp on raw q and k and on q and k times d^-1/4, and with "
      "ReLU; n = {}, bidirectional, entries of unit variance, medians over {} inputs",
      large, small, all.all().front().asked.problem.shape.nk, all.all().front().replicates);
  recipe.judge(
      {.text = "Where the channels of queries and keys are independent, larger keys make linear attention sparser, "
               "with every feature map compared",
       .source = place,
       .quotation = relieved,
       .definition = defined +
                     "; independent normal tokens and tokens correlated by 0.9 with their neighbours (ar1); each must "
                     "hold with every map. The source speaks of a model's keys, whose channels are not independent",
       .threshold = same,
       .expected = Ruling::refuted,
       .because = "a weight is then a sum over d independent channels, which scatters about its mean as "
                  "d^-1/2. The post speaks of trained keys, whose channels are not independent"},
      [=] {
        return below_where(1, by_law({"gaussian", "ar1"}));
      });
  recipe.judge({.text = "Where queries and keys share 16 clusters, larger keys make linear attention sparser, with "
                        "every feature map compared",
                .source = place,
                .quotation = relieved,
                .definition = defined + "; queries and keys around 16 random centres that they share (clustered); all "
                                        "maps must hold. The source speaks of a model's keys",
                .threshold = same,
                .expected = Ruling::open,
                .because = "clusters raise some weights and more channels even them out"},
               [=] { return below_where(1, by_law({"clustered"})); });
  recipe.judge({.text = fmt::format("How far linear attention with keys of d = {} is from average pooling, on normal, "
                                    "autoregressive and clustered tokens",
                                    large),
                .definition =
                    fmt::format("1 less the effective support of a row (exp of its entropy) over n, mean over rows; 0 "
                                "is average pooling. Linear attention with 1 + elu and exp on raw q and k and on q and "
                                "k times d^-1/4, and with ReLU; independent normal, autoregressive (correlation 0.9) "
                                "and clustered tokens (16 centres), n = {}, bidirectional, medians over {} inputs",
                                all.all().front().asked.problem.shape.nk, all.all().front().replicates),
                .threshold = "none is published: 0.01, 0.1 and 0.5 are there for the reader",
                .expected = Ruling::measured,
                .because = "it depends on the map and on the input"},
               [=] {
                 std::vector<Comparison> away;
                 for (const auto& law : laws)
                   for (const auto& map : maps()) {
                     Samples values = all.input(law).method(map).where({{"d", large}}).scalar(support);
                     for (auto& [replicate, value] : values) value = 1 - value;
                     away.push_back({fmt::format("{} on {}", map, law), median_of(values, rate)});
                   }
                 return values_of(away, {0.01, 0.1, 0.5});
               });
}

void judge_heads(Recipe& recipe, const Cells& all) {
  const auto heads = telling_heads(recipe);
  const double of_own = recipe.error_rate(heads.size()),
               of_others = recipe.error_rate(heads.size() * other_maps.size());
  const auto compared = [=](const RealHead& head, const std::string& map, double rate) {
    return sparser(all.method(map).input(with_keys(head, model_d)), all.method(map).input(with_keys(head, smallest)),
                   rate);
  };
  const std::string defined = fmt::format(
      "effective support (exp of the entropy of a row over the keys that it sees, mean over rows) with all {} "
      "dimensions of a head's keys over that with the {} directions that approximate its logits best (of least "
      "Frobenius error, over the whole text); below 1 larger keys are sparser. With the {} directions q and k are "
      "multiplied by ({} / {})^1/4, so that q.k over the root of the number of dimensions stays the head's; maps of "
      "raw q and k see these smaller q and k. "
      "Causal, n = {}, medians over {} texts; ",
      model_d, smallest, smallest, smallest, model_d, all.all().front().asked.problem.shape.nk,
      all.all().front().replicates);
  recipe.judge(
      {.text =
           fmt::format("On heads of this project's byte-level model, linear attention with exponentials of raw q "
                       "and k is sparser with all {} dimensions of the keys than with the best {}, whose entries are "
                       "halved so that q.k over the root of the number of dimensions stays the head's",
                       model_d, smallest),
       .source = place,
       .quotation = relieved,
       .definition =
           defined +
           "each head is judged by itself. Halved entries alone make exponentials denser: with q and k times "
           "d^-1/4, which undoes the halving, larger keys make them denser (the next statement has the factors)",
       .threshold = same,
       .because = "that is the post's own map: of more channels of one query and key the largest sum is larger, "
                  "and exponentials are ruled by it"},
      [=] {
        std::vector<Region> regions;
        for (const RealHead& head : heads) regions.push_back({head.name(), {{"", compared(head, own_map, of_own)}}});
        return below_where(1, regions);
      });
  recipe.judge(
      {.text = fmt::format(
           "By what factor all {} dimensions of the keys in place of the best {} change the effective support of "
           "linear attention with elu, ReLU and scaled exp features, on heads of this project's byte-level model",
           model_d, smallest),
       .definition =
           defined + "1 + elu on raw q and k, 1 + elu and exp on q and k times d^-1/4, and ReLU, each on every head",
       .threshold = "1: equally dense; 0.9 and 1.1 are there for the reader",
       .expected = Ruling::measured,
       .because = "elu and ReLU grow linearly, and exp of scaled inputs is nearly so: weights part less"},
      [=] {
        std::vector<Comparison> factors;
        for (const auto& map : other_maps)
          for (const RealHead& head : heads)
            factors.push_back({fmt::format("{}, {}", map, head.name()), compared(head, map, of_others)});
        return values_of(factors, {0.9, 1, 1.1});
      });
}

void write(Recipe& recipe) {
  const auto heads = telling_heads(recipe);
  RunRequest request{.experiment = experiment,
                     .methods = drawn(),
                     .inputs = laws,
                     .n = {recipe.sized<Index>(64, 128, 512)},
                     .d = key_sizes(recipe),
                     .causal = false,
                     .replicates = recipe.sized<Index>(2, 32)};
  const Cells on_laws = recipe.run(request);
  request.inputs.clear();
  for (const RealHead& head : heads)
    for (const Index d : key_sizes_of_heads(recipe)) request.inputs.push_back(with_keys(head, d));
  request.n = {recipe.sized<Index>(64, 128, 512)};
  request.d = {};
  request.causal = {};
  request.replicates = recipe.sized<Index>(2, 24, texts);
  const Cells on_heads = recipe.run(request);

  std::vector<Panel> panels, of_heads;
  for (const auto& law : laws) panels.push_back(panel(law, on_laws.input(law)));
  for (const RealHead& head : heads) {
    Specs inputs;
    for (const Index d : key_sizes_of_heads(recipe)) inputs.push_back(with_keys(head, d));
    of_heads.push_back(panel(head.name(), on_heads.where({{"input", inputs}})));
  }
  recipe.figure(
      "key-size", "Effective support against key size",
      fmt::format("n = {}, bidirectional, entries of Q and K of unit variance at every d; means over 32 inputs "
                  "with 95 % intervals. At 1 every row is the mean of V.",
                  request.n[0]),
      panels);
  recipe.figure(
      "key-size-heads", "Effective support against key size on heads of the byte-level model",
      fmt::format("n = {}, causal; means over {} texts with 95 % intervals. The heads have d = 64; with fewer, "
                  "those dimensions that carry their logits best. Logits are scaled by d^-1/2 of the captured "
                  "head.",
                  request.n[0], request.replicates),
      of_heads);
  judge_laws(recipe, on_laws);
  judge_heads(recipe, on_heads);
}

const bool registered =
    add(RecipeEntry{.text = {.name = "key-size",
                             .summary = "Whether larger keys relieve the density of linear attention",
                             .formula = "Do larger keys relieve the density of linear attention, or do its rows come "
                                        "nearer to average pooling as d grows?",
                             .reference = "Su 2021, kexue.fm/archives/8338"},
                    .write = write});

}  // namespace
}  // namespace attnbench::key_size_recipe
