# Writes the source file that names the commit of a build. Run by each build, as files may have changed since the last one;
# the file is only written when the name is another. A directory above ours may be another's repository.
#   cmake -DGIT=... -DSOURCES=... -DTEMPLATE=... -DOUTPUT=... -P Commit.cmake
set(MINIQAT_COMMIT "")
if(GIT)
  macro(ask_git answer)
    execute_process(COMMAND ${GIT} -C ${SOURCES} ${ARGN} OUTPUT_VARIABLE ${answer} RESULT_VARIABLE git_failed
      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endmacro()
  ask_git(inner_folder rev-parse --show-prefix)
  if(NOT git_failed AND inner_folder STREQUAL "")
    ask_git(MINIQAT_COMMIT describe --always --dirty)
  endif()
endif()
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
