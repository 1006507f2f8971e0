# The rooms of the library and their folders. A new .c file is found by itself; a new room or folder is one word here
# (and a room one row in tests/lint/rooms.txt, which says whom it may know).

set(QUENCH_ROOMS base proto ir ops import pass run backend backend/ref backend/dnnl
    backend/cpu backend/cpu/copy backend/cpu/float backend/cpu/float/conv backend/cpu/float/elementwise
    backend/cpu/int backend/cpu/int/conv backend/cpu/int/elementwise backend/cpu/int/epilogue
    backend/cpu/int/mac backend/cpu/int/matmul backend/cpu/int/recurrent backend/cpu/train
    calib quant export train dist data image task report
    model executor compare quantize ort api)

# Kernels for one instruction set are named after it; everything else is baseline code.
set(QUENCH_ISA_avx2 -mavx2 -mfma -mf16c -mprfchw)
set(QUENCH_ISA_avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c -mprfchw)
set(QUENCH_ISA_vnni ${QUENCH_ISA_avx512} -mavx512vnni)
set(QUENCH_ISA_vbmi ${QUENCH_ISA_avx512} -mavx512vbmi)
string(TOLOWER "${CMAKE_SYSTEM_PROCESSOR}" quench_processor)
if(quench_processor MATCHES "^(x86_64|amd64)$")
    set(QUENCH_X86 ON)
endif()
target_compile_definitions(quench_parts INTERFACE QN_X86=$<BOOL:${QUENCH_X86}>)

# Folders of backends that are compiled. oneDNN's uses own kernels for what it fuses behind a primitive, so
# that those are there too where only it is offered.
set(quench_backend_rooms ${QUENCH_BACKENDS})
if(dnnl IN_LIST QUENCH_BACKENDS)
    list(APPEND quench_backend_rooms cpu)
endif()

# quench_sources(VAR): all library sources, with the instruction-set flags set on those that name one.
function(quench_sources out)
    foreach(room IN LISTS QUENCH_ROOMS)
        if(room MATCHES "^backend/([^/]+)" AND NOT CMAKE_MATCH_1 IN_LIST quench_backend_rooms)
            continue()
        endif()
        set(places "${CMAKE_CURRENT_SOURCE_DIR}/src/${room}/*.c")
        if(room STREQUAL "import")
            list(APPEND places "${CMAKE_CURRENT_SOURCE_DIR}/src/${room}/*/*.c")
        endif()
        file(GLOB found CONFIGURE_DEPENDS ${places})
        list(APPEND all ${found})
    endforeach()
    foreach(isa avx2 avx512 vnni vbmi)
        set(chosen ${all})
        list(FILTER chosen INCLUDE REGEX "/(backend/cpu/.+|calib)/[^/]*_${isa}\\.c$")
        if(NOT chosen)
            continue()
        elseif(QUENCH_X86)
            set_source_files_properties(${chosen} PROPERTIES COMPILE_OPTIONS "${QUENCH_ISA_${isa}}")
        else()
            list(REMOVE_ITEM all ${chosen})
        endif()
    endforeach()
    foreach(kind webp tiff)
        if(NOT kind IN_LIST QUENCH_PICTURES)
            list(REMOVE_ITEM all "${CMAKE_CURRENT_SOURCE_DIR}/src/image/${kind}.c")
        endif()
    endforeach()
    if(quench_have_hdf5)
        list(REMOVE_ITEM all "${CMAKE_CURRENT_SOURCE_DIR}/src/base/hdf5_absent.c")
    else()
        list(REMOVE_ITEM all "${CMAKE_CURRENT_SOURCE_DIR}/src/base/hdf5.c")
    endif()
    string(TOUPPER "${QUENCH_PICTURES}" pictures)
    list(TRANSFORM pictures PREPEND QN_IMAGE_)
    set_source_files_properties(src/image/image.c PROPERTIES COMPILE_DEFINITIONS "${pictures}")
    string(TOUPPER "${QUENCH_BACKENDS}" rows)
    list(TRANSFORM rows PREPEND QN_BACKEND_)
    set_source_files_properties(src/backend/backends.c PROPERTIES COMPILE_DEFINITIONS "${rows}")
    set(${out} ${all} PARENT_SCOPE)
endfunction()
