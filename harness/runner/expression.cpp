#include "harness/runner/expression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <string_view>

#include "harness/errors/error.hpp"
#include "harness/runner/cells_function.hpp"

namespace attnbench {

struct Expression::Node {
  std::string operation;  // an operator or a function; empty: a number or a name
  std::vector<Node> parts = {};
  double number = 0;
  std::optional<Reference> reference = {};
};

namespace {

using Node = Expression::Node;
using Reference = Expression::Reference;

constexpr size_t longest = 1000, most_levels = 50;

double divided(double a, double b) { return a == 0 && b == 0 ? 1 : a / b; }

const std::map<std::string, double (*)(double)> of_one{
    {"abs", [](double x) { return std::abs(x); }},   {"sqrt", [](double x) { return std::sqrt(x); }},
    {"cbrt", [](double x) { return std::cbrt(x); }}, {"log", [](double x) { return std::log(x); }},
    {"log2", [](double x) { return std::log2(x); }}, {"exp", [](double x) { return std::exp(x); }}};
const std::map<std::string, double (*)(double, double)> of_two{
    {"+", [](double a, double b) { return a + b; }},
    {"-", [](double a, double b) { return a - b; }},
    {"*", [](double a, double b) { return a * b; }},
    {"/", divided},
    {"^", [](double a, double b) { return std::pow(a, b); }},
    {"mod", [](double a, double b) { return std::fmod(a, b); }},
    {"min", [](double a, double b) { return std::min(a, b); }},
    {"max", [](double a, double b) { return std::max(a, b); }}};
const Catalogue& over_cells() { return Registry<CellsFunction>::instance(); }

std::vector<std::string> functions() {
  std::vector<std::string> all = over_cells().names();
  for (const char* of_array : {"at", "elements"}) all.emplace_back(of_array);
  for (const auto& [name, function] : of_one) all.push_back(name);
  for (const auto& [name, function] : of_two)
    if (std::isalpha(static_cast<unsigned char>(name[0]))) all.push_back(name);
  return all;
}

// Recursive descent: each function reads what binds tighter than the one that calls it.
class Parser {
 public:
  Parser(const std::string& text, std::vector<Reference>& references) : text_(text), references_(references) {
    if (text.size() > longest) refuse(fmt::format("{} characters; expected at most {}", text.size(), longest));
  }

  Node all() {
    Node node = sum();
    if (place_ < text_.size()) refuse(fmt::format("given '{}'; expected an operator or the end", text_[place_]));
    return node;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Misuse(fmt::format("\"{}\", character {}: {}", text_, place_ + 1, why));
  }

  void skip_spaces() {
    while (place_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[place_]))) ++place_;
  }
  bool take(char c) {
    skip_spaces();
    if (place_ == text_.size() || text_[place_] != c) return false;
    ++place_;
    return true;
  }
  void require(char c) {
    if (!take(c)) refuse(fmt::format("expected '{}'", c));
  }

  Node chain(Node (Parser::*part)(), std::string_view operators) {
    Node left = (this->*part)();
    for (;;) {
      const auto found = std::find_if(operators.begin(), operators.end(), [&](char c) { return take(c); });
      if (found == operators.end()) return left;
      left = Node{std::string(1, *found), {std::move(left), (this->*part)()}};
    }
  }
  Node sum() { return chain(&Parser::product, "+-"); }
  Node product() { return chain(&Parser::signed_power, "*/"); }

  // -x^2 is -(x^2), and x^-1 has a sign of its own.
  Node signed_power() {
    if (take('-')) return Node{"-", {Node{}, signed_power()}};
    Node base = primary();
    return take('^') ? Node{"^", {std::move(base), signed_power()}} : base;
  }

  Node primary() {
    skip_spaces();
    if (++level_ > most_levels) refuse(fmt::format("more than {} brackets in each other", most_levels));
    Node node = take('(') ? in_brackets() : place_ < text_.size() && starts_name() ? named() : number();
    --level_;
    return node;
  }
  Node in_brackets() {
    Node node = sum();
    require(')');
    return node;
  }
  bool starts_name() const { return std::isalpha(static_cast<unsigned char>(text_[place_])) || text_[place_] == '_'; }

  Node number() {
    double value = 0;
    const auto [end, error] = std::from_chars(text_.data() + place_, text_.data() + text_.size(), value);
    if (error != std::errc() || !std::isfinite(value)) refuse("expected a number, a name or '('");
    place_ = static_cast<size_t>(end - text_.data());
    return Node{"", {}, value};
  }

