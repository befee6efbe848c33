#include "harness/runner/method_page.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "harness/core/error.hpp"
#include "harness/runner/experiment.hpp"

namespace attnbench {

namespace {

constexpr Index fewest_tokens = 64, image_tokens = 256, tokens = 512;
const std::string law = "gaussian", timing = "speed:blocks=7,turn=5", map = "attention-map";

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
    Shape shape{.nq = longest_,
                .nk = longest_,
                .d = limits.d > 0 ? limits.d : 64,
                .dv = limits.dv > 0 ? limits.dv : 64,
                .mask = {.causal = entry.causal_by_default}};
    const auto& claims = find<MethodEntry>(method_.name()).claims;
    causal_ = entry.causal_by_default && claims(method_, shape).no_form.empty();
  }

  std::vector<RunRequest> runs() const {
    RunRequest matrices{
        .experiment = "rank", .methods = compared(), .inputs = {input_, law}, .n = {longest_}, .causal = causal_};
    RunRequest rows = matrices, error = matrices, image = matrices, time = matrices;
    rows.experiment = "sparsity";
    error.experiment = "attention-error:matrix=false";
    error.n = lengths();
    error.replicates = 5;
    image.experiment = map;
    image.inputs = {input_};
    image.n = {std::min(image_tokens, longest_)};
    time.experiment = timing;
    time.inputs = {law};
    time.n = {256, 512, 1024, 2048};
    time.precision = Precision::f32;
    return {image, matrices, rows, error, time};
  }

  Figure figure() const {
    const auto& entry = find<MethodEntry>(method_.name());
    Description section = entry.text;
    section.summary = fmt::format("{}: {}", method_.spec(), entry.text.summary);
    const std::string what = fmt::format(
        "{}, {}, n = {} (images {}), beside softmax and the mean of V (uniform). Second row: the same, with 95 % "
        "intervals over draws. Third row: independent normal tokens, d = 64; times of one head on one thread in float.",
        input_, causal_ ? "causal" : "bidirectional", longest_, std::min(image_tokens, longest_));
    return attnbench::figure(file_name(method_.spec()), section, method_.spec(), what,
                             {image("exact", "softmax", "attention"), image("this method", method_.spec(), "attention"),
                              image("this method less exact", method_.spec(), "difference"), spectrum(input_),
                              entropies(), error(input_), spectrum(law), error(law), seconds()});
  }

 private:
  // Softmax and the null beside it, once each.
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

  nlohmann::json where(const std::string& experiment, const std::string& input) const {
    return {{"experiment", experiment},
            {"input", input},
            {"causal", causal_ ? 1 : 0},
            {"logit_scale", 1},
            {"method", compared()}};
  }

  Panel image(const std::string& title, const std::string& method, const std::string& what) const {
    Panel panel{.title = title,
                .kind = "image",
                .where = where(map, input_),
                .x_label = "key j",
                .y = what,
                .y_label = "query i"};
    panel.where["method"] = method;
    panel.where["n"] = std::min(image_tokens, longest_);
    panel.value_label = what == "attention" ? "weight" : "difference of weights";
    if (what == "attention") panel.floor = 1e-4;
    return panel;
  }

  Panel spectrum(const std::string& input) const {
    Panel panel{.title = "spectrum, " + input,
                .kind = "profile",
                .where = where("rank", input),
                .x_label = "index k",
                .y = "singular_values",
                .y_label = "singular value",
                .y_scale = "log10"};

    panel.where["n"] = longest_;
    panel.where["of"] = "attention";
    return panel;
  }

  Panel entropies() const {
    Panel panel{.title = "entropy of rows, " + input_,
                .kind = "histogram",
                .where = where("sparsity", input_),
                .x_label = "entropy of a row / log of the keys that it sees",
                .y = "relative_entropy_rows",
                .y_label = "share of rows",
                .range = {0, 1},
                .mark = 1,
                .mark_label = "the mean of V"};
    panel.where["method"] = {method_.spec(), "softmax"};  // the mean of V is the mark
    panel.where["n"] = longest_;
    return panel;
  }

  Panel error(const std::string& input) const {
    Panel panel{.title = "error, " + input,
                .where = where("attention-error:matrix=false", input),
                .x = {"n"},
                .x_label = "sequence length n",
                .x_scale = "log2",
                .y = "relative_output_error",
                .y_label = "|A'V - AV| / |AV|  (Frobenius)",
                .y_scale = "log10"};
    panel.where["method"] = {method_.spec(), "uniform"};  // softmax errs by nothing
    return panel;
  }

  Panel seconds() const {
    return {.title = "time",
            .where = where(timing, law),
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

MethodPage method_page(const std::string& method, const std::string& input) {
  const Page page(method, input);
  return {page.runs(), page.figure()};
}

}  // namespace attnbench
