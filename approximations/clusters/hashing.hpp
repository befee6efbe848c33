// Reformer's hashing: hashes tokens into buckets, sorts them, cuts them into chunks and lists each token's candidates.
// methods.md F.
#pragma once

#include <cstdint>
#include <string>

#include "approximations/clusters/clusters.hpp"

namespace attnbench {

// Neighbours in the sorted order with the same candidates: the tokens at places [candidates, end), except that a token
// is not its own candidate.
struct Segment {
  Index begin, end, candidates;
};

// One round of hashing, for n tokens.
struct Round {
  std::vector<std::int32_t> order;    // the token at each place
  std::vector<std::int32_t> place;    // of each token
  std::vector<std::int32_t> segment;  // of each token
  std::vector<Segment> segments;

  // bucket: that of each token. Chunks of `chunk` places are cut from the whole order or, with begin_anew, within each
  // bucket. Candidates are in a token's chunk or the one before, and with bucket_mask in its own bucket.
  Round(const std::vector<std::int32_t>& bucket, Index buckets, Index chunk, bool bucket_mask, bool begin_anew);

  const Segment& of(Index token) const { return segments[static_cast<size_t>(segment[static_cast<size_t>(token)])]; }
};

class Hashing {
 public:
  // The parameters buckets (even), rounds, chunk, chunks and bucket_mask; the state "rotations".
  explicit Hashing(const Draw& draw);

  // Hashes the rows of X.
  template <class T>
  std::vector<Round> rounds(const In<T>& X, bool causal, Context& context) const;
  const Matrix<double>& rotations() const { return rotations_; }
  bool bucket_mask() const { return bucket_mask_; }

 private:
  template <class T>
  std::vector<std::int32_t> buckets_of(const In<T>& X, Index round, Context& context) const;

  Index buckets_, rounds_, chunk_;
  bool bucket_mask_;
  std::string chunks_;
  Matrix<double> rotations_;  // rounds b/2 x d
};

// The tokens that token i finds in any round, ascending; i itself when it finds no other token.
std::vector<Index> candidates(const std::vector<Round>& rounds, bool causal, Index i);

}  // namespace attnbench
