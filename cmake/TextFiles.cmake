# Writes a header with the text of files, for programs that hold them:
#   cmake -DHEADER=FILE -DARRAY=kName -DNAMESPACE=a::b "-DFILES=FILE;..." -P TextFiles.cmake
# `ARRAY` has a pair of name (without folders) and text for each file.
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
