# Makes `header` with the texts of the named files in `folder`, for programs that hold them: `array` (in `namespace`) has a pair
# of name (without folders) and text for each file.
function(miniqat_text_files header array namespace folder)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/ OUTPUT_VARIABLE files)
  add_custom_command(OUTPUT ${header}
    COMMAND ${CMAKE_COMMAND} -DHEADER=${header} -DARRAY=${array} -DNAMESPACE=${namespace} "-DFILES=${files}"
            -P ${PROJECT_SOURCE_DIR}/cmake/TextFiles.cmake
    DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/TextFiles.cmake VERBATIM)
endfunction()
if(NOT CMAKE_SCRIPT_MODE_FILE)
  return()
endif()

# The command itself.
set(rows)
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  file(READ ${file} text)
  string(APPEND rows "    {\"${name}\", R\"text_file(${text})text_file\"},\n")
endforeach()
file(WRITE ${HEADER} "#pragma once

#include <string_view>
#include <utility>

namespace ${NAMESPACE} {

inline constexpr std::pair<std::string_view, std::string_view> ${ARRAY}[] = {
${rows}};

}  // namespace ${NAMESPACE}
")
