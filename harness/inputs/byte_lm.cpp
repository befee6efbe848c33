#include "harness/inputs/byte_lm.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "harness/core/approximation.hpp"
#include "harness/core/scaling.hpp"
#include "harness/errors/error.hpp"
#include "harness/linalg/products.hpp"

namespace attnbench {

namespace {

constexpr Index alphabet = 256;
constexpr double rotary_base = 10'000;
// Captures are rounded to float16, and so are the weights that they are compared with. The nearest byte lies within
// 0.06 % of the distance of the next one (measured on both captures). With any other model it lies about as far as the
// next.
constexpr double nearest_share = 0.05;

class WeightsFile {
 public:
  explicit WeightsFile(const std::filesystem::path& path) : path_(path.string()), tensors_(read_tensors(path)) {}

  bool has(const std::string& name) const { return tensors_.contains(name); }
  Index rows(const std::string& name) const { return matrix(name).rows(); }
  Index integer(const std::string& name, Index least, Index most) const {
    const double found = matrix(name, 1, 1)(0, 0);
    if (!(found >= static_cast<double>(least) && found <= static_cast<double>(most) && found == std::floor(found)))
      throw Misuse(
          fmt::format("{}: '{}' is {}, expected an integer from {} to {}; make the file with scripts/train_byte_lm.py",
                      path_, name, found, least, most));
    return static_cast<Index>(found);
  }

  Matrix<double> matrix(const std::string& name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end())
      throw Misuse(
          fmt::format("{}: there is no tensor '{}'; make the file with scripts/train_byte_lm.py", path_, name));
    Matrix<double> numbers = as_matrix(found->second, name);
    if (!numbers.allFinite())
      throw Misuse(fmt::format("{}: '{}' holds NaN or infinity; make the file again with scripts/train_byte_lm.py",
                               path_, name));
    return numbers;
  }
  Matrix<double> matrix(const std::string& name, Index rows, Index columns) const {
    Matrix<double> found = matrix(name);
    if (found.rows() != rows || found.cols() != columns)
      throw Misuse(fmt::format("{}: '{}' is {} x {}, expected {} x {}; make the file with scripts/train_byte_lm.py",
                               path_, name, found.rows(), found.cols(), rows, columns));
    return found;
  }

 private:
  std::string path_;
  NamedTensors tensors_;
};

Norm<double> norm_of(const WeightsFile& weights, const std::string& name, Index width) {
  return {weights.matrix(name + ".weight", 1, width), weights.matrix(name + ".bias", 1, width)};
}

TransformerLayer<double> layer_of(const WeightsFile& weights, const std::string& layer, Index width) {
  const Matrix<double> qkv = weights.matrix(layer + "attention.qkv.weight", 3 * width, width);
  const Index hidden = weights.rows(layer + "up.weight");
  return {.attention_norm = norm_of(weights, layer + "attention_norm", width),
          .feed_forward_norm = norm_of(weights, layer + "feed_forward_norm", width),
          .queries = qkv.topRows(width),
          .keys = qkv.middleRows(width, width),
          .values = qkv.bottomRows(width),
          .out = weights.matrix(layer + "attention.out.weight", width, width),
          .up = weights.matrix(layer + "up.weight", hidden, width),
          .up_shift = weights.matrix(layer + "up.bias", 1, hidden),
          .down = weights.matrix(layer + "down.weight", width, hidden),
          .down_shift = weights.matrix(layer + "down.bias", 1, width)};
}

// Runs the model on one token of every byte up to the first layer's values: 256 x width, head after head.
Matrix<double> values_of_all_bytes(Context& context, const ByteModel& model) {
  Transformer<double> first = *model.transformer;
  first.layers.resize(1);
  Matrix<double> values(alphabet, first.heads * first.dv);
  hidden_states(context, first, model.embedding, {}, [&](Index, Index head, const auto& heads, Out<double> out) {
    values.middleCols(head * first.dv, first.dv) = heads[static_cast<size_t>(head)].V;
    out.setZero();
  });
  return values;
}

}  // namespace

ByteModel read_byte_model(const std::filesystem::path& path) {
  const WeightsFile weights(path);
  ByteModel model{weights.matrix("embedding.weight"), nullptr, weights.integer("attention.causal", 0, 1) == 1};
  const Index width = model.embedding.cols(), heads = weights.integer("attention.heads", 1, width);
  if (model.embedding.rows() != alphabet || width % (2 * heads) != 0)
    throw Misuse(
        fmt::format("{}: an embedding of {} x {} for {} heads; expected {} rows and an even number of columns "
                    "for each head",
                    path.string(), model.embedding.rows(), width, heads, alphabet));
  Transformer<double> transformer{.heads = heads,
                                  .d = width / heads,
                                  .dv = width / heads,
                                  .rotary_frequencies = rotary_frequencies(width / heads, rotary_base),
                                  .layers = {},
                                  .output_norm = norm_of(weights, "norm", width),
                                  .unembedding = model.embedding};
  do transformer.layers.push_back(layer_of(weights, fmt::format("layers.{}.", transformer.layers.size()), width));
  while (weights.has(fmt::format("layers.{}.attention.qkv.weight", transformer.layers.size())));
  model.transformer = std::make_shared<const Transformer<double>>(std::move(transformer));
  return model;
}

