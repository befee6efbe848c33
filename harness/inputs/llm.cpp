// Heads of a causal language model on texts: SmolLM2 (attnbench fetch smollm2), a GGUF file, or a folder in Hugging
// Face's form. Replicate r reads text r, as many tokens as the problem has keys, with no token in front; with facts=F
// it is a prompt that states F facts in that text and asks for one of them (recall_prompts.hpp). Experiments on
// single heads get q, k and v of one layer and head of the model with exact attention, after rotary positions or before
// them; query heads that share a key head get the same keys and values. `model-loss` and `depth` get the whole model.
#include <fmt/format.h>

#include <fstream>
#include <numeric>

#include "harness/core/approximation.hpp"
#include "harness/core/scaling.hpp"
#include "harness/errors/error.hpp"
#include "harness/inputs/captured_heads.hpp"
#include "harness/inputs/checkpoint/cached_weights.hpp"
#include "harness/inputs/checkpoint/language_model.hpp"
#include "harness/inputs/input.hpp"
#include "harness/inputs/language_texts.hpp"
#include "harness/inputs/last_read.hpp"
#include "harness/inputs/recall_prompts.hpp"

namespace attnbench::llm {

namespace {

// The file that `attnbench fetch` puts into the cache folder, and its name in print: its own is that of a training run.
constexpr const char *fetched = "smollm2", *name_of_fetched = "SmolLM2";

std::filesystem::path path_of(const Params& params) {
  const std::string name = params.text("path");
  if (name.empty())
    throw Misuse(
        fmt::format("llm: no model was given; expected llm:{} (after attnbench fetch {}), llm:FILE.gguf or "
                    "llm:FOLDER",
                    fetched, fetched));
  std::error_code error;
  const auto cached = cache_folder() / (name + ".gguf");
  if (name.find('/') == std::string::npos && std::filesystem::exists(cached, error)) return cached;
  if (std::filesystem::exists(name, error)) return name;
  if (name == fetched)
    throw NotFetched(fmt::format("llm: there is no {}; get it with attnbench fetch {}", cached.string(), fetched));
  throw Misuse(
      fmt::format("llm: there is no '{}'; expected llm:{} (after attnbench fetch {}), a .gguf file, or a folder "
                  "with config.json, model.safetensors and tokenizer.json",
                  name, fetched, fetched));
}

// The path and the versions of the files behind it: of a folder, of all that are in it.
std::string version_of_model(const std::filesystem::path& path) {
  std::string versions = version_of(path);
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    for (const auto& file : std::filesystem::directory_iterator(path, error)) versions += version_of(file.path());
  return versions;
}

std::shared_ptr<const LanguageModel> model_of(const Params& params) {
  static LastRead<std::shared_ptr<const LanguageModel>, 2> models;
  const auto path = path_of(params);
  return models.get(version_of_model(path), [&] { return read_language_model(path); });
}

// The numbers of the texts that the input reads.
std::vector<Index> chosen_texts(const Params& params) {
  const auto texts = language_texts();
  const std::string kind = params.text("kind");
  std::vector<Index> chosen;
  std::string kinds;
  for (Index i = 0; i < std::ssize(*texts); ++i) {
    const std::string& found = (*texts)[static_cast<size_t>(i)].kind;
    if (kind == "all" || kind == found) chosen.push_back(i);
    if (kinds.find(found) == std::string::npos) kinds += ", " + found;
  }
  if (chosen.empty()) throw Misuse(fmt::format("llm: kind={} was asked for; expected all{}", kind, kinds));
  return chosen;
}

bool own_text(const Params& params) { return !params.text("file").empty(); }

std::string read_text(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream || text.empty())
    throw Misuse(fmt::format("llm: file={}: cannot be read, or is empty; expected a file of text", path.string()));
  return text;
}

// The text of a replicate. Fitted methods learn from the next text of the same kind.
std::string text_of(const Params& params, Index replicate, Purpose purpose) {
  const bool calibration = purpose == Purpose::calibration;
  if (own_text(params) && !calibration) return read_text(params.text("file"));
  const auto texts = chosen_texts(params);
  const Index number = std::ssize(texts);
  Index wanted = params.text("text") == "each" ? replicate : params.integer("text");
  if (wanted >= number && !own_text(params))
    throw Misuse(
        fmt::format("llm: text {} was asked for; expected one from 0 to {}; replicate r reads text r, and text= names "
                    "one that all read",
                    wanted, number - 1));
  const Index kinds = params.text("kind") == "all" ? 4 : 1;
  if (calibration) wanted = (wanted + kinds) % number;
  return (*language_texts())[static_cast<size_t>(texts[static_cast<size_t>(wanted)])].text;
}

using Tokens = std::vector<Index>;

// The tokens of the text of a replicate.
std::shared_ptr<const Tokens> text_tokens(const Params& params, Index replicate, Purpose purpose) {
  static LastRead<std::shared_ptr<const Tokens>, 64> kept;
  const auto model = model_of(params);
  const std::string text = text_of(params, replicate, purpose);
  return kept.get(version_of_model(path_of(params)) + text,
                  [&] { return std::make_shared<const Tokens>(model->tokeniser->encode(text)); });
}

// The first n tokens of the text of a replicate, or its prompt of n tokens that asks for a fact.
RecallPrompt tokens_of(const Params& params, const InputRequest& request, Index n) {
  const Index facts = params.integer("facts"), texts = std::ssize(chosen_texts(params));
  const bool each = params.text("text") == "each";
  const Index read = facts > 0 && each ? request.replicate % texts : request.replicate;
  const auto all = text_tokens(params, read, request.purpose);
  if (facts > 0) {
    RecallTask task{.facts = facts, .depth = {}};
    if (params.text("depth") != "even") task.depth = params.real("depth");
    auto generator = request.streams.stream("llm", "facts", request.replicate,
                                            request.purpose == Purpose::calibration ? "calibration" : "measured");
    return recall_prompt(*model_of(params)->tokeniser, *all, task, n, generator);
  }
  if (n > std::ssize(*all))
    throw Misuse(
        fmt::format("llm: n={} was asked for and {} has {} tokens; give a smaller n, or a longer text", n,
                    own_text(params) ? params.text("file") : fmt::format("the text of replicate {}", request.replicate),
                    all->size()));
  return {.tokens = {all->begin(), all->begin() + n}};
}

EmbeddedTokens embedded(const LanguageModel& model, const Tokens& tokens) {
  return {model.transformer, model.embedded(tokens)};
}

EmbeddedTokens transformer(const Params& params, const InputRequest& request) {
  return embedded(*model_of(params), tokens_of(params, request, request.nk).tokens);
}

PredictionTask prediction(const Params& params, const InputRequest& request) {
  const auto model = model_of(params);
  const auto [tokens, answer] = tokens_of(params, request, request.nk);
  PredictionTask task{
      .read = embedded(*model, tokens), .predicted = {tokens.begin() + 1, tokens.end()}, .answer = answer > 0};
  if (task.answer) std::fill(task.predicted.begin(), task.predicted.end() - answer, std::nullopt);
  for (const Index token : std::span(tokens).subspan(1)) task.bytes.push_back(model->tokeniser->bytes_of(token));
  task.predicted.emplace_back();
  task.bytes.push_back(0);
  return task;
}

// The inputs of all layers, with exact attention. A worker measures the cells of one text before those of the next.
std::shared_ptr<const std::vector<Matrix<float>>> layer_inputs(const Params& params, const InputRequest& request) {
  static LastRead<std::shared_ptr<const std::vector<Matrix<float>>>, 2> kept;
  const auto model = model_of(params);
  const Index n = std::max(request.nq, request.nk);
  const Tokens tokens = tokens_of(params, request, n).tokens;
  std::string key = version_of_model(path_of(params));
  for (const Index token : tokens) key += fmt::format(" {}", token);
  return kept.get(key, [&] {
    const Transformer<float>& all = *model->transformer;
    const Shape shape{.nq = n, .nk = n, .d = all.d, .dv = all.dv, .mask = {.causal = true}};
    const Params softmax("methods", "softmax");
    const auto exact = make_approximation<float>({.shape = shape, .params = softmax, .streams = Streams(0)});
    Context context;
    return std::make_shared<const std::vector<Matrix<float>>>(hidden_states<float>(
        context, all, model->embedded(tokens).cast<float>(), {.last_feed_forward = false},
        [&](Index, Index h, std::span<const HeadData<float>> heads, const Out<float>& out) {
          const HeadData<float> head =
              scaled_head<float>(heads[static_cast<size_t>(h)].view(), static_cast<float>(edge_scale(all.d)));
          exact->attend(head.view(), shape.mask, context, out);
        }));
  });
}

void require_head(const Params& params, const Transformer<float>& model, Index head) {
  const Index layers = std::ssize(model.layers);
  if (params.integer("layer") >= layers || head >= model.heads)
    throw Misuse(
        fmt::format("llm: layer={}, head={} was asked for; expected a layer from 0 to {} and a head from 0 to "
                    "{}, further heads included",
                    params.integer("layer"), head, layers - 1, model.heads - 1));
}

HeadData<double> draw(const Params& params, const InputRequest& request) {
  const auto model = model_of(params);
  const Index layer = params.integer("layer"), head = params.integer("head") + request.head;
  require_head(params, *model->transformer, head);
  const auto inputs = layer_inputs(params, request);
  Context context;
  const auto heads = layer_heads<float>(context, *model->transformer, layer, (*inputs)[static_cast<size_t>(layer)],
                                        params.text("rope") == "after");
  const HeadData<float>& drawn = heads[static_cast<size_t>(head)];
  return {drawn.Q.topRows(request.nq).cast<double>(), drawn.K.topRows(request.nk).cast<double>(),
          drawn.V.topRows(request.nk).cast<double>()};
}

InputLimits limits(const Params& params) {
  const auto model = model_of(params);
  const Transformer<float>& transformer = *model->transformer;
  require_head(params, transformer, params.integer("head"));
  InputLimits limits{.queries = model->context,
                     .keys = model->context,
                     .d = transformer.d,
                     .dv = transformer.dv,
                     .heads = transformer.heads};
  text_of(params, 0, Purpose::measured);  // throws if there is no such text
  if (own_text(params)) {
    limits.replicates = 1;
  } else if (params.text("text") == "each" && params.integer("facts") == 0) {
    limits.replicates = std::ssize(chosen_texts(params));
  }
  return limits;
}

std::string content(const Params& params) {
  return content_of_language_model(path_of(params)) + content_of_language_texts() +
         (own_text(params) ? content_hash(params.text("file")) : "");
}

std::string title(const Params& params) {
  return params.text("path") == fetched ? name_of_fetched : model_of(params)->title;
}

const bool registered = add(InputEntry{
    .text = {.name = "llm",
             .summary = "a head of a real language model, SmolLM2 or your own: llm:smollm2, llm:FILE.gguf, llm:FOLDER",
             .formula = "q, k, v of one layer and head with exact attention before it, one text per replicate; causal",
             .reference = "Allal et al. 2025, arXiv:2502.02737 (SmolLM2); docs/llm.md",
             .cost = "each worker runs the whole model once per text; weights are mapped from the cache folder",
             .family = "file"},
    .parameters =
        {Parameter::text("path", "",
                         "the model: smollm2 after `attnbench fetch smollm2`, a .gguf file, or a folder with "
                         "config.json, model.safetensors and tokenizer.json"),
         Parameter::integer("layer", 0, "the layer, from 0", 0),
         Parameter::integer(
             "head", 0,
             "the query head to measure, from 0; a call of several (speed --heads 2) takes the next ones too", 0),
         Parameter::choice("rope", "after", "queries and keys after or before rotary positions", {"after", "before"}),
         Parameter::integer_or("text", "each",
                               "the text that all replicates read, from 0; each: replicate r reads text r, and "
                               "there are as many replicates as texts",
                               0),
         Parameter::integer("facts", 0,
                            "facts that a prompt states within the text, before it asks for one of them; 0: the text "
                            "as it is",
                            0, most_facts),
         Parameter::real_or("depth", "even",
                            "where the fact is that the prompt asks for, as a share of the text; even: all facts at "
                            "even distances",
                            0, 1),
         Parameter::text("kind", "all", "texts of one kind: prose, documentation, code or french; or all"),
         Parameter::text("file", "", "a text of your own in place of these: one replicate")},
    .draw = draw,
    .limits = limits,
    .content = content,
    .transformer = transformer,
    .prediction = prediction,
    .place =
        [](const Params& params) {
          return InputPlace{fmt::format("layer {}, head {}", params.integer("layer"), params.integer("head")),
                            "heads of " + title(params), params.text("text") == "each" ? "text" : "draw"};
        },
    .causal_by_default = true,
    .usual_replicates = 4,  // one text of each kind
});

}  // namespace

}  // namespace attnbench::llm
