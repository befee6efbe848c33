#include "experiments/commands/method_page.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "harness/errors/error.hpp"
#include "harness/experiment/experiment.hpp"

namespace attnbench {

namespace {

constexpr Index fewest_tokens = 64, image_tokens = 256, tokens = 512;
const std::string law = "gaussian";

std::string file_name(const std::string& spec) {
  std::string name;
  for (const char c : spec) name += std::isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '-';
  return name;
}

class Page {
 public:
  Page(const std::string& method, const std::string& input)
      : method_(Params("methods", method)), input_(Params("inputs", input).spec()) {
    const Params in("inputs", input);
    const auto& entry = find<InputEntry>(in.name());
    const InputLimits limits = entry.limits(in);
    longest_ = tokens;
    for (const Index limit : {limits.queries, limits.keys})
      if (limit > 0) longest_ = std::min(longest_, limit);
    if (longest_ < fewest_tokens)
      throw Misuse(fmt::format("{} has {} tokens; expected at least {} for a page of a method", input_, longest_,
                               fewest_tokens));
    const bool causal = entry.causal_by_default || limits.causal;
    Shape shape{.nq = longest_,
                .nk = longest_,
                .d = limits.d > 0 ? limits.d : 64,
                .dv = limits.dv > 0 ? limits.dv : 64,
                .mask = {.causal = causal}};
    const auto& claims = find<MethodEntry>(method_.name()).claims;
    causal_ = causal && claims(method_, shape).no_form.empty();
  }

  MethodPage made() {
    RunRequest matrices{
        .experiment = "rank", .methods = compared(), .inputs = {input_, law}, .n = {longest_}, .causal = causal_};
    RunRequest rows = matrices, error = matrices, image = matrices, time = matrices;
    rows.experiment = "sparsity";
    error.experiment = "attention-error:matrix=false";
    error.n = lengths();
    error.replicates = 5;
    image.experiment = "attention-map";
    image.inputs = {input_};
    image.n = {std::min(image_tokens, longest_)};
    time.experiment = "speed:blocks=7,turn=5";
    time.inputs = {law};
    time.n = {256, 512, 1024, 2048};
    time.precision = Precision::f32;

    auto recipe = std::make_unique<Recipe>(RecipeSize::quick);
    const Cells images = recipe->run(image), spectra = recipe->run(matrices), of_rows = recipe->run(rows),
                errors = recipe->run(error), times = recipe->run(time);
    const auto& entry = find<MethodEntry>(method_.name());
    Description section = entry.text;
    section.summary = fmt::format("{}: {}", method_.spec(), entry.text.summary);
    const std::string what = fmt::format(
        "{}, {}, n = {} (images {}), beside softmax and the mean of V (uniform). Second row: the same, with 95 % "
        "intervals over draws. Third row: independent normal tokens, d = 64; times of one head on one thread in float.",
        input_, causal_ ? "causal" : "bidirectional", longest_, std::min(image_tokens, longest_));
    recipe->figure(file_name(method_.spec()), method_.spec(), what,
                   {image_of("exact", images.method("softmax"), "attention"),
                    image_of("this method", images.method(method_.spec()), "attention"),
                    image_of("this method less exact", images.method(method_.spec()), "difference"),
                    spectrum(spectra, input_), entropies(of_rows.input(input_)), error_of(errors, input_),
                    spectrum(spectra, law), error_of(errors, law), seconds(times)});
    Figure figure = recipe->figures(section).at(0);
    return {std::move(recipe), std::move(figure)};
  }

 private:
  // The method, softmax and the null (uniform), once each.
  std::vector<std::string> compared() const {
    std::vector<std::string> all{method_.spec()};
    for (const std::string other : {"softmax", "uniform"})
      if (other != method_.spec()) all.push_back(other);
    return all;
  }

  std::vector<Index> lengths() const {
    std::vector<Index> all;
    for (Index n = fewest_tokens; n <= longest_; n *= 2) all.push_back(n);
    return all;
  }

  static Panel image_of(const std::string& title, const Cells& cells, const std::string& what) {
    Panel panel{.title = title, .kind = "image", .cells = cells, .x_label = "key j", .y = what, .y_label = "query i"};
    panel.value_label = what == "attention" ? "weight" : "difference of weights";
    if (what == "attention") panel.floor = 1e-4;
    return panel;
  }

  static Panel spectrum(const Cells& spectra, const std::string& input) {
    return {.title = "spectrum, " + input,
            .kind = "profile",
            .cells = spectra.input(input),
            .x_label = "index k",
            .y = "singular_values",
            .y_label = "singular value",
            .y_scale = "log10"};
  }

  // The mark at 1 is the mean of V.
  Panel entropies(const Cells& rows) const {
    return {.title = "entropy of rows, " + input_,
            .kind = "histogram",
            .cells = rows.methods({method_.spec(), "softmax"}),
            .x_label = "entropy of a row / log of the keys that it sees",
            .y = "relative_entropy_rows",
            .y_label = "share of rows",
            .range = {0, 1},
            .mark = 1,
            .mark_label = "the mean of V"};
  }

  // Softmax has no error.
  Panel error_of(const Cells& errors, const std::string& input) const {
    return {.title = "error, " + input,
            .cells = errors.input(input).methods({method_.spec(), "uniform"}),
            .x = {"n"},
            .x_label = "sequence length n",
            .x_scale = "log2",
            .y = "relative_output_error",
            .y_label = "|A'V - AV| / |AV|  (Frobenius)",
            .y_scale = "log10"};
  }

  static Panel seconds(const Cells& times) {
    return {.title = "time",
            .cells = times,
            .x = {"n"},
            .x_label = "sequence length n",
            .x_scale = "log2",
            .y = "seconds",
            .y_label = "seconds per call",
            .y_scale = "log10",
            .interval = "median",
            .slope = true};
  }

  Params method_;
  std::string input_;
  Index longest_ = 0;
  bool causal_ = false;
};

}  // namespace

MethodPage method_page(const std::string& method, const std::string& input) { return Page(method, input).made(); }

}  // namespace attnbench
