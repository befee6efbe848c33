#include "approximations/clusters/hashing.hpp"

#include <algorithm>

#include "harness/linalg/products.hpp"

namespace attnbench {

namespace {

constexpr Index hash_block = 256;  // rows

}  // namespace

Round::Round(const std::vector<std::int32_t>& bucket, Index buckets, Index chunk, bool bucket_mask, bool begin_anew)
    : order(bucket.size()), place(bucket.size()), segment(bucket.size()) {
  std::vector<std::int32_t> next(static_cast<size_t>(buckets) + 1);
  for (const auto b : bucket) ++next[static_cast<size_t>(b) + 1];
  for (size_t b = 1; b < next.size(); ++b) next[b] += next[b - 1];
  for (size_t i = 0; i < bucket.size(); ++i) {
    place[i] = next[static_cast<size_t>(bucket[i])]++;
    order[static_cast<size_t>(place[i])] = static_cast<std::int32_t>(i);
  }
  // A segment begins wherever a chunk begins and, with bucket_mask, also wherever a bucket begins.
  Index bucket_begin = 0, chunk_begin = 0;
  const auto bucket_at = [&](Index at) { return bucket[static_cast<size_t>(order[static_cast<size_t>(at)])]; };
  for (Index at = 0; at < std::ssize(bucket); ++at) {
    const bool next_bucket = bucket_mask && at > 0 && bucket_at(at) != bucket_at(at - 1);
    if (next_bucket) bucket_begin = at;
    const bool next_chunk = at - chunk_begin == chunk || (next_bucket && begin_anew);
    if (next_chunk) chunk_begin = at;
    if (at == 0 || next_bucket || next_chunk) segments.push_back({at, at, std::max(bucket_begin, chunk_begin - chunk)});
    segments.back().end = at + 1;
    segment[static_cast<size_t>(order[static_cast<size_t>(at)])] = static_cast<std::int32_t>(segments.size() - 1);
  }
}

Hashing::Hashing(const Draw& draw)
    : buckets_(draw.params.integer("buckets")),
      rounds_(draw.params.integer("rounds")),
      chunk_(draw.params.integer("chunk")),
      bucket_mask_(draw.params.flag("bucket_mask")),
      chunks_(draw.params.text("chunks")) {
  const Index rotations = rounds_ * buckets_ / 2;
  if (const auto* given = draw.injected("rotations", rotations, draw.shape.d)) {
    rotations_ = *given;
  } else {
    auto generator = draw.streams.stream("projection", "reformer", buckets_, draw.shape.d, draw.head, draw.replicate);
    rotations_ = standard_normal(generator, rotations, draw.shape.d);
  }
}

template <class T>
std::vector<std::int32_t> Hashing::buckets_of(const In<T>& X, Index round, Context& context) const {
  const Index n = X.rows();
  std::vector<std::int32_t> bucket(static_cast<size_t>(n));
  const Index half = buckets_ / 2;
  context.for_blocks(n, hash_block, [&](Context& single, Index begin, Index count) {
    const Matrix<double> tokens = row_block(X, begin, count).template cast<double>();
    Matrix<double> turned(count, half);
    multiply_transposed<double>(single, tokens, row_block(rotations_, round * half, half), turned);
    for (Index i = 0; i < count; ++i) {
      Index best = 0;
      const auto value = [&](Index b) { return b < half ? turned(i, b) : -turned(i, b - half); };
      for (Index b = 1; b < buckets_; ++b)
        if (value(b) > value(best)) best = b;
      bucket[static_cast<size_t>(begin + i)] = static_cast<std::int32_t>(best);
    }
  });
  return bucket;
}

template <class T>
std::vector<Round> Hashing::rounds(const In<T>& X, bool causal, Context& context) const {
  std::vector<Round> all;
  const bool begin_anew = chunks_ == "bucket" || (chunks_ == "auto" && causal);
  for (Index r = 0; r < rounds_; ++r)
    all.emplace_back(buckets_of<T>(X, r, context), buckets_, chunk_, bucket_mask_, begin_anew);
  return all;
}

std::vector<Index> candidates(const std::vector<Round>& rounds, bool causal, Index i) {
  std::vector<Index> all;
  for (const Round& round : rounds)
    for (Index at = round.of(i).candidates; at < round.of(i).end; ++at)
      if (const Index j = round.order[static_cast<size_t>(at)]; j != i && !(causal && j > i)) all.push_back(j);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  if (all.empty()) all.push_back(i);
  return all;
}

template std::vector<Round> Hashing::rounds<float>(const In<float>&, bool, Context&) const;
template std::vector<Round> Hashing::rounds<double>(const In<double>&, bool, Context&) const;

}  // namespace attnbench
