#include "harness/cli/torch_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/core/torch_place.hpp"
#include "harness/errors/error.hpp"

namespace attnbench {

namespace {

using Named = std::vector<std::pair<std::string, std::string>>;

Named parameters_of(const TorchOptions& given) {
  Named all;
  if (!given.device.empty()) all.emplace_back("device", given.device);
  if (!given.dtype.empty()) all.emplace_back("dtype", given.dtype);
  if (given.compile) all.emplace_back("compile", "true");
  return all;
}

std::string option_of(const std::string& name, const std::string& value) {
  return name == "compile" ? "--compile" : fmt::format("--{} {}", name, value);
}

}  // namespace

void add_torch_options(options::options_description& known, TorchOptions& given) {
  known.add_options()("device", options::value(&given.device)->value_name("DEVICE"),
                      "cpu, cuda or cuda:1: where methods in PyTorch compute [cpu]")(
      "dtype", options::value(&given.dtype)->value_name("TYPE"),
      "float32, float16 or bfloat16, in which methods in PyTorch compute [that of --precision]")(
      "compile", options::bool_switch(&given.compile), "torch.compile for methods in PyTorch");
}

std::vector<std::string> with_torch_options(const std::vector<std::string>& specs, const TorchOptions& given) {
  const Named named = parameters_of(given);
  if (named.empty()) return specs;
  std::vector<std::string> all;
  bool any = false;
  for (const std::string& spec : specs) {
    Params method("methods", spec);
    if (!computes_by_torch(method)) {
      all.push_back(spec);
      continue;
    }
    any = true;
    const Spec typed = parse_spec(spec);
    for (const auto& [name, value] : named) {
      const std::string& parameter = name;
      const auto said = std::find_if(typed.arguments.begin(), typed.arguments.end(),
                                     [&](const auto& argument) { return argument.first == parameter; });
      if (said != typed.arguments.end())
        throw Misuse(fmt::format("{} and {} both say the {}; keep one", option_of(name, value), spec, name));
      method = method.with(name, value);
    }
    all.push_back(method.spec());
  }
  if (!any)
    throw Misuse(
        fmt::format("{}: {} in C++ or NumPy, on the processor; leave it out, or name a class with backend = \"torch\" "
                    "(--plugin mine.py --method mine)",
                    option_of(named[0].first, named[0].second),
                    specs.size() == 1 ? specs[0] + " computes" : fmt::format("{} compute", fmt::join(specs, ", "))));
  return all;
}

}  // namespace attnbench
