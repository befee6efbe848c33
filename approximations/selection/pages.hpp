// Pages: consecutive keys, `size` of them in each but the last. Methods that score pages keep the best ones of each row
// and attend to all keys in them. methods.md U.
//   A row that is one of the tokens keeps its own page, which counts among those kept. Under a causal mask that page is
//   the only one of which it sees a part, so that no summary of a page that the row scores has a later key in it.
#pragma once

#include <fmt/format.h>

#include "approximations/selection/chosen_keys.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench {

struct Pages {
  Index size = 1, keep = 1;

  Index containing(Index keys) const { return (keys + size - 1) / size; }
  // The page of a position, or -1 if none of the keys that the row sees has it.
  Index own(Index position, Index seen) const { return position >= 0 && position < seen ? position / size : -1; }

  // The keys of a row that sees `seen` keys, given a score for each page.
  template <class T>
  std::vector<IndexRun> best(std::span<const T> scores, Index position, Index seen) const {
    const Index of_row = own(position, seen), pages = containing(seen);
    const auto part = [&](Index from, Index to) {
      return scores.subspan(static_cast<size_t>(from), static_cast<size_t>(to - from));
    };
    LargestScores<T> largest(of_row < 0 ? keep : keep - 1);
    largest.add(0, part(0, of_row < 0 ? pages : of_row));
    if (of_row >= 0) largest.add(of_row + 1, part(of_row + 1, pages));
    std::vector<Index> kept;
    for (const auto& found : largest.found()) kept.push_back(found.key);
    if (of_row >= 0) kept.push_back(of_row);
    std::vector<IndexRun> runs = runs_of(kept);
    for (IndexRun& run : runs) run = run_between(run.first * size, std::min((run.first + run.count) * size, seen));
    return runs;
  }

  // The number of keys that such a row keeps, if the last page is whole.
  Index keys(Index seen, Index position) const {
    if (containing(seen) <= keep) return seen;
    const Index page = own(position, seen);
    return page < 0 ? keep * size : (keep - 1) * size + std::min(size, seen - page * size);
  }
};

// Summary: how a method sums up pages and scores them.
//   static Index width(Index d): numbers of a summary
//   static Matrix<T> of(const In<T>& K, Index size): a row for each page of K
//   static void score(Context&, const In<T>& Q, const In<T>& summaries, Out<T> scores): rows of Q x pages
template <class T, class Summary>
class BestPages final : public KeyChoice<T> {
 public:
  BestPages(const Head<T>& head, Mask mask, Pages pages)
      : head_(head),
        pages_(pages),
        summaries_(Summary::of(row_block(head.K, 0, Mask{.keys = mask.keys}.visible(0, head.K.rows())), pages.size)) {}

  void choose(Context& context, Mask mask, Index first, std::span<WeighedKeys<T>> rows,
              std::span<double>) const override {
    const Index count = std::ssize(rows), nk = head_.K.rows();
    const Index scored = pages_.containing(mask.visible(first + count - 1, nk));
    Matrix<T> scores(count, scored);
    if (scored > 0) Summary::score(context, row_block(head_.Q, first, count), row_block(summaries_, 0, scored), scores);
    for (Index i = 0; i < count; ++i)
      for (const IndexRun& run : pages_.best<T>({scores.data() + i * scored, static_cast<size_t>(scored)},
                                                first + i + mask.offset, mask.visible(first + i, nk)))
        for (Index j = run.first; j < run.first + run.count; ++j) rows[static_cast<size_t>(i)].keys.push_back(j);
  }

 private:
  Head<T> head_;
  Pages pages_;
  Matrix<T> summaries_;  // pages x width
};

// A cache of keys and values with a summary of each whole page. A step scores the pages and reads the keys of the best.
// The last page is the token's own, which is read without a score, so that it needs no summary before it is whole.
template <class T, class Summary>
class PageDecoder final : public Decoder<T> {
 public:
  PageDecoder(const Shape& shape, Pages pages)
      : pages_(pages),
        K_(shape.nk, shape.d),
        V_(shape.nk, shape.dv),
        summaries_(pages.containing(shape.nk), Summary::width(shape.d)),
        weights_(1, shape.nk),
        scores_(1, summaries_.rows()) {}

