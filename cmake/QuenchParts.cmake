# quench_parts: the libraries that libquench stands on.

find_package(PkgConfig REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS C)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
find_package(ZLIB REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(Threads REQUIRED)

add_library(quench_parts INTERFACE)
target_link_libraries(quench_parts INTERFACE OpenMP::OpenMP_C PkgConfig::JANSSON ZLIB::ZLIB
                      JPEG::JPEG PNG::PNG Threads::Threads m)

# oneDNN's own CMake package asks for OpenCL on some systems; header and library are all we need.
if(QUENCH_DNNL)
    find_path(QUENCH_DNNL_INCLUDE oneapi/dnnl/dnnl.h)
    find_library(QUENCH_DNNL_LIBRARY dnnl)
    if(QUENCH_DNNL_INCLUDE AND QUENCH_DNNL_LIBRARY)
        target_include_directories(quench_parts SYSTEM INTERFACE "${QUENCH_DNNL_INCLUDE}")
        target_link_libraries(quench_parts INTERFACE "${QUENCH_DNNL_LIBRARY}")
        target_compile_definitions(quench_parts INTERFACE QN_HAVE_DNNL=1)
        set(quench_have_dnnl ON)
    endif()
endif()
if(quench_have_dnnl)
    message(STATUS "oneDNN backend: ${QUENCH_DNNL_LIBRARY}")
else()
    target_compile_definitions(quench_parts INTERFACE QN_HAVE_DNNL=0)
    message(STATUS "oneDNN backend: left out")
endif()
