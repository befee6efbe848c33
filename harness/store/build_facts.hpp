// Facts that are known when the program is built. build_facts.cmake writes their definitions to build_facts.cpp in the
// build folder, so only that file is recompiled when the commit changes.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace attnbench {

struct BuildFacts {
  std::string commit;  // empty without git
  bool clean = false;  // no change and no new file since that commit; false without git
  std::string compiler, flags, build_type;
  std::string headers;  // hash of all headers, and the version: a plugin compiled with other headers cannot be loaded
};
const BuildFacts& build_facts();

struct SourceFile {
  std::string hash;                   // SHA-256, hexadecimal
  std::vector<std::string> includes;  // of #include "...", as written
};
// Keyed by the path relative to the project's root, as includes are written.
using Sources = std::map<std::string, SourceFile>;
// Every source file under harness/, approximations/ and experiments/.
const Sources& sources();

}  // namespace attnbench
