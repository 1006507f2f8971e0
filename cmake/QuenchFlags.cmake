# quench_flags: how everything of ours is compiled. quench_strict: the warnings on top, for src/
# and tool/ (tests drop the conversion warnings).

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_C_FLAGS_RELEASE "-O3 -DNDEBUG")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(quench_flags INTERFACE)
target_compile_definitions(quench_flags INTERFACE _POSIX_C_SOURCE=200809L)
# One meaning of an integer network: no fused multiply-adds behind our back. The other two change
# no value, only errno and the floating-point flags, which nobody here reads. Messages are cut to
# the context's buffer on purpose, hence no warning about snprintf doing so.
target_compile_options(quench_flags INTERFACE
    -ffp-contract=off -fno-math-errno -fno-trapping-math
    -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes
    -Wold-style-definition -Wvla -Wundef -Wcast-qual -Wpointer-arith -Wwrite-strings -Wformat=2
    $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation>
    $<$<BOOL:${QUENCH_WERROR}>:-Werror>)

# With a sanitizer gcc warns about conversions in its own instrumentation.
add_library(quench_strict INTERFACE)
if(CMAKE_C_COMPILER_ID STREQUAL GNU AND NOT QUENCH_SANITIZE)
    target_compile_options(quench_strict INTERFACE
        -Wconversion -Wno-sign-conversion -Wlogical-op -Wduplicated-cond)
endif()

if(QUENCH_SANITIZE)
    target_compile_options(quench_flags INTERFACE -fsanitize=${QUENCH_SANITIZE}
        -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(quench_flags INTERFACE -fsanitize=${QUENCH_SANITIZE})
else()
    target_link_options(quench_flags INTERFACE -Wl,-z,defs -Wl,--as-needed)
endif()
if(QUENCH_FUZZ)
    target_compile_options(quench_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
