# A library `target` of the C++ that protoc makes of a .proto file, for `#include "folder/stem.pb.h"`. Its warnings are
# not ours.
function(miniqat_protobuf_library target proto)
  string(REGEX REPLACE "\\.proto$" ".pb" stem ${proto})
  set(root ${CMAKE_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${root})
  add_custom_command(
    OUTPUT ${root}/${stem}.h ${root}/${stem}.cc
    COMMAND protobuf::protoc --proto_path=${CMAKE_SOURCE_DIR} --cpp_out=${root} ${proto}
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
    DEPENDS ${CMAKE_SOURCE_DIR}/${proto}
    VERBATIM)
  add_library(${target} STATIC ${root}/${stem}.cc)
  target_include_directories(${target} SYSTEM PUBLIC $<BUILD_INTERFACE:${root}>)
  target_link_libraries(${target} PUBLIC protobuf::libprotobuf-lite PRIVATE miniqat_options)
  target_compile_options(${target} PRIVATE -w)
  miniqat_optimise_little(${target})
endfunction()
