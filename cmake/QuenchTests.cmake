# Words for tests/*/CMakeLists.txt. Every test has a label:
#   quick  what one runs while working: `ctest -L quick` takes at most 90 seconds on two cores
#   slow   real models, whole suites of others, all instruction sets: with the quick ones, `make test`
#   all    what proves no more than those but more often (other models, other instruction sets): `make test-all`
# Exit code 77 means skipped: print the reason before it.

# quench_program(NAME SOURCE... [LIBRARIES lib...]): a program that may look into every room.
function(quench_program name)
    cmake_parse_arguments(arg "" "" "LIBRARIES" ${ARGN})
    add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
    target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}/tests")
    target_link_libraries(${name} PRIVATE quench_flags quench_static ${arg_LIBRARIES})
endfunction()

# Instrumented code is up to twenty times slower.
if(QUENCH_SANITIZE)
    set(QUENCH_TEST_TIMEOUT 3600)
else()
    set(QUENCH_TEST_TIMEOUT 600)
endif()

# The name of a test says where it is: the kind, which is the folder, and the file, which is the topic; what may follow is
# the case. The folder `tests` itself has kinds of one file (front.sh) or none of their own (unit, fuzz, header).
function(quench_check_name name)
    cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
    if(folder STREQUAL tests)
        return()
    endif()
    foreach(word IN LISTS ARGN)
        cmake_path(GET word STEM stem)
        if("${name}." MATCHES "^${folder}\\.${stem}\\.")
            return()
        endif()
        string(REGEX REPLACE "\\$<TARGET_FILE:([a-z_]+)>" "\\1" program "${word}")
        if("${name}." MATCHES "^${folder}\\.${program}\\.")
            return()
        endif()
    endforeach()
    message(FATAL_ERROR "the test ${name} is not called ${folder}.FILE[.CASE] after the file that it runs: ${ARGN}")
endfunction()

# quench_test(NAME LABEL COMMAND...): registers one test. It runs in the repository's root. Threads that
# wait sleep instead of spinning, since tests run side by side.
function(quench_test name label)
    quench_check_name(${name} ${ARGN})
    add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
    set_tests_properties(${name} PROPERTIES LABELS ${label} SKIP_RETURN_CODE 77 TIMEOUT ${QUENCH_TEST_TIMEOUT}
        ENVIRONMENT "OMP_NUM_THREADS=2;OMP_WAIT_POLICY=passive;QUENCH=${CMAKE_BINARY_DIR}/quench;${QUENCH_TEST_ENV}")
endfunction()

# quench_first(SECONDS NAME...): long tests begin before short ones, so that no core waits for the last. ctest learns the
# times of a build by itself; these are those of a new one.
function(quench_first seconds)
    set_tests_properties(${ARGN} PROPERTIES COST ${seconds})
endfunction()

# quench_oracle_test(NAME LABEL SCRIPT.py ARGUMENTS...): a test in Python that asks onnx, ONNX Runtime
# or OpenVINO (tests/requirements.txt). Skipped where they are not installed.
function(quench_oracle_test name label)
    quench_test(${name} ${label} "${CMAKE_SOURCE_DIR}/tests/oracle.sh" ${ARGN})
endfunction()

set(QUENCH_TEST_ENV
    "ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1"
    "UBSAN_OPTIONS=print_stacktrace=1"
    "TSAN_OPTIONS=ignore_noninstrumented_modules=1")

if(QUENCH_SANITIZE)
    list(APPEND QUENCH_TEST_ENV "QUENCH_SANITIZED=1")
endif()

# The thread sanitizer sees the barriers of libomp only through this tool, which it does not always find
# by itself.
if(QUENCH_SANITIZE MATCHES thread)
    file(REAL_PATH "${OpenMP_omp_LIBRARY}" omp_library)
    cmake_path(GET omp_library PARENT_PATH omp_folder)
    find_library(QUENCH_ARCHER archer HINTS "${omp_folder}")
    if(QUENCH_ARCHER)
        list(APPEND QUENCH_TEST_ENV "OMP_TOOL_LIBRARIES=${QUENCH_ARCHER}")
    endif()
    # Where it finds a folder it maps a file of its own there, and dies where a test limits the size of files.
    list(APPEND QUENCH_TEST_ENV "TEST_TMPDIR=/nonexistent")
endif()
