# Runs within cpack: copies the libraries that the program needs beside its own, so that the tarball runs where nothing is
# installed. Not those of the C library and the compiler, which every Debian has and which must fit its kernel and loader.
set(prefix ${CPACK_TEMPORARY_INSTALL_DIRECTORY})
file(GLOB modules ${prefix}/lib/attnbench/python/attnbench/*.so)
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${prefix}/bin/attnbench LIBRARIES ${prefix}/lib/attnbench/libattnbench.so
     MODULES ${modules} RESOLVED_DEPENDENCIES_VAR needed UNRESOLVED_DEPENDENCIES_VAR missing
     PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|gcc_s|stdc\\+\\+|attnbench)\\.so")
if(missing)
  message(FATAL_ERROR "not found: ${missing}")
endif()
file(INSTALL ${needed} DESTINATION ${prefix}/lib/attnbench FOLLOW_SYMLINK_CHAIN)
