# Debian packages, made by scripts/package: miniqat (the program), libminiqat-dev (libraries and headers) and, if the build has the
# Python module, python3-miniqat.
set(MINIQAT_PACKAGE_CONTACT "miniqat developers <miniqat@localhost>" CACHE STRING "The maintainer whom Debian packages name")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME miniqat)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT ${MINIQAT_PACKAGE_CONTACT})
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_COMPONENTS_ALL program development)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME miniqat)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "nodejs (>= 18), npm, libminiqat-dev")
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "trains networks that survive 8, 4 or 2 bit integers
Quantization-aware training: rewrites a network with simulated quantizers, trains it, and exports an integer-only model for
LiteRT, ONNX Runtime or plain C.")
# What npm put there is no file of the package.
configure_file(cmake/prerm.in packaging/prerm @ONLY)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/packaging/prerm)

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libminiqat-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
# Static libraries tell dpkg-shlibdeps nothing. scripts/check-package finds what is missing here.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libdnnl-dev, libeigen3-dev, nlohmann-json3-dev, zlib1g-dev, libprotobuf-dev, \
libturbojpeg0-dev, libpng-dev, libwebp-dev, libzip-dev, libsndfile1-dev, libsoxr-dev, pkgconf")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS "g++, cmake")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "quantization-aware training in C++: libraries and headers
Graphs, layers, quantizers, training, the integer engine and exporters as static libraries, with find_package(miniqat)
and pkg-config.")

if(MINIQAT_PYTHON)
  list(APPEND CPACK_COMPONENTS_ALL python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-miniqat)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS ON)
  # The module is compiled for one version of Python.
  math(EXPR next_python_minor "${Python_VERSION_MINOR} + 1")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= ${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}), \
python3 (<< ${Python_VERSION_MAJOR}.${next_python_minor}), python3-numpy")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "miniqat, jupyter-notebook, python3-matplotlib")
  set(CPACK_COMPONENT_PYTHON_DESCRIPTION "quantization-aware training in Python, on NumPy arrays
Graphs, the rewrite, training, calibration, the integer engine and exporters of miniqat as the module miniqat, with type stubs,
docstrings and two notebooks.")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/python3-miniqat/postinst
    ${PROJECT_SOURCE_DIR}/cmake/python3-miniqat/prerm)
endif()

foreach(component ${CPACK_COMPONENTS_ALL})
  string(TOUPPER ${component} name)
  install(FILES cmake/copyright
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${name}_PACKAGE_NAME} COMPONENT ${component})
endforeach()
include(CPack)