  std::string word() {
    const size_t begin = place_;
    while (place_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[place_])) || text_[place_] == '_'))
      ++place_;
    return text_.substr(begin, place_ - begin);
  }

  Node named() {
    const size_t begin = place_;
    std::string name = word();
    if (take('(')) return call(name, begin);
    return reference(std::move(name));
  }

  Node reference(std::string name) {
    Reference found{"", std::move(name), over_cells_};
    if (take('.')) {
      found.selection = std::move(found.name);
      found.name = word();
      if (found.name.empty()) refuse("expected the name of a metric");
    }
    references_.push_back(found);
    return Node{"", {}, 0, std::move(found)};
  }

  std::string name_of_metric(const std::string& function) {
    skip_spaces();
    std::string name = place_ < text_.size() && starts_name() ? word() : "";
    if (name.empty()) refuse(fmt::format("{} takes the name of a metric", function));
    return name;
  }

  Node element() {
    Node node = reference(name_of_metric("at"));
    require(',');
    skip_spaces();
    long index = 0;
    const auto [end, error] = std::from_chars(text_.data() + place_, text_.data() + text_.size(), index);
    if (error != std::errc() || index < -1) refuse("expected the place in the array, from 0, or -1 for the last");
    place_ = static_cast<size_t>(end - text_.data());
    require(')');
    node.reference->element = references_.back().element = index;
    return node;
  }

  Node elements() {
    if (!over_cells_) refuse("elements outside of a function over cells, such as least(elements(metric))");
    Node node = reference(name_of_metric("elements"));
    require(')');
    node.reference->elements = references_.back().elements = true;
    return node;
  }

  Node over(const std::string& name) {
    if (over_cells_) refuse(fmt::format("{} within a function over cells", name));
    over_cells_ = true;
    Node node{name};
    for (size_t i = 0; i < find<CellsFunction>(name).arguments; ++i) {
      if (i > 0) require(',');
      node.parts.push_back(sum());
    }
    require(')');
    over_cells_ = false;
    return node;
  }

  Node call(const std::string& name, size_t begin) {
    if (over_cells().has(name)) return over(name);
    if (name == "at") return element();
    if (name == "elements") return elements();
    if (!of_one.contains(name) && !of_two.contains(name)) {
      place_ = begin;
      refuse(fmt::format("there is no function '{}'{}", name, nearest_names(name, functions())));
    }
    Node node{name, {sum()}};
    if (of_two.contains(name)) {
      require(',');
      node.parts.push_back(sum());
    }
    require(')');
    return node;
  }

  const std::string& text_;
  std::vector<Reference>& references_;
  size_t place_ = 0, level_ = 0;
  bool over_cells_ = false;  // within a function over cells
};

// Calls with the numbers of each replicate that all have. One number goes with every replicate.
template <class Function>
Samples for_each_replicate(const std::vector<Samples>& all, Function&& function) {
  const auto most =
      std::max_element(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  Samples results;
  if (std::any_of(all.begin(), all.end(), [](const Samples& one) { return one.empty(); })) return results;
  for (const auto& [replicate, ignored] : *most) {
    std::vector<double> numbers;
    for (const Samples& one : all)
      if (const auto found = one.size() == 1 ? one.begin() : one.find(replicate); found != one.end())
        numbers.push_back(found->second);
    if (numbers.size() == all.size()) results[replicate] = function(numbers);
  }
  return results;
}

size_t cells_of(const Node& node, const Expression::Read& read) {
  size_t most = node.reference ? read(*node.reference).size() : 1;
  for (const Node& part : node.parts) most = std::max(most, cells_of(part, read));
  return most;
}

Samples value_of(const Node& node, const Expression::Read& read);

// Each argument is evaluated in cell after cell; a selection of one cell goes with all.
Samples over_cells(const Node& node, const Expression::Read& read) {
  std::vector<Samples> all;
  std::vector<size_t> counts;
  for (const Node& part : node.parts) {
    counts.push_back(cells_of(part, read));
    if (counts.back() == 0) return {};  // no elements, as where the cell failed
    for (size_t i = 0; i < counts.back(); ++i)
      all.push_back(value_of(part, [&](const Reference& reference) {
        std::vector<Samples> cells = read(reference);
        return std::vector<Samples>{cells.size() == 1 ? cells[0] : cells.at(i)};
      }));
  }
  const auto& function = find<CellsFunction>(node.operation);
  Samples results = for_each_replicate(all, [&](const std::vector<double>& numbers) {
    CellsFunction::Columns columns;
    auto place = numbers.begin();
    for (const size_t count : counts) {
      columns.emplace_back(place, place + static_cast<std::ptrdiff_t>(count));
      place += static_cast<std::ptrdiff_t>(count);
    }
    return function.value(columns);
  });
  std::erase_if(results, [](const auto& one) { return std::isnan(one.second); });
  return results;
}

Samples value_of(const Node& node, const Expression::Read& read) {
  if (node.reference) return read(*node.reference).at(0);
  if (node.operation.empty()) return {{0, node.number}};
  if (over_cells().has(node.operation)) return over_cells(node, read);
  std::vector<Samples> parts;
  for (const Node& part : node.parts) parts.push_back(value_of(part, read));
  return for_each_replicate(parts, [&](const std::vector<double>& numbers) {
    return numbers.size() == 1 ? of_one.at(node.operation)(numbers[0])
                               : of_two.at(node.operation)(numbers[0], numbers[1]);
  });
}

}  // namespace

Expression::Expression(const std::string& text)
    : text_(text), root_(std::make_shared<Node>(Parser(text, references_).all())) {}

Samples Expression::value(const Read& read) const { return value_of(*root_, read); }

}  // namespace attnbench
