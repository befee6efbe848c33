// Language models read from GGUF files and from folders: the same numbers from both, the cache of converted weights,
// the input `llm`, and every refusal with its reason. language_transformer_test.cpp tests the layers themselves.
#include "harness/inputs/checkpoint/language_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <set>

#include "harness/core/approximation.hpp"
#include "harness/core/scaling.hpp"
#include "harness/inputs/checkpoint/cached_weights.hpp"
#include "harness/inputs/input.hpp"
#include "harness/inputs/language_texts.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/measured.hpp"
#include "tests/folder.hpp"
#include "tests/inputs/language_model_cache.hpp"
#include "tests/misuse.hpp"

namespace attnbench::language_model_test {

namespace {

using Cache = LanguageModelCache;

const std::string sentence = "the other theme";

Matrix<float> logits_of(const Transformer<float>& all, const Matrix<float>& X) {
  const Shape shape{.nq = X.rows(), .nk = X.rows(), .d = all.d, .dv = all.dv, .mask = {.causal = true}};
  const Params params("methods", "softmax");
  const auto softmax = make_approximation<float>({.shape = shape, .params = params, .streams = Streams(0)});
  Context context;
  return token_logits<float>(
      context, all,
      last_hidden_state<float>(
          context, all, X, {}, [&](Index, Index head, std::span<const HeadData<float>> heads, const Out<float>& out) {
            const auto scaled =
                scaled_head<float>(heads[static_cast<size_t>(head)].view(), static_cast<float>(edge_scale(all.d)));
            softmax->attend(scaled.view(), shape.mask, context, out);
          }));
}

Matrix<float> logits_of(const LanguageModel& model, const std::vector<Index>& tokens) {
  return logits_of(*model.transformer, model.embedded(tokens).cast<float>());
}

Matrix<float> logits_of(const std::string& path) {
  const auto model = read_language_model(path);
  return logits_of(*model, model->tokeniser->encode(sentence));
}

std::string refusal(const std::string& path) {
  return misuse_of([&] { read_language_model(path); });
}

HeadData<double> head_of(const std::string& spec, Index n, Index replicate = 0) {
  const Params params("inputs", spec);
  const auto limits = find<InputEntry>("llm").limits(params);
  return find<InputEntry>("llm").draw(
      params, {.nq = n, .nk = n, .d = limits.d, .dv = limits.dv, .streams = Streams(1), .replicate = replicate});
}

}  // namespace

TEST_CASE("a GGUF file and a folder with the same numbers are the same model, in one file or in parts", "[unit]") {
  const Cache cache;
  for (const std::string architecture : {"llama", "qwen3"}) {
    for (const bool tied : {true, false}) {
      const TinyLanguageModel tiny{.architecture = architecture, .tied = tied};
      const Matrix<float> of_file = logits_of(cache.gguf(tiny)), of_folder = logits_of(cache.folder(tiny)),
                          of_parts = logits_of(cache.folder(tiny, 3, "parts"));
      REQUIRE(of_file.rows() == 9);  // the, space, o, the, r, space, the, m, e
      REQUIRE(of_file.cols() == TinyLanguageModel::vocabulary);
      CHECK((of_file == of_folder && of_file == of_parts));
      CHECK((of_file.rowwise() - of_file.row(0)).cwiseAbs().maxCoeff() > 0.1F);
    }
  }
}

TEST_CASE("facts of a language model: title, context, tokens", "[unit]") {
  const Cache cache;
  const auto of_file = read_language_model(cache.gguf({})), of_folder = read_language_model(cache.folder({}));
  CHECK((of_file->title == "Tiny" && of_folder->title == "tiny"));
  CHECK((of_file->context == 32 && of_folder->context == 32));
  CHECK(of_file->tokeniser->encode("the th") == std::vector<Index>{257, ' ', 256});
  CHECK(of_folder->tokeniser->encode("the th") == of_file->tokeniser->encode("the th"));
  CHECK(read_language_model(cache.folder({.architecture = "mistral", .config = {{"sliding_window", 8}}}))->context ==
        8);
  CHECK(read_language_model(cache.folder({.config = {{"sliding_window", 8}}}))->context == 32);
}

TEST_CASE("rotary frequencies are scaled as the files say", "[unit]") {
  const Cache cache;
  const auto frequencies = [&](const nlohmann::json& config) {
    return read_language_model(cache.folder({.config = config}))->transformer->rotary_frequencies;
  };
  const double second = std::pow(1000, -0.5);  // of the two pairs of channels
  CHECK(frequencies({})[0] == 1);
  CHECK(frequencies({})[1] == Approx(second).epsilon(1e-14));
  CHECK(frequencies({{"rope_scaling", {{"rope_type", "linear"}, {"factor", 4}}}})[1] ==
        Approx(second / 4).epsilon(1e-14));
  CHECK(frequencies({{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 100}}}})[1] ==
        Approx(0.1).epsilon(1e-14));
  // Within 100 tokens the pairs turn 15.9 and 0.503 times: the first is above 4 and stays, the second lies a third of
  // the way from 0.25 to 1.
  const auto stretched = frequencies({{"rope_scaling",
                                       {{"rope_type", "llama3"},
                                        {"factor", 8},
                                        {"low_freq_factor", 0.25},
                                        {"high_freq_factor", 1},
                                        {"original_max_position_embeddings", 100}}}});
  const double kept = (100 * second / (2 * 3.141592653589793) - 0.25) / 0.75;
  CHECK(stretched[0] == 1);
  CHECK(stretched[1] == Approx(second * (kept + (1 - kept) / 8)).epsilon(1e-12));
  CHECK(contains(misuse_of([&] {
                   frequencies({{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4}}}});
                 }),
                 "scaled by 'yarn'; attnbench knows default, linear and llama3"));
  CHECK(contains(misuse_of([&] { frequencies({{"partial_rotary_factor", 0.5}}); }), "attnbench turns all"));
}

