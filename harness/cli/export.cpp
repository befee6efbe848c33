// attnbench export: writes the measurements of a results file as a table.
#include "harness/store/export.hpp"

#include <fmt/format.h>

#include <iostream>

#include "harness/cli/command.hpp"
#include "harness/cli/terminal.hpp"
#include "harness/store/store.hpp"

namespace attnbench::export_command {
namespace {

std::string columns() {
  std::string text = bold("columns") + "\n";
  const auto add = [&](std::string_view name, std::string_view type, const std::string& meaning) {
    text += fmt::format("  {:<16}{:<9}{}\n", name, type, wrapped(meaning, terminal_width(), 27, 27));
  };
  for (const auto& [name, type, meaning] : cell_columns) add(name, type, std::string(meaning));
  add("m, window, ...", "any", "one column for each parameter of method, input and experiment; empty without one");
  for (const auto& [name, type, meaning] : row_columns)
    add(name, type, std::string(meaning) + (name == "index" ? " (--arrays)" : ""));
  for (const auto& [name, type, meaning] : clock_columns) add(name, type, std::string(meaning) + " (--clock)");
  return text + "A timing has samples, one a block of turns: the table has their median, and with --arrays all.\n";
}

int run(const std::vector<std::string>& arguments) {
  std::string file, format;
  std::vector<std::string> where;
  ExportRequest request;
  options::options_description visible("options");
  visible.add_options()("file", options::value(&file), "results file")(
      "metric", options::value(&request.metrics)->value_name("NAME"), "only this metric (repeatable)")(
      "where", options::value(&where)->value_name("NAME=VALUE"),
      "only these cells: a column or a parameter and its value; the same name again allows another value (repeatable)")(
      "wide", options::bool_switch(&request.wide), "one row a replicate, with a column for each metric")(
      "arrays", options::bool_switch(&request.arrays), "also arrays (spectra, samples, rows), one row an element")(
      "clock", options::bool_switch(&request.clock),
      "also the columns that differ between equal runs; without them equal results give equal text")(
      "format", options::value(&format)->value_name("FORMAT")->default_value("csv"), "csv or json");
  if (!parse_arguments("export", visible, arguments, {{"file", 1}})) return 0;
  if (file.empty())
    throw Misuse("export: no results file given; expected one, such as: attnbench export results/attnbench.db");
  if (format != "csv" && format != "json") throw Misuse("--format " + format + ": expected csv or json");
  if (format == "json") request.format = ExportRequest::Format::json;
  for (const auto& condition : where) request.where.push_back(parse_condition(condition));
  const Store store = Store::open_existing(file);
  store.export_table(std::cout, request);
  return 0;
}

const bool registered = add(CommandEntry{
    .text = {.name = "export",
             .summary = "the numbers of a results file as a table on standard output",
             .formula = "export FILE [--metric NAME...] [--where NAME=VALUE...] [--wide] [--arrays] [OPTIONS]"},
    .run = run,
    .examples = {"export results/attnbench.db > results.csv",
                 "export results/attnbench.db --metric relative_output_error --where method=performer --where m=64",
                 "export results/attnbench.db --wide --where experiment=speed"},
    .details = columns});

}  // namespace
}  // namespace attnbench::export_command
