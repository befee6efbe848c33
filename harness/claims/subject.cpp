#include "harness/claims/subject.hpp"

#include <algorithm>
#include <set>

#include "harness/core/feature_map.hpp"
#include "harness/core/methods_inside.hpp"
#include "harness/core/torch_place.hpp"

namespace attnbench {

namespace {

// Whether all these files lie in approximations/ of the tree that this file was compiled in.
bool is_built_in(const std::vector<std::string>& files) {
  constexpr std::string_view here = __FILE__, place = "harness/claims/subject.cpp";
  const std::string approximations = std::string(here.substr(0, here.size() - place.size())) + "approximations/";
  return std::all_of(files.begin(), files.end(), [&](const auto& file) { return file.starts_with(approximations); });
}

bool is_interpreted(const std::vector<std::string>& files) {
  return std::any_of(files.begin(), files.end(), [](const std::string& file) { return file.ends_with(".py"); });
}

// Whether the author of this method, or of one inside it, gave none: the costs of a wrapper rest on those of its base.
bool assumed(const Params& method, bool MethodEntry::*none) {
  const auto inside = methods_inside(method);
  return find<MethodEntry>(method.name()).*none ||
         std::any_of(inside.begin(), inside.end(), [&](const Params& one) { return assumed(one, none); });
}

// The transcription, of the draw that f64 makes.
Transcription of_f64(const Transcription& given) {
  if (!given) return given;
  return [given](const Draw& draw, const Approximation<double>& drawn, const Head<double>& head, Mask mask) {
    const Params params = in_precision_of_cell(draw.params);
    return given(draw.with(params), drawn, head, mask);
  };
}

}  // namespace

Subject subject_of(const Params& params) {
  const auto& entry = find<MethodEntry>(params.name());
  entry.check(params);
  Subject subject{.params = params,
                  .claims = entry.claims,
                  .theory = entry.theory,
                  .fitted = entry.fitted(params),
                  .f32 = make_approximation<float>,
                  .f64 =
                      [](const Draw& draw) {
                        const Params params = in_precision_of_cell(draw.params);
                        return make_approximation<double>(draw.with(params));
                      },
                  .memory = entry.memory,
                  .cost = entry.cost,
                  .least_flops = entry.least_flops,
                  .decoder_bytes = entry.decoder_bytes,
                  .memory_assumed = assumed(params, &MethodEntry::memory_assumed),
                  .cost_assumed = assumed(params, &MethodEntry::cost_assumed),
                  .asks_for_seed = assumed(params, &MethodEntry::asks_for_seed),
                  .transcription = of_f64(entry.transcription),
                  .golden = entry.golden,
                  .built_in = is_built_in(params.source_files()),
                  .interpreted = is_interpreted(params.source_files())};
  const auto& declared = params.declared();
  if (std::any_of(declared.begin(), declared.end(), [](const Parameter& p) { return p.catalogue == "projections"; }))
    subject.law = [](const Params& at, Index d) { return find<ProjectionEntry>(at.text("projection")).law(at, d); };
  return subject;
}

std::vector<Subject> all_subjects() {
  std::vector<Params> chosen;
  for (const auto& name : catalogue("methods").names()) chosen.emplace_back("methods", name);
  for (const auto& name : catalogue("features").names()) {
    const Params params("methods", "performer:features=" + name);
    chosen.push_back(params.has("projection") ? params.with("projection", "iid") : params);
  }
  for (const auto& name : catalogue("deterministic-features").names())
    chosen.emplace_back("methods", "linear:features=" + name);
  for (const auto& name : catalogue("projections").names())
    for (const char* features : {"positive", "trig"})
      chosen.push_back(Params("methods", std::string("performer:features=") + features).with("projection", name));
  std::vector<Subject> subjects;
  std::set<std::string> seen;
  for (const Params& params : chosen)
    if (seen.insert(params.spec()).second) subjects.push_back(subject_of(params));
  return subjects;
}

}  // namespace attnbench