TEST_CASE("weights are converted once per content, and nothing else is left in the cache", "[unit]") {
  const Cache cache;
  const std::string path = cache.gguf({});
  const Matrix<float> first = logits_of(path);
  CHECK(cache.converted() == 1);
  CHECK(logits_of(path) == first);
  CHECK(cache.converted() == 1);
  std::filesystem::copy(path, cache / "other name.gguf");
  CHECK(logits_of(cache / "other name.gguf") == first);
  CHECK(cache.converted() == 1);
  logits_of(cache.gguf({.architecture = "qwen3"}, "other.gguf"));
  CHECK(cache.converted() == 2);
  // A converted file of another size, such as of a full disk, is written again.
  for (const auto& file : std::filesystem::directory_iterator(cache / "cache/weights"))
    std::filesystem::resize_file(file.path(), 100);
  CHECK(logits_of(path) == first);
}

TEST_CASE("a cache that cannot be written is refused, and a file named as the cache", "[unit]") {
  const Cache cache;
  const std::string path = cache.gguf({});
  write_bytes(cache / "cache", "a file");
  CHECK(contains(refusal(path), "set ATTNBENCH_CACHE to another folder"));
}

TEST_CASE("what a checkpoint lacks, and what attnbench would not compute, is refused by name", "[unit]") {
  const Cache cache;
  const auto of_folder = [&](const TinyLanguageModel& tiny) { return refusal(cache.folder(tiny)); };
  CHECK(contains(of_folder({.left_out = "model.layers.1.mlp.up_proj.weight"}), "no weight 'up' of layer 1"));
  CHECK(contains(of_folder({.left_out = "lm_head.weight", .tied = false}),
                 "tie_word_embeddings of config.json is not true"));
  CHECK(contains(of_folder({.more = {{"model.layers.0.mlp.router.weight", {{2, 8}, std::vector<double>(16)}}}}),
                 "no use for the tensor 'model.layers.0.mlp.router.weight'"));
  CHECK(contains(of_folder({.config = {{"model_type", "gpt2"}}}), "the model_type is 'gpt2'; attnbench knows llama"));
  CHECK(contains(of_folder({.config = {{"hidden_act", "gelu"}}}), "hidden_act is 'gelu'; attnbench knows silu"));
  CHECK(contains(of_folder({.config = {{"intermediate_size", 13}}}), "is [12, 8]; expected 13 x 8"));
  CHECK(contains(of_folder({.config = {{"num_key_value_heads", 3}}}), "4 query heads share 3 key heads"));
  CHECK(contains(of_folder({.config = {{"num_hidden_layers", 0}}}), "layers = 0; expected a positive number"));
  CHECK(contains(of_folder({.config = {{"hidden_size", "many"}}}), "'hidden_size' is \"many\"; expected an integer"));
  CHECK(contains(of_folder({.config = {{"head_dim", 3}}}), "keys of 3 channels; expected an even number"));
  CHECK(contains(of_folder({.config = {{"vocab_size", 257}}}), "the tokeniser has 258 tokens and the embedding 257"));
  const auto of_gguf = [&](const auto& change) {
    GgufBytes file = TinyLanguageModel().gguf();
    change(file);
    return refusal(write_bytes(cache / "changed.gguf", file.bytes()).string());
  };
  CHECK(contains(of_gguf([](GgufBytes& f) { f.entry("llama.expert_count", 4, encoded(8, 4)); }),
                 "a mixture of 8 experts"));
  CHECK(contains(of_gguf([](GgufBytes& f) { f.entry("llama.rope.scaling.type", 8, gguf_text("yarn")); }),
                 "scaled by 'yarn'"));
  CHECK(contains(of_gguf([](GgufBytes& f) { f.entry("llama.rope.dimension_count", 4, encoded(2, 4)); }),
                 "turn 2 of 4 channels"));
  CHECK(contains(of_gguf([](GgufBytes& f) {
                   f.tensor("blk.0.attn_sinks", {4}, 0, float32_bytes({1, 2, 3, 4}));
                 }),
                 "no use for the tensor 'blk.0.attn_sinks'"));
  CHECK(
      contains(refusal(cache.gguf({.architecture = "gemma3"})), "the architecture is 'gemma3'; attnbench knows llama"));
  CHECK(contains(refusal(cache.gguf({.left_out = "model.norm.weight"})), "no weight 'output_norm'"));
}

