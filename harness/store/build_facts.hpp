// What is known when the program is built. Defined in the build folder, in build_facts.cpp, which build_facts.cmake
// writes: only that file is compiled again when the commit changes.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace attnbench {

struct BuildFacts {
  std::string commit;  // empty without git
  bool clean = false;  // no change and no new file since that commit; false without git
  std::string compiler, flags, build_type;
  std::string headers;  // hash of all headers: a plugin was compiled with the same ones, or cannot be loaded
};
const BuildFacts& build_facts();

struct SourceFile {
  std::string hash;                   // SHA-256, hexadecimal
  std::vector<std::string> includes;  // of #include "...", as written
};
// By the path relative to the project's root, as includes are written.
using Sources = std::map<std::string, SourceFile>;
// Every source file under harness/, approximations/ and experiments/.
const Sources& sources();

}  // namespace attnbench
