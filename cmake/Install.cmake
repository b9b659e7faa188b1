# What `cmake --install` puts where. Three components: `program` (what runs), `development` (what a program of one's own is
# built with) and `python` (python/CMakeLists.txt). docs/install.md is the page.
include(CMakePackageConfigHelpers)

install(TARGETS miniqat RUNTIME COMPONENT program)
if(TARGET miniqat_mpi)
  install(TARGETS miniqat_mpi LIBRARY DESTINATION ${mpi_folder} COMPONENT program)
endif()
# For `verify`: the scripts that run exported models; npm gets the runtimes themselves.
install(FILES runtimes/.npmrc runtimes/litert.mjs runtimes/onnxruntime.mjs runtimes/package-lock.json runtimes/package.json
  DESTINATION ${runtimes_folder} COMPONENT program)
# For kernels of one's own: `miniqat bench --plugin`.
install(FILES bench/kernels/fake_quant_plugin.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/miniqat/bench/kernels COMPONENT development)

# The libraries, each after those that it needs. A component of find_package(miniqat) is one of them; `options` and `onnx_proto` are
# parts that several need.
set(parts options core openmp_calls layers integer onnx_proto quantize exporters importers optim datasets models distributed training)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/miniqat)
foreach(part ${parts})
  set_target_properties(miniqat_${part} PROPERTIES EXPORT_NAME ${part})
  install(TARGETS miniqat_${part} EXPORT miniqat ARCHIVE COMPONENT development)
endforeach()
install(EXPORT miniqat NAMESPACE miniqat:: FILE miniqat-targets.cmake DESTINATION ${package_folder} COMPONENT development)
configure_package_config_file(cmake/miniqat-config.cmake.in miniqat-config.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/miniqat-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/FindOneDnn.cmake ${PROJECT_BINARY_DIR}/miniqat-config.cmake ${PROJECT_BINARY_DIR}/miniqat-config-version.cmake
  DESTINATION ${package_folder} COMPONENT development)

# A linker wants a library before those that it needs. (The one that defines OpenMP's functions is for who asks for it.)
set(pc_libraries ${parts})
list(REMOVE_ITEM pc_libraries options openmp_calls)
list(REVERSE pc_libraries)
list(TRANSFORM pc_libraries PREPEND -lminiqat_)
list(JOIN pc_libraries " " pc_libraries)
file(RELATIVE_PATH pc_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/miniqat.pc.in miniqat.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/miniqat.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

# Public headers: all but those of kernels, loops and reference loops and those that need one of these or generated code.
# (scripts/check-install --each-header compiles each by itself.)
install(DIRECTORY core datasets distributed exporters importers integer layers models optim quantize training
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/miniqat COMPONENT development
  FILES_MATCHING PATTERN *.h
  PATTERN kernels EXCLUDE
  PATTERN chain EXCLUDE
  PATTERN reference EXCLUDE
  PATTERN page EXCLUDE
  PATTERN exporters/c/sound EXCLUDE
  PATTERN *_loops.h EXCLUDE
  PATTERN exporters/onnx/graph.h EXCLUDE
  PATTERN exporters/tflite/graph.h EXCLUDE
  PATTERN exporters/tflite/rules.h EXCLUDE
  PATTERN importers/onnx/literal.h EXCLUDE
  PATTERN importers/onnx/node.h EXCLUDE
  PATTERN importers/onnx/ops.h EXCLUDE
  PATTERN importers/onnx/translation.h EXCLUDE
  PATTERN importers/onnx/windows.h EXCLUDE
  PATTERN layers/unary_op.h EXCLUDE
  PATTERN quantize/fake_quant_in_chain.h EXCLUDE
  PATTERN quantize/range_training.h EXCLUDE
  PATTERN quantize/step_ranges.h EXCLUDE)

set(doc_folder ${CMAKE_INSTALL_DATADIR}/doc/miniqat)
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${doc_folder} COMPONENT program)
install(DIRECTORY docs DESTINATION ${doc_folder} COMPONENT program)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libminiqat-dev COMPONENT development
  PATTERN examples/CMakeLists.txt EXCLUDE)

# The program describes itself, if it runs here: completion, and manual pages in the form that help2man gives them.
if(NOT CMAKE_CROSSCOMPILING)
  set(description ${PROJECT_BINARY_DIR}/description)
  install(CODE "execute_process(COMMAND_ERROR_IS_FATAL ANY
    COMMAND \"${PROJECT_SOURCE_DIR}/cmake/describe\" \"$<TARGET_FILE:miniqat>\" ${PROJECT_VERSION} \"${description}\")"
    COMPONENT program)
  install(DIRECTORY ${description}/data/ DESTINATION ${CMAKE_INSTALL_DATADIR} COMPONENT program)
  install(DIRECTORY ${description}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT program OPTIONAL)
endif()
