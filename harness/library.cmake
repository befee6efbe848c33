# libattnbench.so: everything but main() and the Python module.

# Object libraries: a static one would drop the files that only register something.
#   numbers       all that computes numbers, such as methods
#   experiments   experiments, which call it
#   runs          runs cells, stores and prints
#   recipes       recipes and commands
file(GLOB_RECURSE attnbench_runs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/harness/*.cpp)
list(REMOVE_ITEM attnbench_runs ${PROJECT_SOURCE_DIR}/harness/cli/main.cpp)
list(FILTER attnbench_runs EXCLUDE REGEX "/harness/python/")  # the extension module
set(attnbench_numbers ${attnbench_runs})
list(FILTER attnbench_numbers INCLUDE REGEX
     "/harness/(core|errors|experiment|inputs|linalg|machine|measures|random|statistics|theory|timing)/")
list(REMOVE_ITEM attnbench_runs ${attnbench_numbers})
file(GLOB_RECURSE approximations CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/approximations/*.cpp)
file(GLOB_RECURSE attnbench_experiments CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/experiments/*.cpp)
file(GLOB_RECURSE attnbench_recipes CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/experiments/commands/*.cpp
     ${PROJECT_SOURCE_DIR}/experiments/recipes/*.cpp)
# At -O1 the fit of gaussian_queries.cpp ends elsewhere: its kurtosis differs by 4e-10.
list(REMOVE_ITEM attnbench_experiments ${attnbench_recipes} ${PROJECT_SOURCE_DIR}/experiments/gaussian_queries.cpp)
list(APPEND attnbench_numbers ${approximations} ${PROJECT_SOURCE_DIR}/experiments/gaussian_queries.cpp)
set(parts attnbench_numbers attnbench_experiments attnbench_runs attnbench_recipes)
foreach(part IN LISTS parts)
  add_library(${part} OBJECT ${${part}})
  target_link_libraries(${part} PUBLIC attnbench_options)
  attnbench_compile_together(${part} 8 1500)
endforeach()
# Code that runs short is compiled at -O1, experiments in 0.6 of the time. They have fused multiply-adds as well, which gcc
# counts among the expensive optimisations.
foreach(part attnbench_experiments attnbench_runs attnbench_recipes)
  target_compile_options(${part} PRIVATE $<$<CONFIG:Release>:-O1>)
endforeach()
target_compile_options(attnbench_experiments PRIVATE
  $<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-fexpensive-optimizations>)
# The level of a precompiled header is that of all that read it.
attnbench_precompile(attnbench_numbers harness/core/approximation.hpp)
attnbench_precompile(attnbench_experiments harness/experiment/experiment.hpp)
attnbench_precompile(attnbench_runs <SQLiteCpp/SQLiteCpp.h> <boost/program_options.hpp> <nlohmann/json.hpp>)
attnbench_precompile(attnbench_recipes harness/runner/recipe.hpp)
# The last bit of some sums of this file depends on what the compiler sees beside it: 7 of 23,104 numbers of the smoke
# reproduction. Those of all other files do not.
set_source_files_properties(${PROJECT_SOURCE_DIR}/approximations/sparse/top_k.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
# clang refuses to instantiate a class after single members of it, which linear_decoder.cpp and linear_gradients.cpp do.
set_source_files_properties(${PROJECT_SOURCE_DIR}/approximations/linear/linear_attention.cpp PROPERTIES
  SKIP_UNITY_BUILD_INCLUSION ON)
# gcc tunes for AMD's Zen by breaking some sums of products into multiplications and additions and leaving others fused,
# by the shape of a tile: an entry of a product would then depend, in its last bit, on how many rows the product has.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set_source_files_properties(harness/linalg/products.cpp harness/linalg/gathered.cpp PROPERTIES
    COMPILE_OPTIONS --param=avoid-fma-max-bits=0 SKIP_PRECOMPILE_HEADERS ON)
endif()
# Of the file that needs them alone: the others compile alike in every checkout, so that checkouts share a compiler cache.
set_source_files_properties(harness/core/installed.cpp PROPERTIES
  COMPILE_DEFINITIONS "ATTNBENCH_SOURCE_TREE=\"${PROJECT_SOURCE_DIR}\";ATTNBENCH_PYTHON=\"${ATTNBENCH_PYTHON}\"")

# Commit, flags and source hashes: written anew at every build, touched only when they change.
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
get_target_property(options attnbench_options INTERFACE_COMPILE_OPTIONS)
string(REPLACE ";" " " options "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}} ${options}")
set(build_facts ${PROJECT_BINARY_DIR}/build_facts.cpp)
add_custom_target(build_facts BYPRODUCTS ${build_facts} ${PROJECT_BINARY_DIR}/attnbenchHeaders.cmake COMMAND ${CMAKE_COMMAND}
  -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DOUTPUT=${build_facts} -DVERSION=${PROJECT_VERSION}
  "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}" "-DFLAGS=${options}" -DBUILD_TYPE=${CMAKE_BUILD_TYPE}
  -P ${PROJECT_SOURCE_DIR}/harness/store/build_facts.cmake VERBATIM)
add_library(attnbench_build_facts OBJECT ${build_facts})
target_link_libraries(attnbench_build_facts PUBLIC attnbench_options)
add_dependencies(attnbench_build_facts build_facts)

list(APPEND parts attnbench_build_facts)
# One library, which the program, plugins and the Python module share: a registry is there once.
add_library(attnbench_library SHARED)
set_target_properties(attnbench_library PROPERTIES OUTPUT_NAME attnbench)
# Calls stay within the library: otherwise it would run the copies of inline functions that a plugin or a test was compiled
# with. Data is shared: the address of an inline constant is the same everywhere (gcc sees to that by itself, clang does
# not). The facts of the build are replaceable, for tests/store/stale_cells_test.py. Results files say by the identifier
# which build wrote them.
set(replaceable ${PROJECT_BINARY_DIR}/replaceable.txt)
file(WRITE ${replaceable} "{ extern \"C++\" { attnbench::build_facts*; attnbench::sources[*; }; };\n")
target_link_options(attnbench_library PRIVATE -Wl,-Bsymbolic-functions -Wl,--dynamic-list-data
                    -Wl,--dynamic-list=${replaceable} -Wl,--build-id=sha1)
target_link_libraries(attnbench_library PRIVATE ${parts} ${CMAKE_DL_LIBS} PUBLIC attnbench_options)
