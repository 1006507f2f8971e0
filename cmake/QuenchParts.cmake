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
if(QUENCH_BACKEND_DNNL)
    find_path(QUENCH_DNNL_INCLUDE oneapi/dnnl/dnnl.h)
    find_library(QUENCH_DNNL_LIBRARY dnnl)
    if(QUENCH_DNNL_INCLUDE AND QUENCH_DNNL_LIBRARY)
        target_include_directories(quench_parts SYSTEM INTERFACE "${QUENCH_DNNL_INCLUDE}")
        target_link_libraries(quench_parts INTERFACE "${QUENCH_DNNL_LIBRARY}")
        set(quench_have_dnnl ON)
    endif()
endif()

# The reference is always there, and last.
if(QUENCH_BACKEND_CPU)
    list(APPEND QUENCH_BACKENDS cpu)
endif()
if(quench_have_dnnl)
    list(APPEND QUENCH_BACKENDS dnnl)
endif()
list(APPEND QUENCH_BACKENDS ref)
list(JOIN QUENCH_BACKENDS " " quench_backend_words)
message(STATUS "backends: ${quench_backend_words}")
