# libattnbench.so: everything but main() and the Python module.

# Object libraries: a static one would drop the files that only register something. Of the harness there are two: what
# computes numbers, and what runs cells, stores and prints.
set(computes "/harness/(core|errors|experiment|inputs|linalg|machine|measures|random|statistics|theory|timing)/")
file(GLOB_RECURSE attnbench_harness CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/harness/*.cpp)
list(REMOVE_ITEM attnbench_harness ${PROJECT_SOURCE_DIR}/harness/cli/main.cpp)
list(FILTER attnbench_harness EXCLUDE REGEX "/harness/python/")  # the extension module
set(attnbench_runs ${attnbench_harness})
list(FILTER attnbench_harness INCLUDE REGEX ${computes})
list(FILTER attnbench_runs EXCLUDE REGEX ${computes})
file(GLOB_RECURSE attnbench_approximations CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/approximations/*.cpp)
file(GLOB_RECURSE attnbench_experiments CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/experiments/*.cpp)
file(GLOB_RECURSE attnbench_recipes CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/experiments/commands/*.cpp
     ${PROJECT_SOURCE_DIR}/experiments/recipes/*.cpp)
list(REMOVE_ITEM attnbench_experiments ${attnbench_recipes})
set(parts attnbench_harness attnbench_runs attnbench_approximations attnbench_experiments attnbench_recipes)
foreach(part IN LISTS parts)
  add_library(${part} OBJECT ${${part}})
  target_link_libraries(${part} PUBLIC attnbench_options)
endforeach()
attnbench_precompile(attnbench_harness)
attnbench_precompile(attnbench_approximations harness/core/approximation.hpp)
attnbench_precompile(attnbench_experiments harness/experiment/experiment.hpp)
attnbench_precompile(attnbench_recipes harness/runner/recipe.hpp)
attnbench_precompile(attnbench_runs <SQLiteCpp/SQLiteCpp.h> <boost/program_options.hpp> <nlohmann/json.hpp>)
attnbench_compile_together(attnbench_harness 8 1500)
attnbench_compile_together(attnbench_approximations 8 1500)
attnbench_compile_together(attnbench_experiments 8 1500)
attnbench_compile_together(attnbench_recipes 8 1500)
attnbench_compile_together(attnbench_runs 8 1500)
# The last bit of some sums of this file depends on what the compiler sees beside it: 7 of 23,104 numbers of the smoke
# reproduction. Those of all other files do not.
set_source_files_properties(${PROJECT_SOURCE_DIR}/approximations/sparse/top_k.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
# clang refuses to instantiate a class after single members of it, which linear_decoder.cpp and linear_gradients.cpp do.
set_source_files_properties(${PROJECT_SOURCE_DIR}/approximations/linear/linear_attention.cpp PROPERTIES
  SKIP_UNITY_BUILD_INCLUSION ON)
# They ask, judge and draw; what they ask for is compiled elsewhere.
foreach(part attnbench_runs attnbench_recipes)
  target_compile_options(${part} PRIVATE $<$<CONFIG:Release>:-O1>)
endforeach()
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
target_link_libraries(attnbench_library PRIVATE ${parts} ${CMAKE_DL_LIBS} PUBLIC attnbench_options)