std::vector<Index> bytes_of(Context& context, const ByteModel& trained, const AttentionFile& capture) {
  const Index dv = trained.transformer->dv, heads = trained.transformer->heads;
  if (capture.heads != heads || capture.dv != dv)
    throw Misuse(
        fmt::format("the captures have {} heads of {} channels and the weights {} of {}; make both with "
                    "scripts/train_byte_lm.py",
                    capture.heads, capture.dv, heads, dv));
  const Matrix<double> known = values_of_all_bytes(context, trained);
  std::vector<Index> bytes;
  for (Index i = 0; i < capture.nk; ++i) {
    Matrix<double> token(1, heads * dv);
    for (Index h = 0; h < heads; ++h) token.middleCols(h * dv, dv) = capture.head(0, h).V.row(i);
    Index nearest = 0;
    double best = std::numeric_limits<double>::infinity(), next = best;
    for (Index b = 0; b < alphabet; ++b) {
      const double distance = (known.row(b) - token.row(0)).norm();
      if (distance < best) {
        next = best;
        best = distance;
        nearest = b;
      } else {
        next = std::min(next, distance);
      }
    }
    if (!(best < nearest_share * next))
      throw Misuse(
          fmt::format("token {} of the captures matches no byte of the trained weights: the nearest is at {:.3g}, "
                      "the next at {:.3g}; make captures and weights in one run of scripts/train_byte_lm.py",
                      i, best, next));
    bytes.push_back(nearest);
  }
  return bytes;
}

std::vector<std::vector<Index>> read_texts(const std::filesystem::path& path, const std::string& tensor) {
  const Matrix<double> bytes = WeightsFile(path).matrix(tensor);
  if (bytes.size() == 0) throw Misuse(fmt::format("{}: there is no text in it", path.string()));
  std::vector<std::vector<Index>> texts(static_cast<size_t>(bytes.rows()));
  for (Index text = 0; text < bytes.rows(); ++text)
    for (Index i = 0; i < bytes.cols(); ++i) {
      const double byte = bytes(text, i);
      if (!(byte >= 0 && byte < alphabet && byte == std::floor(byte)))
        throw Misuse(
            fmt::format("{}: byte {} of text {} is {}; expected an integer from 0 to {}: make the file with "
                        "scripts/train_byte_lm.py",
                        path.string(), i, text, byte, alphabet - 1));
      texts[static_cast<size_t>(text)].push_back(static_cast<Index>(byte));
    }
  return texts;
}

Matrix<double> embedded(const ByteModel& model, const std::vector<Index>& bytes) {
  Matrix<double> X(static_cast<Index>(bytes.size()), model.embedding.cols());
  for (size_t i = 0; i < bytes.size(); ++i) X.row(static_cast<Index>(i)) = model.embedding.row(bytes[i]);
  return X;
}

AttentionFile heads_of(Context& context, const ByteModel& model, const std::vector<Index>& bytes) {
  const Transformer<double>& transformer = *model.transformer;
  const auto n = static_cast<Index>(bytes.size()), layers = static_cast<Index>(transformer.layers.size());
  const Index heads = transformer.heads, d = transformer.d, dv = transformer.dv;
  AttentionFile file{.leading = {layers, heads},
                     .batches = layers,
                     .heads = heads,
                     .key_heads = heads,
                     .nq = n,
                     .nk = n,
                     .d = d,
                     .dv = dv};
  for (Tensor* tensor : {&file.q, &file.k, &file.v}) tensor->shape = {layers, heads, n, tensor == &file.v ? dv : d};
  const Shape shape{.nq = n, .nk = n, .d = d, .dv = dv, .mask = {.causal = model.causal}, .precision = Precision::f64};
  const Params params("methods", "softmax");
  const auto softmax = make_approximation<double>({.shape = shape, .params = params, .streams = Streams(0)});
  const double scale = edge_scale(d);
  const auto keep = [&](const HeadData<double>& head) {
    for (const auto& [tensor, X] : {std::pair{&file.q, &head.Q}, {&file.k, &head.K}, {&file.v, &head.V}})
      tensor->values.insert(tensor->values.end(), X->data(), X->data() + X->size());
  };
  // Nobody reads the tokens after the last layer. Its attention and feed-forward part would be a quarter of the work.
  hidden_states(context, transformer, embedded(model, bytes), {.last_feed_forward = false},
                [&](Index layer, Index h, std::span<const HeadData<double>> drawn, Out<double> out) {
                  const HeadData<double>& head = drawn[static_cast<size_t>(h)];
                  keep(head);
                  if (layer + 1 == layers) {
                    out.setZero();
                  } else {
                    const Matrix<double> Q = scale * head.Q, K = scale * head.K;
                    softmax->attend({Q, K, head.V}, shape.mask, context, out);
                  }
                });
  return file;
}

}  // namespace attnbench
