set(MINIQAT_BUNDLE 10 CACHE STRING "How many source files are compiled at once: more for a whole build, fewer for changes")

# Compiles the sources of `target` several at once (CMake's unity build): most of the time goes into the headers that they
# share and into the templates that each would instantiate again. So names in unnamed namespaces are unique within a
# folder. Files with loops for several instruction sets (core/kernels/per_instruction_set.h) take long by themselves and
# stay apart.
function(miniqat_compile_in_bundles target)
  if(MINIQAT_BUNDLE EQUAL 1)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${MINIQAT_BUNDLE})
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    file(STRINGS ${source} loops REGEX "^#define MINIQAT_LOOPS" LIMIT_COUNT 1)
    if(loops)
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
endfunction()
