set(MINIQAT_BUNDLE 10 CACHE STRING "How many source files are compiled at once: more for a whole build, fewer for changes")

# Headers that bring the op interface (core/graph/op.h) with them.
set(MINIQAT_OP_HEADERS "core/graph/(op|op_interfaces)|core/engine/(plan/plan|plan/passes|training_plan|sweep|sharded_steps)|\
layers/chain/(chain|chain_fusion)|layers/(convolution|unary|view)_op|bench/judge/exact_.*|tests/core/observer_op|tests/layers/op_runner|\
tests/quantize/quantizer_steps")

# Compiles the sources of `target` several at once (CMake's unity build): most of the time goes into the headers that they
# share and into the templates that each would instantiate again. So names in unnamed namespaces are unique within a
# folder. Files with loops for several instruction sets (core/kernels/per_instruction_set.h) take long by themselves and
# stay apart. Files that know the op interface are compiled without those that do not: a change of it compiles few files.
function(miniqat_compile_in_bundles target)
  if(MINIQAT_BUNDLE EQUAL 1)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  set(count_ops 0)
  set(count_others 0)
  foreach(source ${sources})
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE path)
    file(STRINGS ${path} loops REGEX "^#define MINIQAT_LOOPS" LIMIT_COUNT 1)
    if(loops)
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
      continue()
    endif()
    file(STRINGS ${path} knows_ops REGEX "^#include \"(${MINIQAT_OP_HEADERS})\\.h\"" LIMIT_COUNT 1)
    set(group others)
    if(knows_ops)
      set(group ops)
    endif()
    math(EXPR bundle "${count_${group}} / ${MINIQAT_BUNDLE}")
    math(EXPR count_${group} "${count_${group}} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group}_${bundle})
  endforeach()
endfunction()