TEST_CASE("a folder that is not complete is refused by the name of the file", "[unit]") {
  const Cache cache;
  const auto without = [&](const std::string& file, size_t parts = 1) {
    const std::string folder = cache.folder({}, parts);
    std::filesystem::remove(folder + "/" + file);
    return refusal(folder);
  };
  CHECK(contains(without("config.json"), "there is no config.json"));
  CHECK(contains(without("tokenizer.json"), "there is no tokenizer.json"));
  CHECK(contains(without("model.safetensors"), "there is no model.safetensors and no model.safetensors.index.json"));
  CHECK(contains(without("model-1.safetensors", 3), "it names model-1.safetensors, which is not there"));
  const std::string folder = cache.folder({});
  std::filesystem::rename(folder + "/model.safetensors", folder + "/pytorch_model.bin");
  CHECK(contains(refusal(folder), "pytorch_model.bin"));
  const std::string parts = cache.folder({}, 2);
  for (const char* index : {"{}", "[", R"({"weight_map": {"a": 3}})", R"({"weight_map": {"a": "../b.safetensors"}})"}) {
    write_bytes(parts + "/model.safetensors.index.json", index);
    CHECK(contains(refusal(parts), "model.safetensors.index.json: "));
  }
  write_bytes(parts + "/config.json", "{");
  CHECK(contains(refusal(parts), "model.safetensors.index.json: "));
  write_bytes(cache.folder({}) + "/config.json", "{");
  CHECK(contains(refusal(cache / "tiny"), "config.json: not a JSON object"));
}

TEST_CASE("weights that are NaN are refused, and nothing is left in the cache", "[unit]") {
  const Cache cache;
  GgufBytes file = TinyLanguageModel().gguf();
  file.data.replace(file.data.size() - 4, 4, encoded(0x7fc00000, 4));
  CHECK(
      contains(refusal(write_bytes(cache / "nan.gguf", file.bytes()).string()), "'output_norm' holds NaN or infinity"));
  CHECK(cache.converted() == 0);
}

