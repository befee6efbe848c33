#include "harness/cli/recipe_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace attnbench {

namespace {

constexpr std::array<const char*, 3> size_names{"smoke", "quick", "full"};
// A value of 'sizes' is inserted wherever a text names it, and 'for' multiplies the values of its lists.
constexpr size_t longest_value = 1'000, most_combinations = 100'000;

bool is_name_in_braces(const DataValue& value) {
  const auto* text = value.as<std::string>();
  return text && text->size() > 2 && text->front() == '{' && text->back() == '}' &&
         is_identifier(std::string_view(*text).substr(1, text->size() - 2));
}

void require_insertable(const DataTable& table, const std::string& name, const DataValue& value) {
  const auto* list = value.as<DataValue::List>();
  const auto plain = [](const DataValue& v) { return !v.as<DataValue::List>() && !v.as<DataTable>(); };
  if (!is_identifier(name) || name == "part") table.refuse(name, "is not a name; expected letters, digits and _");
  if (list ? !std::all_of(list->begin(), list->end(), plain) : !plain(value))
    table.refuse(fmt::format("'{}' is {}; expected a number, a string or a list of these", name, value.kind()));
  if (value.text(", ").size() > longest_value)
    table.refuse(fmt::format("'{}' is longer than {} characters", name, longest_value));
}

// Puts the values of one size in place of their names in braces, in a part of the file.
class Inserting {
 public:
  Inserting(const RecipeValues& values, std::string separator) : values_(values), separator_(std::move(separator)) {}

  DataTable operator()(const DataTable& table) const {
    DataTable all = table;
    for (const std::string& key : table.keys()) {
      const bool of_others = key == "quotation" || key == "source" || key == "paraphrase";  // braces are theirs
      if (key != "for" && !(of_others && !is_name_in_braces(*table.find(key))))
        all.set(key, inserted(table, key, *table.find(key)));
    }
    return all;
  }

 private:
  DataValue inserted(const DataTable& table, const std::string& key, const DataValue& value) const {
    DataValue result = value;
    if (const auto* text = value.as<std::string>()) {
      result.content = of_text(table, key, *text);
    } else if (const auto* list = value.as<DataValue::List>()) {
      DataValue::List all;
      for (const DataValue& element : *list) {
        const DataValue one = inserted(table, key, element);
        const auto* several = element.as<std::string>() ? one.as<DataValue::List>() : nullptr;
        if (several)  // a list named in a list adds its elements
          all.insert(all.end(), several->begin(), several->end());
        else
          all.push_back(one);
      }
      result.content = std::move(all);
    } else if (const auto* inner = value.as<DataTable>(); inner && !inner->find("for")) {  // that one has more names
      result.content = (*this)(*inner);
    }
    return result;
  }

  // A text that is one name alone becomes the value itself, a number or a list.
  decltype(DataValue::content) of_text(const DataTable& table, const std::string& key, const std::string& text) const {
    std::string all;
    for (size_t place = 0; place < text.size();) {
      const size_t open = text.find('{', place),
                   close = open == text.npos ? text.npos : text.find_first_of("{}", open + 1);
      const bool braces = close != text.npos && text[close] == '}';
      const std::string name = braces ? text.substr(open + 1, close - open - 1) : "";
      if (!is_identifier(name)) {
        const size_t end = open == text.npos ? text.size() : open + 1;
        all += text.substr(place, end - place);
        place = end;
        continue;
      }
      if (name == "part") {  // of a panel's title, for declare()
        all += text.substr(place, close + 1 - place);
        place = close + 1;
        continue;
      }
      const auto value = values_.find(name);
      if (value == values_.end()) {
        std::vector<std::string> names;
        for (const auto& [known, ignored] : values_) names.push_back(known);
        table.refuse(key, fmt::format("names {{{}}}, which 'sizes' does not have{}", name, nearest_names(name, names)));
      }
      if (open == 0 && close + 1 == text.size()) return value->second.content;
      all += text.substr(place, open - place) + value->second.text(separator_);
      place = close + 1;
    }
    return all;
  }

  const RecipeValues& values_;
  std::string separator_;
};

}  // namespace

bool is_identifier(std::string_view text) {
  return !text.empty() && !std::isdigit(static_cast<unsigned char>(text[0])) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
}

RecipeValues values_at(const DataTable& file, RecipeSize size) {
  // 32 blocks give a median an interval down to an error rate of 2^-31; at 1e-5 the interval excludes four disturbed
  // blocks at each end. The short turns of quick sizes scatter more: 48 blocks exclude ten.
  static const std::array<const char*, 3> turns{"blocks=2,turn=1", "blocks=48,turn=1", "blocks=32,turn=10"};
  RecipeValues values{{"turns", {.content = std::string(turns[static_cast<size_t>(size)])}}};
  if (!file.find("sizes")) return values;
  const DataTable sizes = file.table("sizes");
  const auto keep = [&](const DataTable& table, const std::string& name, const DataValue& value) {
    DataTable one = table.empty_there();
    one.set(name, value);
    const DataValue inserted = Inserting(values, ", ")(one).at(name);
    require_insertable(table, name, inserted);
    values.insert_or_assign(name, inserted);
  };
  for (const std::string& name : sizes.keys()) {
    if (const DataValue& same = sizes.at(name); !same.as<DataTable>()) {
      keep(sizes, name, same);
      continue;
    }
    const DataTable one = sizes.table(name);
    one.require_known("a size", {size_names.begin(), size_names.end()});
    one.at("smoke");
    one.at("quick");
    const bool as_quick = size == RecipeSize::full && !one.find("full");
    const DataValue& value = one.at(as_quick ? "quick" : size_names[static_cast<size_t>(size)]);
    keep(one, name, value);
  }
  return values;
}

void for_each(const DataTable& table, const RecipeValues& values, const std::string& separator,
              const std::function<void(const DataTable&, const RecipeValues&)>& use) {
  std::vector<RecipeValues> all{values};
  const DataValue* given = table.find("for");
  const auto inserted = [&](const DataTable& one) { return Inserting(values, separator)(one); };
  if (const auto* lists = given ? given->as<DataTable>() : nullptr) {
    for (const auto& name : lists->keys()) {
      const DataValue listed = inserted(*lists).at(name);
      // A size may be a list at one size and a value at another, or an empty list, which makes nothing at that size.
      const bool named = lists->at(name).as<std::string>() != nullptr;
      const DataValue::List single{listed};
      const auto* list = named && !listed.as<DataValue::List>() ? &single : listed.as<DataValue::List>();
      if (!list || (list->empty() && !named))
        lists->refuse(name, "is no list; expected the values that it takes, such as [4, 8]");
      std::vector<RecipeValues> longer;
      for (const RecipeValues& before : all)
        for (const DataValue& value : *list) {
          require_insertable(*lists, name, value);
          longer.push_back(before);
          longer.back().insert_or_assign(name, value);
        }
      if (longer.size() > most_combinations) lists->refuse(name, "makes too many combinations");
      all = std::move(longer);
    }
  } else if (given) {
    all.clear();
    for (const DataTable& with_names : table.tables("for")) {
      const DataTable one = inserted(with_names);
      all.push_back(values);
      for (const auto& name : one.keys()) {
        require_insertable(one, name, one.at(name));
        all.back().insert_or_assign(name, one.at(name));
      }
    }
    if (all.empty()) table.refuse("for", "is empty");
  }
  for (const RecipeValues& one : all) use(Inserting(one, separator)(table), one);
}

}  // namespace attnbench
