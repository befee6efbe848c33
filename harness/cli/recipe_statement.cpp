#include "harness/cli/recipe_statement.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "harness/cli/recipe_selection.hpp"
#include "harness/runner/numbers_function.hpp"

namespace attnbench {

namespace {

Expression expression_of(const DataTable& table, const std::string& key) {
  try {
    return Expression(table.text(key));
  } catch (const Misuse& misuse) {
    table.refuse(misuse.what());
  }
}

// A bound: a number, or arithmetic on numbers such as "0.01 * log2(10)".
double bound_of(const DataTable& table, const std::string& key, const DataValue& given) {
  DataTable one = table;
  one.set(key, given);
  if (!given.as<std::string>()) return one.number(key);
  const Expression bound = expression_of(one, key);
  if (!bound.references().empty())
    table.refuse(
        key, fmt::format("names '{}'; expected a number, or arithmetic on numbers", bound.references().front().name));
  return bound.value({}).begin()->second;
}

double bound_of(const DataTable& table, const std::string& key) { return bound_of(table, key, table.at(key)); }

// Exactly one of the rules. at_most with an expression leaves the bound to `bound`.
Rule rule_of(const DataTable& table) {
  using Kind = Rule::Kind;
  static const std::vector<std::pair<std::string, Kind>> kinds{{"below", Kind::below},     {"above", Kind::above},
                                                               {"between", Kind::between}, {"contains", Kind::contains},
                                                               {"at_most", Kind::at_most}, {"report", Kind::report}};
  std::string key, all;
  Rule rule;
  for (const auto& [name, kind] : kinds) {
    all += (all.empty() ? "" : ", ") + name;
    if (!table.find(name)) continue;
    if (!key.empty()) table.refuse(fmt::format("has both '{}' and '{}'; expected one rule: keep one", key, name));
    key = name;
    rule.kind = kind;
  }
  if (key.empty()) table.refuse(fmt::format("a statement without a rule; expected one of {}, grows", all));
  if (table.find("within") && rule.kind != Kind::contains) table.refuse("within", "goes with 'contains'");
  switch (rule.kind) {
    case Kind::between: {
      const auto* bounds = table.at(key).as<DataValue::List>();
      if (bounds && bounds->size() == 2) {
        rule.bound = bound_of(table, key, bounds->front());
        rule.high = bound_of(table, key, bounds->back());
      }
      if (!(rule.bound < rule.high)) table.refuse(key, "needs the lower and the upper bound, such as [0.9, 1.1]");
      break;
    }
    case Kind::contains:
      rule.bound = bound_of(table, key);
      if (!table.find("within"))
        table.refuse("contains", "needs 'within', the half width that an interval may have at most");
      rule.resolution = table.number("within");
      if (!(rule.resolution > 0))
        table.refuse("within", "is not above 0; expected the half width that an interval may have");
      break;
    case Kind::report:
      rule.thresholds = table.numbers(key);
      break;
    case Kind::at_most:
      if (table.at(key).as<std::string>() || table.at(key).as<DataTable>()) break;
      [[fallthrough]];
    default:
      rule.bound = bound_of(table, key);
  }
  const bool regions = rule.kind == Kind::below || rule.kind == Kind::above;
  if (table.find("where") && !regions) table.refuse("where", "goes with 'below' and 'above'");
  if (table.find("equal_within") && !table.find("where")) table.refuse("equal_within", "goes with 'where'");
  if (table.find("any") && !regions) table.refuse("any", "goes with 'below' and 'above'");
  rule.any = table.flag_or("any", false);
  rule.by_region = rule.any || !table.texts("where").empty();
  rule.equal_within = table.number_or("equal_within", 1);
  if (rule.equal_within < 1) table.refuse("equal_within", "is below 1; expected a factor such as 1.1");
  rule.measured_only = table.flag_or("measured_only", false);
  return rule;
}

Ruling ruling_of(const DataTable& table, bool reports) {
  static const std::vector<Ruling> rulings{Ruling::holds, Ruling::refuted, Ruling::not_seen, Ruling::open,
                                           Ruling::depends};
  if (!reports) return rulings[table.one_of("expected", "holds", {"holds", "refuted", "not seen", "open", "depends"})];
  if (table.find("expected"))
    table.refuse("expected", "belongs to a rule that decides, and 'report' decides nothing; leave it out");
  return Ruling::measured;
}

struct Taken {
  std::string name;
  Take take;
};

// How samples become a number.
const Taken& taken_of(const DataTable& table) {
  static const std::vector<Taken> all{{"median", Take::median},
                                      {"mean", Take::mean},
                                      {"mean of logs", Take::mean_of_logs},
                                      {"share", Take::share},
                                      {"exact", Take::exact},
                                      {"median of elements", Take::median},
                                      // as files of an earlier version say for the median
                                      {"median of turns", Take::median}};
  std::vector<std::string> names;
  for (const Taken& one : all) names.push_back(one.name);
  return all[table.one_of("take", "median", names)];
}

// The value from 'value', or from 'metric' and the metric of 'over'.
void read_value(const DataTable& table, DeclaredNumbers& to) {
  if (table.find("value") && table.find("metric")) table.refuse("value", "and 'metric' exclude each other; keep one");
  std::string divisor;
  if (table.find("over")) {
    const DataTable over = table.table("over");
    const bool same_cell = over.keys().size() == 1 && over.find("metric");
    divisor = over.text_or("metric", table.text_or("metric", ""));
    if (!same_cell) {
      to.with["over"] = selection_of(over, {"metric"});
      divisor = "over." + divisor;
    }
  }
  if (table.find("with")) {
    const DataTable with = table.table("with");
    for (const auto& name : with.keys()) {
      if (!is_identifier(name)) with.refuse(name, "is not a name; expected letters, digits and _");
      to.with[name] = selection_of(with.table(name), {});
    }
  }
  if (table.find("beside")) {
    const DataTable beside = table.table("beside");
    for (const auto& name : beside.keys()) to.beside.emplace_back(name, expression_of(beside, name));
  }
  if (!to.code.empty()) {
    for (const char* key : {"value", "metric", "each", "against", "beside"})
      if (table.find(key)) table.refuse(key, "does not go with 'code', which gives the numbers");
    const auto& known = catalogue(NumbersFunction::plural);
    if (!known.has(to.code))
      table.refuse("code", fmt::format("is '{}'{}", to.code, nearest_names(to.code, known.names())));
    return;
  }
  if (table.find("value")) {
    to.value = expression_of(table, "value");
    return;
  }
  to.metric = table.text("metric");
  try {
    to.value = Expression(to.metric + (divisor.empty() ? "" : " / " + divisor));
  } catch (const Misuse& misuse) {
    table.refuse("metric", misuse.what());
  }
}

const std::vector<std::string> keys_of_numbers{"metric", "value", "code",    "take",   "elements", "of",     "over",
                                               "with",   "each",  "against", "beside", "where",    "at_most"};

DeclaredNumbers numbers_of(const DataTable& table, bool curves) {
  DeclaredNumbers all{.name = table.text_or("name", ""), .value = {}, .code = table.text_or("code", "")};
  const Taken& taken = taken_of(table);
  if (table.find("take")) all.take = taken.take;
  all.of_elements = taken.name == "median of elements";
  all.elements = static_cast<Index>(std::clamp(table.number_or("elements", 0), 0.0, 1e6));
  if (table.find("elements") && !all.of_elements) table.refuse("elements", "goes with take = \"median of elements\"");
  if (table.find("of")) all.of = selection_of(table.table("of"), {});
  all.each = table.texts("each");
  all.where = table.texts("where");
  all.against = table.texts("against");
  if (curves) {
    all.metric = table.text_or("metric", "seconds");
    if (all.each.empty() && all.name.empty()) all.each = {"method"};  // a part is one curve
    return all;
  }
  read_value(table, all);
  if (!all.against.empty() && !all.with.contains("over"))
    table.refuse("against", "goes with 'over': columns in which its cells differ");
  if (!table.find("at_most")) return all;
  if (table.at("at_most").as<std::string>()) all.bound = expression_of(table, "at_most");
  if (table.at("at_most").as<DataTable>()) {
    const DataTable bound = table.table("at_most");
    bound.require_known("a bound", {"metric"});
    all.bound = expression_of(bound, "metric");
  }
  if (all.each.empty()) all.each = each_cell;
  return all;
}

const std::vector<std::string> words_of_statement{"text",       "source",    "quotation",  "paraphrase",
                                                  "definition", "threshold", "because",    "expected",
                                                  "for",        "setting",   "conformance"};
const std::vector<std::string> rule_keys{"take",     "any",    "grows",  "below",        "above",         "between",
                                         "contains", "within", "report", "equal_within", "measured_only", "parts"};

// The words and what they compare in one table. Files in JSON have no 'compares'.
DataTable whole_statement(const DataTable& given) {
  std::vector<std::string> of_comparison = keys_of_numbers;
  of_comparison.insert(of_comparison.end(), rule_keys.begin(), rule_keys.end());
  std::vector<std::string> known = words_of_statement;
  if (given.find("compares")) {
    known.emplace_back("compares");
    for (const auto& key : given.keys())
      if (std::find(of_comparison.begin(), of_comparison.end(), key) != of_comparison.end())
        given.refuse(key, "says what is compared; move it into 'compares'");
    given.require_known("a statement", known);
    const DataTable compares = given.table("compares");
    compares.require_known("a comparison", of_comparison);
    DataTable all = given;
    for (const auto& key : compares.keys()) all.set(key, compares.at(key));
    return all;
  }
  known.insert(known.end(), of_comparison.begin(), of_comparison.end());
  DataTable all = given;
  if (given.find("some_below")) {  // of a file in JSON
    all = given.empty_there();
    for (const auto& key : given.keys()) all.set(key == "some_below" ? "below" : key, given.at(key));
    all.set("any", {.content = true, .line = given.find("some_below")->line});
  }
  all.require_known("a statement", known);
  return all;
}

}  // namespace

DeclaredStatement statement_of(const DataTable& given, const RecipeValues& values) {
  const DataTable table = whole_statement(given);
  DeclaredStatement all{.place = table.place(), .statement = {}, .parts = {}};
  if (table.find("grows")) {
    std::vector<std::string> laws;
    for (const GrowthLaw& law : growth_laws()) laws.push_back(law.name);
    all.growth = growth_laws()[table.one_of("grows", "", laws)];
    for (const char* key :
         {"value", "over", "with", "where", "take", "below", "above", "between", "contains", "at_most", "report"})
      if (table.find(key)) table.refuse(key, "does not go with 'grows', which is a rule of its own");
  } else {
    all.rule = rule_of(table);
    all.take = taken_of(table).take;
    if (all.rule.kind == Rule::Kind::at_most && table.find("take") && taken_of(table).name != "median of elements")
      table.refuse("take", "does not go with 'at_most', which judges every number");
  }
  // A part says what differs from the rest of the statement.
  for (const DataTable& several : table.tables("parts"))
    for_each(several, values, ", ", [&](const DataTable& part, const RecipeValues&) {
      std::vector<std::string> of_part = keys_of_numbers;
      of_part.insert(of_part.end(), {"name", "for"});
      part.require_known("a part", of_part);
      DataTable whole = table;
      for (const auto& key : part.keys()) whole.set(key, part.at(key));
      all.parts.push_back(numbers_of(whole, all.growth.has_value()));
      if (part.find("at_most") && !all.parts.back().bound)
        all.parts.back().bound = Expression(fmt::format("{}", part.number("at_most")));
    });
  if (all.parts.empty() && table.find("parts")) table.refuse("parts", "is an empty list; leave it out");
  if (all.parts.empty()) all.parts.push_back(numbers_of(table, all.growth.has_value()));
  all.statement = {.text = table.text("text"),
                   .source = table.text_or("source", ""),
                   .quotation = table.text_or("quotation", ""),
                   .paraphrase = table.text_or("paraphrase", ""),
                   .definition = table.text_or("definition", ""),
                   .threshold = table.text("threshold"),
                   .expected = ruling_of(table, !all.growth && all.rule.kind == Rule::Kind::report),
                   .because = table.text("because"),
                   .setting = table.text_or("setting", ""),
                   .conformance = table.flag_or("conformance", false)};
  if (all.statement.source.empty() != (all.statement.quotation.empty() && all.statement.paraphrase.empty()))
    table.refuse(
        "a source and its words belong together: expected 'source' with 'quotation' (verbatim) or 'paraphrase', or "
        "none of them for a finding of your own");
  const Ruling impossible = all.statement.setting.empty() ? Ruling::not_seen : Ruling::refuted;
  if (all.statement.expected == impossible)
    table.refuse("expected",
                 fmt::format("is {}; a statement {} 'setting' that fails is {}", to_string(impossible),
                             impossible == Ruling::refuted ? "with" : "without",
                             to_string(impossible == Ruling::refuted ? Ruling::not_seen : Ruling::refuted)));
  if (all.statement.expected == Ruling::depends && !all.rule.by_region)
    table.refuse("expected", "is depends, which needs 'where': the columns whose values may decide otherwise");
  if (!all.statement.setting.empty() && all.statement.source.empty())
    table.refuse("setting", "says how the measurement departs from the source's, and there is no 'source'");
  return all;
}

}  // namespace attnbench
