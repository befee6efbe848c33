#include "harness/core/methods_inside.hpp"

namespace attnbench {

std::vector<Params> methods_inside(const Params& method) {
  std::vector<Params> inside;
  for (const Parameter& p : method.declared()) {
    if (p.catalogue != "methods") continue;
    if (p.kind == Parameter::Kind::entry) inside.push_back(method.nested(p.name));
    if (p.kind == Parameter::Kind::specs)
      for (Params& one : method.all_nested(p.name)) inside.push_back(std::move(one));
  }
  return inside;
}

}  // namespace attnbench
