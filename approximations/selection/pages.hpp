// Pages: consecutive keys, `size` of them in each but the last. Methods that score pages keep the best ones of each row
// and attend to all keys in them. methods.md U.
//   A row that is one of the tokens keeps its own page, which counts among those kept. Under a causal mask that page is
//   the only one of which it sees a part, so that no summary of a page that the row scores has a later key in it.
#pragma once

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
        keys_(Mask{.keys = mask.keys}.visible(0, head.K.rows())),
        summaries_(pages.containing(keys_), Summary::width(head.K.cols())) {}

  // A page that is not whole is summed up again when its next keys come.
  void extend(Context&, Index first, Index end) override {
    const Index begin = first / pages_.size * pages_.size, stop = std::min(end, keys_);
    if (begin >= stop) return;
    const Matrix<T> summaries = Summary::of(row_block(head_.K, begin, stop - begin), pages_.size);
    summaries_.middleRows(begin / pages_.size, summaries.rows()) = summaries;
  }
  size_t bytes(Index keys) const override {
    return static_cast<size_t>(pages_.containing(keys) * summaries_.cols()) * sizeof(T);
  }

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
  Index keys_;           // those that are not padding
  Matrix<T> summaries_;  // pages x width
};

// The engine of methods that attend to the pages with the best scores.
template <class T, class Summary>
class PagedSoftmax : public SelectedSoftmax<T> {
 public:
  explicit PagedSoftmax(Pages pages) : pages_(pages) {}

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
