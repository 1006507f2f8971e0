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

# Kinds of pictures whose libraries a build can do without: src/image/<kind>.c is compiled where one is found.
if(QUENCH_WEBP)
    pkg_check_modules(WEBP IMPORTED_TARGET libwebp libwebpdemux)
    if(WEBP_FOUND)
        target_link_libraries(quench_parts INTERFACE PkgConfig::WEBP)
        list(APPEND QUENCH_PICTURES webp)
    endif()
endif()
if(QUENCH_TIFF)
    pkg_check_modules(TIFF IMPORTED_TARGET libtiff-4>=4.5)
    if(TIFF_FOUND)
        target_link_libraries(quench_parts INTERFACE PkgConfig::TIFF)
        list(APPEND QUENCH_PICTURES tiff)
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
list(JOIN QUENCH_PICTURES " " quench_picture_words)
message(STATUS "pictures beside JPEG, PNG, BMP and PNM: ${quench_picture_words}")
