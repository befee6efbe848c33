#include "harness/cli/pattern_drawing.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "harness/cli/script.hpp"
#include "harness/core/needs.hpp"
#include "harness/core/scaling.hpp"

namespace attnbench {

namespace {

constexpr Index most_tokens = 16384;                    // 2^28 pairs
constexpr Index least_chosen = 64, most_chosen = 1024;  // tokens, unless the user says how many
constexpr Index widest = 96;                            // characters of a line
constexpr Index d = 64;
constexpr std::uint64_t seed = 20240711;

using Keys = std::vector<std::vector<Index>>;

HeadData<double> gaussian_head(Index n, const char* which) {
  const auto entries = [&](const char* what) {
    auto generator = Streams(seed).stream("describe pattern", which, what, n);
    return (edge_scale(d) * standard_normal(generator, n, d)).eval();
  };
  return {entries("Q"), entries("K"), entries("V")};
}

struct Drawn {
  Keys keys;
  bool of_content;  // another head has another pattern
};

std::unique_ptr<Approximation<double>> make(const Params& params, const Shape& shape, const Head<double>& head) {
  try {
    return make_approximation<double>(
        {.shape = shape, .params = params, .streams = Streams(seed), .calibration = &head});
  } catch (const Skip& reason) {  // a run would skip this method, so nothing can be drawn
    throw Misuse(reason.what());
  }
}

Drawn keys_of(const Params& params, Index n, bool causal) {
  const Shape shape{.nq = n, .nk = n, .d = d, .dv = d, .mask = {.causal = causal}, .precision = Precision::f64};
  HeadData<double> head = gaussian_head(n, "head"), other = gaussian_head(n, "other head");
  head.extra = other.extra = drawn_extras(params, shape, seed);
  const Head<double> view = head.view();
  const auto method = make(params, shape, view);
  if (!method->pattern())
    throw Misuse(params.spec() +
                 " has no pattern: it is not a method that leaves keys out; expected a sparse method "
                 "such as local, strided or top-k (attnbench list methods)");
  const auto keys = [&](const HeadData<double>& of) {
    Keys found(static_cast<size_t>(n));
    Context context;
    method->pattern()->keys_of_rows(of.view(), shape.mask, 0, context, found);
    return found;
  };
  Drawn drawn{keys(head), false};
  drawn.of_content = drawn.keys != keys(other);
  return drawn;
}

double pairs_of(const Keys& keys) {
  double pairs = 0;
  for (const auto& row : keys) pairs += static_cast<double>(row.size());
  return pairs;
}

// The pairs of a row and a token that it may see.
double pairs_of_mask(Index n, bool causal) {
  const auto rows = static_cast<double>(n);
  return causal ? rows * (rows + 1) / 2 : rows * rows;
}

// Prints a character for each block of `side` x `side` pairs: '#' if all have weight, '.' if none, '+' if some.
void print_cells(const Keys& keys, Index side) {
  const auto n = static_cast<Index>(keys.size()), cells = (n + side - 1) / side;
  for (Index begin = 0; begin < n; begin += side) {
    std::vector<Index> count(static_cast<size_t>(cells), 0);
    const Index rows = std::min(side, n - begin);
    for (Index i = begin; i < begin + rows; ++i)
      for (const Index j : keys[static_cast<size_t>(i)]) ++count[static_cast<size_t>(j / side)];
    std::string line;
    for (Index c = 0; c < cells; ++c) {
      const Index all = rows * std::min(side, n - c * side), found = count[static_cast<size_t>(c)];
      line += found == 0 ? '.' : found == all ? '#' : '+';
    }
    std::cout << line << "\n";
  }
}

// Writes one line of keys per row, the format that scripts/pattern.py reads.
void draw_image(const Keys& keys, const std::string& title, const std::string& image) {
  std::string name = (std::filesystem::temp_directory_path() / "attnbench-pattern-XXXXXX").string();
  const int file = mkstemp(name.data());
  if (file < 0) throw Misuse("no file can be made in " + std::filesystem::temp_directory_path().string());
  std::ofstream rows(name);
  for (const auto& row : keys) {
    for (const Index j : row) rows << j << ' ';
    rows << '\n';
  }
  rows.close();
  const int code = run_script("pattern.py", {name, image, "--title", title});
  std::filesystem::remove(name);
  if (code != 0) throw Misuse(fmt::format("the image {} was not drawn", image));
}

}  // namespace

void draw_pattern(const Params& params, const PatternDrawing& drawing) {
  Index n = drawing.n.value_or(least_chosen);
  if (n < 1 || n > most_tokens) throw Misuse(fmt::format("describe: -n {} tokens; expected 1 to {}", n, most_tokens));
  if (!drawing.image.empty() && !drawing.image.ends_with(".png") && !drawing.image.ends_with(".svg"))
    throw Misuse("describe: --image " + drawing.image + "; expected a file that ends in .png or .svg");
  Drawn drawn = keys_of(params, n, drawing.causal);
  while (!drawing.n && n < most_chosen && pairs_of(drawn.keys) > pairs_of_mask(n, drawing.causal) / 2) {
    n *= 2;
    drawn = keys_of(params, n, drawing.causal);
  }
  const double pairs = pairs_of(drawn.keys), rows = static_cast<double>(n);
  const std::string facts = fmt::format("{}{}, n = {}: nnz {:.0f}, density {:.4g}", params.spec(),
                                        drawing.causal ? ", causal" : "", n, pairs, pairs / (rows * rows));
  std::cout << facts << "\n";
  if (drawn.of_content) std::cout << "it depends on the tokens: those of a Gaussian head, logits of unit variance\n";
  const Index side = (n + widest - 1) / widest;
  std::cout << (side == 1 ? std::string("row i, key j: # has weight, . has none\n")
                          : fmt::format("a character is {0} x {0} pairs: # all have weight, + some, . none\n", side));
  print_cells(drawn.keys, side);
  if (drawing.image.empty()) return;
  draw_image(drawn.keys, facts, std::filesystem::absolute(drawing.image).string());
  std::cout << "drawn to " << drawing.image << "\n";
}

}  // namespace attnbench