TEST_CASE("llm: heads are those of the model's layer, before or after rotary positions", "[unit]") {
  const Cache cache;
  const std::string path = cache.gguf({});
  write_bytes(cache / "text.txt", sentence);
  const std::string spec = "llm:" + path + ",file=" + cache / "text.txt";
  const auto model = read_language_model(path);
  const auto tokens = model->tokeniser->encode(sentence);
  Context context;
  const Matrix<float> X = model->embedded(tokens).cast<float>();
  const auto heads = layer_heads<float>(context, *model->transformer, 0, X),
             flat = layer_heads<float>(context, *model->transformer, 0, X, false);
  for (Index h = 0; h < 4; ++h) {
    const auto at = static_cast<size_t>(h);
    const auto drawn = head_of(spec + ",head=" + std::to_string(h), 9),
               before = head_of(spec + ",rope=before,head=" + std::to_string(h), 9);
    CHECK((drawn.Q == heads[at].Q.cast<double>() && drawn.K == heads[at].K.cast<double>() &&
           drawn.V == heads[at].V.cast<double>()));
    CHECK((before.Q == flat[at].Q.cast<double>() && before.Q != drawn.Q && before.V == drawn.V));
  }
  CHECK(head_of(spec + ",layer=1", 9).Q != head_of(spec, 9).Q);
  const auto fewer = head_of(spec + ",layer=1", 5);  // a causal model: earlier tokens do not see later ones
  CHECK((fewer.Q - head_of(spec + ",layer=1", 9).Q.topRows(5)).cwiseAbs().maxCoeff() < 1e-5);
  CHECK(place_of(Params("inputs", spec + ",layer=1,head=2")).name == "layer 1, head 2");
  CHECK(place_of(Params("inputs", spec)).group == "heads of Tiny");
  CHECK(contains(misuse_of([&] { head_of(spec + ",layer=2", 9); }), "a layer from 0 to 1 and a head from 0 to 3"));
  CHECK(contains(misuse_of([&] { head_of(spec + ",head=4", 9); }), "head=4 was asked for"));
  CHECK(contains(misuse_of([&] { head_of(spec, 10); }), "has 9 tokens; give a smaller n"));
}

TEST_CASE("llm: a row predicts the next token, which stands for so many bytes", "[unit]") {
  const Cache cache;
  write_bytes(cache / "text.txt", sentence);
  const Params params("inputs", "llm:" + cache.gguf({}) + ",file=" + cache / "text.txt");
  const auto task =
      find<InputEntry>("llm").prediction(params, {.nq = 4, .nk = 4, .d = 4, .dv = 4, .streams = Streams(1)});
  CHECK(task.predicted == std::vector<std::optional<Index>>{' ', 'o', 257, std::nullopt});
  CHECK(task.bytes == std::vector<Index>{1, 1, 3, 0});
  CHECK(task.read.X.rows() == 4);
}

TEST_CASE("llm: a prompt that asks for a fact predicts the answer alone, and model-loss says whether it is found",
          "[unit]") {
  const Cache cache;
  const std::string path = cache.gguf({});
  const Cell cell{
      .experiment = Params("experiments", "model-loss:prompt=150"),
      .method = Params("methods", "softmax"),
      .input = Params("inputs", "llm:" + path + ",facts=2"),
      .problem =
          {.shape = {.nq = 200, .nk = 200, .d = 4, .dv = 4, .mask = {.causal = true}, .precision = Precision::f32}},
      .seed = 1};
  std::set<double> answers;
  for (Index replicate = 0; replicate < 3; ++replicate) {
    const auto task = find<InputEntry>("llm").prediction(
        cell.input, {.nq = 200, .nk = 200, .d = 4, .dv = 4, .streams = Streams(1), .replicate = replicate});
    CHECK(task.answer);
    const auto first = std::ranges::find_if(task.predicted, [](const auto& token) { return token.has_value(); });
    const auto length = task.predicted.end() - first - 1;
    CHECK((length >= 5 && length <= 8));  // " apple" to " lantern", a token per byte
    const Measured found = measured(cell, replicate, 1);
    const Matrix<double> logits =
        logits_of(*task.read.transformer.in<float>(), task.read.X.cast<float>()).cast<double>();
    double bits = 0;
    bool answered = true;
    for (Index row = 199 - length; row < 199; ++row) {
      const Index token = *task.predicted[static_cast<size_t>(row)];
      bits += std::log2((logits.row(row).array() - logits(row, token)).exp().sum());
      answered = answered && logits.row(row).maxCoeff() == logits(row, token);
    }
    CHECK(std::abs(found["answer_bits"] - bits) < 1e-4 * bits);
    CHECK(found["answered"] == static_cast<double>(answered));
    CHECK(found["exactly_answered"] == static_cast<double>(answered));
    answers.insert(bits);
  }
  CHECK(answers.size() == 3);
  Cell late = cell;
  late.experiment = Params("experiments", "model-loss:prompt=197");
  CHECK(contains(misuse_of([&] { measured(late, 0, 1); }), "so that all of the answer is judged"));
  CHECK(find<InputEntry>("llm").limits(cell.input).replicates == 0);
}