  void prefill(const Head<T>& tokens, Context&) override {
    for (Index j = 0; j < tokens.K.rows(); ++j) add(tokens, j);
  }

  void step(const Head<T>& token, Context& context, Out<T> out) override {
    add(token, 0);
    const Index whole = came_ / pages_.size, pages = pages_.containing(came_);
    if (whole > 0) Summary::score(context, token.Q, row_block(summaries_, 0, whole), corner(scores_, 1, whole));
    const auto runs = pages_.best<T>({scores_.data(), static_cast<size_t>(pages)}, came_ - 1, came_);
    Index read = 0;
    for (const IndexRun& run : runs) {
      multiply_transposed<T>(context, token.Q, row_block(K_, run.first, run.count), part(read, run.count));
      read += run.count;
    }
    softmax_within<T>(context, weights_, 0, 0, read);
    out.setZero();
    read = 0;
    for (const IndexRun& run : runs) {
      multiply_add<T>(context, part(read, run.count), row_block(V_, run.first, run.count), out);
      read += run.count;
    }
  }

  size_t bytes() const override {
    const Index numbers = came_ * (K_.cols() + V_.cols()) + came_ / pages_.size * summaries_.cols();
    return static_cast<size_t>(numbers) * sizeof(T);
  }

 private:
  void add(const Head<T>& tokens, Index j) {
    if (came_ == K_.rows())
      throw Misuse(
          fmt::format("a decoder for {} tokens was given one more; make it with a larger shape.nk", K_.rows()));
    K_.row(came_) = tokens.K.row(j);
    V_.row(came_) = tokens.V.row(j);
    if (++came_ % pages_.size != 0) return;
    const Index page = came_ / pages_.size - 1;
    summaries_.row(page) = Summary::of(row_block(K_, page * pages_.size, pages_.size), pages_.size);
  }
  Out<T> part(Index first, Index count) { return {weights_.data() + first, 1, count, weights_.cols()}; }

  Pages pages_;
  Matrix<T> K_, V_, summaries_;
  Matrix<T> weights_, scores_;  // of one step: 1 x tokens, 1 x pages
  Index came_ = 0;
};

// The engine of methods that attend to the pages with the best scores.
template <class T, class Summary>
class PagedSoftmax : public SelectedSoftmax<T> {
 public:
  explicit PagedSoftmax(Pages pages) : pages_(pages) {}

  std::unique_ptr<Decoder<T>> decoder(const Shape& shape) const override {
    return std::make_unique<PageDecoder<T, Summary>>(shape, pages_);
  }

 protected:
  Pages pages_;

 private:
  std::unique_ptr<KeyChoice<T>> choice(const Head<T>& head, Mask mask, Context&) const override {
    return std::make_unique<BestPages<T, Summary>>(head, mask, pages_);
  }
};

// Of one attend: each row's product with a summary of `width` numbers for each page, and softmax over the keys kept.
inline Work cost_of_pages(const Pages& pages, Index width, const Shape& shape) {
  const double scored = sum_over_blocks(shape, [&](Index seen) { return pages.containing(seen); });
  const double pairs = sum_over_rows(shape, [&](Index seen, Index position) { return pages.keys(seen, position); });
  return {.flops = 2 * scored * static_cast<double>(width) + 2 * pairs * static_cast<double>(shape.d + shape.dv),
          .exps = pairs};
}

// Bytes: the summaries, and the scores and pages of the rows that are chosen for together.
inline double memory_of_pages(const Pages& pages, Index width, const Shape& shape) {
  const auto count = static_cast<double>(pages.containing(shape.nk)), rows = static_cast<double>(gathered_rows);
  const double keys = static_cast<double>(std::min(shape.nk, pages.keep * pages.size));
  return count * (static_cast<double>(width) + rows) * bytes_of(shape.precision) +
         memory_of_gathered(keys, false, shape);
}

}  // namespace attnbench
