// Heads of models that people use, captured by scripts/capture_pretrained.py. A model is two files of pretrained/:
//   NAME.safetensors  q, k, v of shape [texts, heads, n, d] in float16, q and k unscaled; the texts that fitted methods
//                     may learn from come last
//   NAME.json         the layer and head of each of these heads, whether they are causal, the base of rotary positions
//                     where there are any, and where everything is from
// Replicate r reads text r. A smaller n takes the first tokens. With repeat=true, replicates beyond the last text begin
// again with the first. Their median is that of draws of the method on these texts, and the interval of a median holds
// for it, because draws that are spread evenly over the texts scatter less than draws on texts drawn at random.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/core/installed.hpp"
#include "harness/errors/error.hpp"
#include "harness/inputs/captured_heads.hpp"
#include "harness/inputs/last_read.hpp"
#include "harness/inputs/transformer.hpp"

namespace attnbench::pretrained {
namespace {

struct Model {
  std::string title;
  std::vector<std::pair<Index, Index>> heads;  // layer and head of each head of the file
  Index texts = 0;                             // that are measured
  Index calibration = 0;                       // that come after them
  bool causal = false;
  std::optional<double> rotary_base;  // q and k are after these positions
};

std::filesystem::path folder() { return source_tree() / "harness/inputs/pretrained"; }

std::vector<std::string> names() {
  std::vector<std::string> all;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(folder(), error))
    if (file.path().extension() == ".json") all.push_back(file.path().stem().string());
  std::sort(all.begin(), all.end());
  return all;
}

std::filesystem::path path_of(const Params& params, const char* extension) {
  const std::string& name = params.text("model");
  const auto known = names();
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw Misuse(fmt::format("pretrained: there is no model '{}'; expected one of {}", name, fmt::join(known, ", ")));
  return folder() / (name + extension);
}

Model read_model(const std::filesystem::path& path) {
  try {
    std::ifstream stream(path);
    const auto json = nlohmann::json::parse(stream);
    Model model{.title = json.at("title"), .causal = json.at("causal")};
    for (const auto& head : json.at("heads")) model.heads.emplace_back(head.at("layer"), head.at("head"));
    for (const auto& text : json.at("texts")) text.at("purpose") == "measured" ? ++model.texts : ++model.calibration;
    if (json.contains("rotary_base")) model.rotary_base = json.at("rotary_base");
    return model;
  } catch (const nlohmann::json::exception& error) {
    throw Misuse(fmt::format("{}: {}; make it again with scripts/capture_pretrained.py", path.string(), error.what()));
  }
}

std::shared_ptr<const Model> model_of(const Params& params) {
  static LastRead<std::shared_ptr<const Model>, 8> read;
  const auto path = path_of(params, ".json");
  return read.get(version_of(path), [&] { return std::make_shared<const Model>(read_model(path)); });
}

std::string names_of(const std::vector<std::pair<Index, Index>>& heads) {
  std::string all;
  for (const auto& [layer, head] : heads)
    all += fmt::format("{}layer={},head={}", all.empty() ? "" : "; ", layer, head);
  return all;
}

// The place of a head in the file. Without a layer or a head in the spec it is the first one that fits.
Index place_of(const Params& params, const Model& model, Index further) {
  const auto fits = [&](const char* name, Index value) {
    return params.text(name) == "any" || params.integer(name) == value;
  };
  const auto found = std::find_if(model.heads.begin(), model.heads.end(), [&](const auto& one) {
    return fits("layer", one.first) && fits("head", one.second);
  });
  const Index place = static_cast<Index>(found - model.heads.begin()) + further;
  if (place >= std::ssize(model.heads))
    throw Misuse(fmt::format("pretrained: {}{} was asked for; {} has {}", params.spec(),
                             further > 0 ? fmt::format(" with {} further heads", further) : "", params.text("model"),
                             names_of(model.heads)));
  return place;
}

bool reads_each_once(const Params& params) { return params.text("text") == "each" && !params.flag("repeat"); }

// The measured text of a replicate.
Index measured_text(const Params& params, const Model& model, Index replicate) {
  const bool each = params.text("text") == "each";
  if (params.flag("repeat") && !each)
    throw Misuse("pretrained: repeat=true reads all texts in turn, and text= names one; leave one of them out");
  const Index in_turn = params.flag("repeat") ? replicate % model.texts : replicate;
  const Index wanted = each ? in_turn : params.integer("text");
  if (wanted >= model.texts)
    throw Misuse(
        fmt::format("pretrained: text {} of {} was asked for; expected one from 0 to {}, of which replicate r "
                    "reads text r unless text= names one for all",
                    wanted, params.text("model"), model.texts - 1));
  return wanted;
}

bool before_positions(const Params& params, const Model& model) {
  if (params.text("rope") == "after") return false;
  if (!model.rotary_base)
    throw Misuse(fmt::format("pretrained: rope=before was asked for, and {} has no rotary positions; leave it out",
                             params.text("model")));
  return true;
}

HeadData<double> draw(const Params& params, const InputRequest& request) {
  const auto model = model_of(params);
  const Index text = request.purpose == Purpose::calibration ? model->texts + request.replicate % model->calibration
                                                             : measured_text(params, *model, request.replicate);
  HeadData<double> head = first_tokens(*captured_heads(path_of(params, ".safetensors")), text,
                                       place_of(params, *model, request.head), request);
  if (before_positions(params, *model)) {
    std::vector<double> backwards = rotary_frequencies(head.Q.cols(), *model->rotary_base);
    for (double& frequency : backwards) frequency = -frequency;
    for (Matrix<double>* X : {&head.Q, &head.K}) turn_by_position(*X, backwards);
  }
  return head;
}

InputLimits limits(const Params& params) {
  const auto model = model_of(params);
  place_of(params, *model, 0);
  measured_text(params, *model, 0);
  before_positions(params, *model);
  InputLimits limits = captured_sizes(path_of(params, ".safetensors")).limits;
  limits.heads = 0;  // they are some of many, so that head=all would not name them
  limits.causal = model->causal;
  if (reads_each_once(params)) limits.replicates = model->texts;
  return limits;
}

InputPlace place(const Params& params) {
  const auto model = model_of(params);
  const auto& [layer, head] = model->heads[static_cast<size_t>(place_of(params, *model, 0))];
  return {fmt::format("{}, layer {}, head {}", model->title, layer, head), "heads of " + model->title,
          reads_each_once(params) ? "text" : "draw", params.flag("repeat") ? model->texts : 1};
}

const bool registered = add(InputEntry{
    .text = {.name = "pretrained",
             .summary = "a head of a model that people use, on texts or speech: minilm, smollm2, ...",
             .formula = "q, k, v of one layer and head, one text a replicate; causal where the model is",
             .reference = "scripts/capture_pretrained.py, harness/inputs/pretrained/README.md",
             .cost = "the file is read once and kept",
             .family = "file"},
    .parameters = {Parameter::text("model", "minilm", "the model: a NAME.json of harness/inputs/pretrained"),
                   Parameter::integer_or("layer", "any", "the layer, from 0; any: that of the first captured head", 0),
                   Parameter::integer_or("head", "any", "the head, from 0; any: the first captured one of the layer",
                                         0),
                   Parameter::choice("rope", "after", "queries and keys after or before rotary positions",
                                     {"after", "before"}),
                   Parameter::integer_or("text", "each",
                                         "the text that all replicates read, from 0; each: replicate r reads text r, "
                                         "and there are as many replicates as texts",
                                         0),
                   Parameter::flag("repeat", false, "replicates beyond the last text begin again with the first")},
    .draw = draw,
    .limits = limits,
    .content =
        [](const Params& params) {
          return content_hash(path_of(params, ".safetensors")) + content_hash(path_of(params, ".json"));
        },
    .place = place,
});

}  // namespace
}  // namespace attnbench::pretrained