TEST_CASE("llm: replicate r reads text r, and fitted methods learn from another text of its kind", "[unit]") {
  const Cache cache;
  const std::string spec = "llm:" + cache.gguf({});
  const auto texts = language_texts();
  REQUIRE(texts->size() == 64);
  const auto model = read_language_model(cache / "tiny.gguf");
  const auto read = [&](const std::string& given, Index replicate, Purpose purpose = Purpose::measured) {
    return find<InputEntry>("llm")
        .transformer(
            Params("inputs", given),
            {.nq = 16, .nk = 16, .d = 4, .dv = 4, .streams = Streams(1), .replicate = replicate, .purpose = purpose})
        .X;
  };
  const auto start = [&](size_t text) {
    auto tokens = model->tokeniser->encode((*texts)[text].text);
    tokens.resize(16);
    return model->embedded(tokens);
  };
  CHECK((read(spec, 0) == start(0) && read(spec, 5) == start(5) && read(spec + ",text=7", 3) == start(7)));
  CHECK((read(spec, 0, Purpose::calibration) == start(4) && read(spec, 62, Purpose::calibration) == start(2)));
  for (Index kind = 0; kind < 4; ++kind) {
    const std::string name = (*texts)[static_cast<size_t>(kind)].kind;
    CHECK(read(spec + ",kind=" + name, 2) == start(static_cast<size_t>(kind + 8)));
    CHECK(read(spec + ",kind=" + name, 15, Purpose::calibration) == start(static_cast<size_t>(kind)));
    CHECK(find<InputEntry>("llm").limits(Params("inputs", spec + ",kind=" + name)).replicates == 16);
  }
  CHECK(find<InputEntry>("llm").limits(Params("inputs", spec)).replicates == 64);
  CHECK(contains(misuse_of([&] { read(spec, 64); }), "text 64 was asked for; expected one from 0 to 63"));
  CHECK(contains(misuse_of([&] { read(spec + ",kind=poems", 0); }),
                 "kind=poems was asked for; expected all, prose, documentation, code, french"));
  CHECK(contains(misuse_of([&] { read("llm:nothing", 0); }), "there is no 'nothing'; expected llm:smollm2"));
  CHECK(contains(misuse_of([&] { read("llm:smollm2", 0); }), "get it with attnbench fetch smollm2"));
  CHECK(contains(misuse_of([&] { read("llm", 0); }), "no model was given; expected llm:smollm2"));
  CHECK(contains(misuse_of([&] { read(spec + ",file=" + cache / "none.txt", 0); }), "cannot be read, or is empty"));
}

TEST_CASE("another text or another model changes the content of the input", "[unit]") {
  const Cache cache;
  const auto content = [](const std::string& spec) { return find<InputEntry>("llm").content(Params("inputs", spec)); };
  const std::string gguf = "llm:" + cache.gguf({}), folder = "llm:" + cache.folder({});
  const std::string first = content(folder);
  CHECK(content(gguf) != first);
  write_bytes(cache / "text.txt", sentence);
  CHECK(content(folder + ",file=" + cache / "text.txt") != first);
  cache.folder({.config = {{"rope_theta", 2000}}});
  CHECK(content(folder) != first);
}

// For tests/scripts/llm_test.py: ATTNBENCH_LLM and ATTNBENCH_TEXT name files; ATTNBENCH_OUT gets the number of tokens
// and of the vocabulary (int32), the tokens (int32) and the logits (float32).
TEST_CASE("logits of a model", "[.logits]") {
  for (const char* name : {"ATTNBENCH_LLM", "ATTNBENCH_TEXT", "ATTNBENCH_OUT"}) REQUIRE(std::getenv(name));
  const auto model = read_language_model(std::getenv("ATTNBENCH_LLM"));
  const auto tokens = model->tokeniser->encode(bytes_of_file(std::getenv("ATTNBENCH_TEXT")));
  const Matrix<float> logits = logits_of(*model, tokens);
  std::ofstream out(std::getenv("ATTNBENCH_OUT"), std::ios::binary);
  const auto write = [&](auto number) { out.write(reinterpret_cast<const char*>(&number), sizeof number); };
  write(static_cast<std::int32_t>(tokens.size()));
  write(static_cast<std::int32_t>(logits.cols()));
  for (const Index token : tokens) write(static_cast<std::int32_t>(token));
  out.write(reinterpret_cast<const char*>(logits.data()),
            static_cast<std::streamsize>(logits.size() * Index{sizeof(float)}));
  CHECK(out.good());
}

}  // namespace attnbench::language_model_test
