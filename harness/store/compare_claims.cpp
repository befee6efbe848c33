#include "harness/store/compare_claims.hpp"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>

#include <map>

#include "harness/store/database.hpp"

namespace attnbench {

namespace {

using Of = ComparedClaim::Outcome;

struct Judged {
  Ruling outcome, expected;
};

struct Claims {
  std::map<std::pair<std::string, std::string>, Judged> judged;  // by recipe and statement
  std::map<std::string, std::string> sizes;                      // by recipe
};

Ruling verdict_outcome(const std::string& word) {
  if (const auto outcome = ruling_named(word)) return *outcome;
  throw Misuse(fmt::format("a verdict is '{}'; expected {}: the results file is damaged or of another program", word,
                           all_rulings()));
}

Claims read_claims(const std::filesystem::path& path) {
  return explained(path, [&] {
    SQLite::Database database = open_for_reading(path);
    const SQLite::Transaction snapshot(database);
    Claims claims;
    SQLite::Statement select(database, "SELECT recipe, statement, outcome, expected FROM verdict");
    while (select.executeStep())
      claims.judged.insert_or_assign(
          {select.getColumn(0).getString(), select.getColumn(1).getString()},
          Judged{verdict_outcome(select.getColumn(2).getString()), verdict_outcome(select.getColumn(3).getString())});
    SQLite::Statement sizes(database, "SELECT recipe, size FROM reproduction");
    while (sizes.executeStep()) claims.sizes[sizes.getColumn(0).getString()] = sizes.getColumn(1).getString();
    return claims;
  });
}

Of outcome_of(const ComparedClaim& claim) {
  if (claim.a == claim.b) return Of::same;
  if (claim.a == Ruling::open || claim.b == Ruling::open) return Of::ambiguous;
  return claim.b == claim.expected ? Of::better : claim.a == claim.expected ? Of::worse : Of::differs;
}

}  // namespace

ComparedClaims compare_claims(const std::filesystem::path& path_a, const std::filesystem::path& path_b) {
  Claims a = read_claims(path_a), b = read_claims(path_b);
  ComparedClaims comparison;
  const auto words = [](const auto& key) { return key.first + ": " + key.second; };
  for (const auto& [key, of_a] : a.judged) {
    const auto other = b.judged.find(key);
    if (other == b.judged.end()) {
      comparison.only_a.push_back(words(key));
      continue;
    }
    const Judged& of_b = other->second;
    ComparedClaim claim{.recipe = key.first,
                        .statement = key.second,
                        .a = of_a.outcome,
                        .b = of_b.outcome,
                        .expected = of_b.expected,
                        .size_a = a.sizes[key.first],
                        .size_b = b.sizes[key.first]};
    claim.outcome = outcome_of(claim);
    comparison.claims.push_back(std::move(claim));
  }
  for (const auto& [key, of_b] : b.judged)
    if (!a.judged.contains(key)) comparison.only_b.push_back(words(key));
  return comparison;
}

}  // namespace attnbench
