#include "harness/store/digest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>

#include "harness/random/streams.hpp"
#include "harness/store/shape.hpp"
#include "harness/store/text.hpp"

namespace attnbench {

namespace {

static_assert(std::endian::native == std::endian::little, "digests are of little endian numbers, without a swap");

constexpr size_t block = 64;  // bytes

template <class Number>
void append(std::string& bytes, char type, Number number) {
  static_assert(sizeof number == 8);
  std::array<char, 8> raw{};
  std::memcpy(raw.data(), &number, sizeof number);
  bytes += type;
  bytes.append(raw.data(), raw.size());
}

// The type of the value, its length where that varies, and its bytes: no two lists of values give equal bytes.
void append(std::string& bytes, sqlite3_value* value) {
  switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER:
      return append(bytes, 'i', std::int64_t{sqlite3_value_int64(value)});
    case SQLITE_FLOAT:
      return append(bytes, 'r', sqlite3_value_double(value));
    case SQLITE_NULL:
      bytes += 'n';
      return;
    default:
      break;
  }
  const bool text = sqlite3_value_type(value) == SQLITE_TEXT;
  const void* content = text ? static_cast<const void*>(sqlite3_value_text(value)) : sqlite3_value_blob(value);
  const auto length = static_cast<size_t>(sqlite3_value_bytes(value));
  append(bytes, text ? 't' : 'b', std::uint64_t{length});
  if (length > 0) bytes.append(static_cast<const char*>(content), length);
}

// SQLite keeps one pointer for each group of rows that it aggregates, null at first.
std::string*& collected(sqlite3_context* context) {
  return *static_cast<std::string**>(sqlite3_aggregate_context(context, sizeof(std::string*)));
}

void collect(sqlite3_context* context, int count, sqlite3_value** values) {
  std::string*& bytes = collected(context);
  if (!bytes) bytes = new std::string;
  for (int i = 0; i < count; ++i) append(*bytes, values[i]);
}

void finish(sqlite3_context* context) {
  const std::unique_ptr<std::string> bytes(collected(context));
  const std::string digest = digest_of(bytes ? std::move(*bytes) : "");
  sqlite3_result_text(context, digest.data(), static_cast<int>(digest.size()), SQLITE_TRANSIENT);
}

// None for a value of another type.
std::optional<std::string_view> text_of(sqlite3_value* value) {
  if (sqlite3_value_type(value) != SQLITE_TEXT) return std::nullopt;
  const auto* content = reinterpret_cast<const char*>(sqlite3_value_text(value));
  return std::string_view(content, static_cast<size_t>(sqlite3_value_bytes(value)));
}

void answer_is_text(sqlite3_context* context, int count, sqlite3_value** values) {
  const bool all = std::all_of(values, values + count, [](sqlite3_value* value) {
    const auto text = text_of(value);
    return text && is_text(*text);
  });
  sqlite3_result_int(context, all ? 1 : 0);
}

void answer_elements(sqlite3_context* context, int, sqlite3_value** values) {
  const auto text = text_of(*values);
  const auto elements = text ? elements_of(*text) : std::nullopt;
  if (elements)
    sqlite3_result_int64(context, *elements);
  else
    sqlite3_result_null(context);
}

constexpr std::array cell_columns{"key",    "experiment",  "method", "input",       "nq",         "n",
                                  "d",      "dv",          "causal", "mask_offset", "mask_keys",  "precision",
                                  "heads",  "logit_scale", "seed",   "threads",     "parameters", "source_version",
                                  "machine"};

}  // namespace

std::string digest_of(std::string bytes) {
  do {
    bytes.resize((std::max<size_t>(bytes.size(), 1) + block - 1) / block * block);
    std::string hashes;
    for (size_t at = 0; at < bytes.size(); at += block) {
      const std::uint64_t hash = hash_bytes(std::string_view(bytes).substr(at, block));
      std::array<char, 8> raw{};
      std::memcpy(raw.data(), &hash, sizeof hash);
      hashes.append(raw.data(), raw.size());
    }
    bytes = std::move(hashes);
  } while (bytes.size() > 8);
  std::uint64_t hash = 0;
  std::memcpy(&hash, bytes.data(), sizeof hash);
  return fmt::format("{:016x}", hash);
}

std::string cell_columns_in_sql(const std::string& prefix) {
  std::string list;
  for (const char* column : cell_columns) list += (list.empty() ? prefix : ", " + prefix) + column;
  return list;
}

const std::vector<Sealed>& sealed_tables() {
  static const std::vector<Sealed> all{
      {"run", "'run ' || id",
       "(SELECT digest(one.started, one.command, one.environment) FROM run one WHERE one.id = run.id)"},
      {"replicate",
       "coalesce((SELECT experiment || ' ' || method || ' ' || input || ' n=' || n FROM cell WHERE id = "
       "replicate.cell), "
       "'a cell that is not there') || ' replicate ' || replicate.replicate",
       fmt::format(R"sql((
         SELECT digest({}, u.digest, replicate.replicate, replicate.ending, replicate.reason, replicate.seconds,
                       replicate.finished, replicate.measurements,
                       (SELECT digest(metric, unit, shape, value, array) FROM (
                          SELECT metric, unit, shape, value, array FROM measurement m
                          WHERE m.cell = replicate.cell AND m.replicate = replicate.replicate ORDER BY metric)))
         FROM cell c JOIN run u WHERE c.id = replicate.cell AND u.id = replicate.run))sql",
                   cell_columns_in_sql("c."))},
      {"figure", "'figure ' || recipe || '/' || name",
       "(SELECT digest(one.recipe, one.name, one.position, one.json, one.written) FROM figure one "
       "WHERE one.recipe = figure.recipe AND one.name = figure.name)"},
      {"reproduction", "'recipe ' || recipe || ', or one of its verdicts'", R"sql((
         SELECT digest(one.recipe, one.size, one.command, one.seconds, one.cells, one.written,
                       (SELECT digest(position, outcome, statement, numbers, written, region, expected, source,
                                      quotation, paraphrase, definition, threshold, because, kind, compared)
                        FROM (SELECT * FROM verdict v WHERE v.recipe = reproduction.recipe ORDER BY position)))
         FROM reproduction one WHERE one.recipe = reproduction.recipe))sql"}};
  return all;
}

std::string seal(std::string_view table, std::string_view condition) {
  const auto sealed = std::ranges::find(sealed_tables(), table, &Sealed::table);
  return fmt::format("UPDATE {} SET digest = {} WHERE {}", table, sealed->digest, condition);
}

void define_functions(SQLite::Database& database) {
  constexpr int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
  sqlite3* connection = database.getHandle();
  sqlite3_create_function_v2(connection, "digest", -1, flags, nullptr, nullptr, collect, finish, nullptr);
  sqlite3_create_function_v2(connection, "is_text", -1, flags, nullptr, answer_is_text, nullptr, nullptr, nullptr);
  sqlite3_create_function_v2(connection, "elements", 1, flags, nullptr, answer_elements, nullptr, nullptr, nullptr);
}

}  // namespace attnbench
