# What several processes of one run do together. Only a module knows MPI, and only a launcher's processes open it: a plain run
# loads no MPI library.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/distributed/*.cpp)
set(mpi_source ${CMAKE_SOURCE_DIR}/distributed/mpi_communicator.cpp)
list(REMOVE_ITEM sources ${mpi_source})
set(mpi_module ${CMAKE_BINARY_DIR}/miniqat_mpi.so)
set(mpi_folder ${CMAKE_INSTALL_LIBDIR}/miniqat)
add_library(miniqat_distributed STATIC ${sources})
target_link_libraries(miniqat_distributed PUBLIC miniqat_options miniqat_core ${CMAKE_DL_LIBS})
target_compile_definitions(miniqat_distributed PRIVATE MINIQAT_MPI_MODULE="${mpi_module}" MINIQAT_MPI_FOLDER="${mpi_folder}")
miniqat_compile_in_bundles(miniqat_distributed)
miniqat_position_independent(miniqat_distributed)

option(MINIQAT_MPI "Build the module for several ranks, if there is an MPI" ON)
if(MINIQAT_MPI)
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI COMPONENTS CXX)
endif()
if(MINIQAT_MPI AND MPI_CXX_FOUND)
  # The few functions of core/ that it needs come along.
  add_library(miniqat_mpi MODULE ${mpi_source} ${CMAKE_SOURCE_DIR}/core/text/error.cpp ${CMAKE_SOURCE_DIR}/core/text/concat.cpp)
  target_link_libraries(miniqat_mpi PRIVATE miniqat_options MPI::MPI_CXX)
  # Without the C++ bindings, which are linked by default and not used.
  target_link_options(miniqat_mpi PRIVATE -Wl,--as-needed)
  set_target_properties(miniqat_mpi PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  add_dependencies(miniqat_distributed miniqat_mpi)
  install(TARGETS miniqat_mpi LIBRARY DESTINATION ${mpi_folder} COMPONENT program)
endif()
