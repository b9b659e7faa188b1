# What `cmake --install` puts where. Three components: `program` (what runs), `development` (what a program of one's own is
# built with) and `python` (python/CMakeLists.txt). docs/install.md is the page.
include(CMakePackageConfigHelpers)

install(TARGETS miniqat RUNTIME COMPONENT program)
# For `verify`: the scripts that run exported models; npm gets the runtimes themselves.
set(runtime_files .npmrc litert.mjs onnxruntime.mjs package-lock.json package.json)
list(TRANSFORM runtime_files PREPEND ${CMAKE_SOURCE_DIR}/runtimes/)
install(FILES ${runtime_files} DESTINATION ${runtimes_folder} COMPONENT program)
# For kernels of one's own: `miniqat bench --plugin`.
install(FILES ${CMAKE_SOURCE_DIR}/bench/kernels/fake_quant_plugin.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/miniqat/bench/kernels COMPONENT development)

# The libraries, each after those that it needs. A component of find_package(miniqat) is one of them; `options` and `onnx_proto` are
# parts that several need.
set(parts options core openmp_calls layers integer onnx_proto quantize exporters importers optim datasets models distributed training)
set(components ${parts})
list(REMOVE_ITEM components options onnx_proto)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/miniqat)
set(needs)
foreach(part ${parts})
  set_target_properties(miniqat_${part} PROPERTIES EXPORT_NAME ${part})
  install(TARGETS miniqat_${part} EXPORT miniqat_${part} ARCHIVE COMPONENT development)
  install(EXPORT miniqat_${part} NAMESPACE miniqat:: FILE miniqat-${part}.cmake DESTINATION ${package_folder} COMPONENT development)
  get_target_property(links miniqat_${part} INTERFACE_LINK_LIBRARIES)
  # $<LINK_ONLY:...> is around what is not part of the headers.
  list(TRANSFORM links REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1")
  string(APPEND needs "set(miniqat_needs_${part} \"${links}\")\n")
endforeach()

configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/miniqat-config.cmake.in ${CMAKE_BINARY_DIR}/miniqat-config.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/miniqat-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/miniqat-config.cmake ${CMAKE_BINARY_DIR}/miniqat-config-version.cmake
  ${CMAKE_SOURCE_DIR}/cmake/FindOneDnn.cmake DESTINATION ${package_folder} COMPONENT development)

# A linker wants a library before those that it needs. (The one that defines OpenMP's functions is for who asks for it.)
set(pc_libraries)
foreach(part ${parts})
  if(NOT part MATCHES "^(options|openmp_calls)$")
    string(PREPEND pc_libraries "-lminiqat_${part} ")
  endif()
endforeach()
file(RELATIVE_PATH pc_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${CMAKE_SOURCE_DIR}/cmake/miniqat.pc.in ${CMAKE_BINARY_DIR}/miniqat.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/miniqat.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

# Public headers: all but kernels, specifications and what only files of the same folder include. (The check of an
# installation compiles each by itself.)
set(header_rooms ${components})
list(REMOVE_ITEM header_rooms openmp_calls)
foreach(room ${header_rooms})
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/${room} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/miniqat COMPONENT development
    FILES_MATCHING PATTERN *.h
    REGEX "/(kernels|chain|reference|page)$" EXCLUDE
    REGEX "exporters/(onnx|tflite)/(graph|rules)\\.h$" EXCLUDE
    REGEX "importers/onnx/(hard_swish|literal|node|ops|reshaping|translation|windows)\\.h$" EXCLUDE
    REGEX "(layers/unary_op|models/networks|quantize/(fake_quant_in_chain|range_training))\\.h$" EXCLUDE)
endforeach()

set(doc_folder ${CMAKE_INSTALL_DATADIR}/doc/miniqat)
install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/CHANGELOG.md ${CMAKE_SOURCE_DIR}/LICENSE
  DESTINATION ${doc_folder} COMPONENT program)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs DESTINATION ${doc_folder} COMPONENT program)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libminiqat-dev COMPONENT development
  PATTERN examples/CMakeLists.txt EXCLUDE)

# The program describes itself, if it runs here: manual pages, of which help2man makes the form, and completion.
if(NOT CMAKE_CROSSCOMPILING)
  find_program(HELP2MAN help2man)
  install(CODE "set(miniqat_program \"$<TARGET_FILE:miniqat>\")
set(help2man \"${HELP2MAN}\")
set(version \"${PROJECT_VERSION}\")
set(build_folder \"${CMAKE_BINARY_DIR}/describe\")
set(data_folder \"${CMAKE_INSTALL_DATADIR}\")
set(man_folder \"${CMAKE_INSTALL_MANDIR}/man1\")" COMPONENT program)
  install(SCRIPT ${CMAKE_SOURCE_DIR}/cmake/InstallDescriptions.cmake COMPONENT program)
endif()
