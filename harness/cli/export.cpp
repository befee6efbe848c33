// attnbench export: writes every measurement as a tidy long table.
#include <fmt/format.h>

#include <iostream>

#include "harness/cli/command.hpp"
#include "harness/store/export_columns.hpp"
#include "harness/store/store.hpp"

namespace attnbench::export_command {
namespace {

int run(const std::vector<std::string>& arguments) {
  std::string file, format;
  bool no_clock = false;
  options::options_description visible("options");
  visible.add_options()("file", options::value(&file), "results file")(
      "format", options::value(&format)->default_value("csv"), "csv or json")(
      "no-clock", options::bool_switch(&no_clock),
      "leave out the columns that differ between equal runs, so that equal results give equal text");
  if (!parse_arguments("export", visible, arguments, {{"file", 1}})) {
    std::cout << "\ncolumns\n";
    for (const auto& column : export_columns)
      std::cout << fmt::format("  {:<16}{:<9}{}{}\n", column.name, column.type, column.meaning,
                               column.clock ? " (clock)" : "");
    return 0;
  }
  if (file.empty()) throw Misuse("export: no results file given");
  if (format != "csv" && format != "json") throw Misuse("--format " + format + ": expected csv or json");
  const Store store = Store::open_existing(file);
  if (format == "csv")
    store.export_csv(std::cout, !no_clock);
  else
    store.export_json(std::cout, !no_clock);
  std::cout.flush();
  if (!std::cout) throw std::runtime_error("export: standard output could not be written");
  return 0;
}

const bool registered =
    add(CommandEntry{.text = {.name = "export",
                              .summary = "every measurement as a tidy long table on standard output",
                              .formula = "export FILE [--format csv|json] [--no-clock]"},
                     .run = run});

}  // namespace
}  // namespace attnbench::export_command
