# Writes OUTPUT (build_facts.cpp), the definitions of build_facts.hpp, and attnbenchHeaders.cmake beside it. The build
# runs it in script mode every time:
#   cmake -DSOURCE_DIR=... -DOUTPUT=... -DVERSION=... -DCOMPILER=... -DFLAGS=... -DBUILD_TYPE=... -P build_facts.cmake
# Needs neither git nor a repository. Rewrites OUTPUT only when its content changes, so that nothing is rebuilt
# needlessly.
cmake_minimum_required(VERSION 3.20)

foreach(name SOURCE_DIR OUTPUT VERSION COMPILER FLAGS BUILD_TYPE)
  if(NOT DEFINED ${name})
    message(FATAL_ERROR "${name} is not given; expected -D${name}=... before -P")
  endif()
endforeach()
get_filename_component(SOURCE_DIR "${SOURCE_DIR}" REALPATH)

# --no-optional-locks: a status that refreshes the index would disturb a git command that the user runs at the same
# time.
function(git output)
  execute_process(COMMAND git --no-optional-locks ${ARGN} WORKING_DIRECTORY "${SOURCE_DIR}" RESULT_VARIABLE failed
                  OUTPUT_VARIABLE text ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed)
    set(text "")
  endif()
  set(${output} "${text}" PARENT_SCOPE)
endfunction()

# A tarball unpacked inside another repository must not report that repository's commit.
set(commit "")
set(clean false)
git(top rev-parse --show-toplevel)
if(top STREQUAL SOURCE_DIR)
  git(commit rev-parse --verify HEAD)
  git(changes status --porcelain)
  if(commit AND NOT changes)
    set(clean true)
  endif()
endif()

set(sources "")
set(headers "")
foreach(folder harness approximations experiments)
  file(GLOB_RECURSE files RELATIVE "${SOURCE_DIR}" "${SOURCE_DIR}/${folder}/*.cpp" "${SOURCE_DIR}/${folder}/*.hpp")
  list(SORT files)
  foreach(path IN LISTS files)
    file(SHA256 "${SOURCE_DIR}/${path}" hash)
    file(STRINGS "${SOURCE_DIR}/${path}" includes REGEX "^[ \t]*#[ \t]*include[ \t]*\"")
    list(TRANSFORM includes REPLACE "^[^\"]*\"([^\"]*)\".*$" "\\1\\\\n")
    list(JOIN includes "" includes)
    string(APPEND sources "    {\"${path}\", \"${hash}\", \"${includes}\"},\n")
    if(path MATCHES "\\.hpp$")
      string(APPEND headers "${path} ${hash}\n")
    endif()
  endforeach()
endforeach()

string(SHA256 headers "${headers}")
string(SUBSTRING "${headers}" 0 16 headers)
set(headers "${headers} of attnbench ${VERSION}")

set(content "// Written by harness/store/build_facts.cmake.
#include \"harness/store/build_facts.hpp\"

#include <sstream>

namespace attnbench {

const BuildFacts& build_facts() {
  static const BuildFacts facts{
      .commit = \"${commit}\",
      .clean = ${clean},
      .compiler = R\"facts(${COMPILER})facts\",
      .flags = R\"facts(${FLAGS})facts\",
      .build_type = R\"facts(${BUILD_TYPE})facts\",
      .headers = \"${headers}\",
  };
  return facts;
}

// Plain characters: one braced list of strings and vectors is a function that a compiler takes half a minute for.
namespace {
constexpr const char* listed[][3] = {
    // path, hash, includes, each with its end of line
${sources}};
}  // namespace

const Sources& sources() {
  static const Sources all = [] {
    Sources files;
    for (const auto& [path, hash, includes] : listed) {
      SourceFile& file = files[path];
      file.hash = hash;
      std::istringstream lines(includes);
      for (std::string line; std::getline(lines, line);) file.includes.push_back(line);
    }
    return files;
  }();
  return all;
}

}  // namespace attnbench
")

function(write_when_changed file text)
  set(present "")
  if(EXISTS "${file}")
    file(READ "${file}" present)
  endif()
  if(NOT present STREQUAL text)
    file(WRITE "${file}" "${text}")
  endif()
endfunction()
write_when_changed("${OUTPUT}" "${content}")
# For the CMake package that plugins are built with.
get_filename_component(folder "${OUTPUT}" DIRECTORY)
write_when_changed("${folder}/attnbenchHeaders.cmake" "set(attnbench_HEADERS \"${headers}\")\n")
