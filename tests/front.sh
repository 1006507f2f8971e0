#!/bin/sh
# front.sh: what the Makefile promises. A plain build has no tests and so needs nothing that only they use;
# scripts/test tells what was skipped and why, ends with CTest's summary, and fails when a test does.
set -eu
box=$(mktemp -d)
trap 'rm -rf "$box"' EXIT
fail() { echo "$*"; exit 1; }

cmake -S . -B "$box/plain" -G Ninja >/dev/null
ninja -C "$box/plain" -t targets all >"$box/targets"
grep -q '^quench: ' "$box/targets" || fail "a plain build does not make build/quench"
! grep -q cmocka "$box/plain/build.ninja" || fail "a plain build asks for cmocka"

# A build without oneDNN does not ask for it: a compiler that has no such header is enough.
mkdir "$box/bin"
printf '#!/bin/sh\nt=$(cat)\ncase $t in *dnnl*) exit 1 ;; esac\n' >"$box/bin/cc"
chmod +x "$box/bin/cc"
asks() { # MAKE-ARGUMENTS...: what the check before a build misses
    MAKEFLAGS= CMAKE_FLAGS= make -n all "$@" | sed -n '/^scripts\/setup --check/p' >"$box/check"
    [ -s "$box/check" ] || fail "make does not look for packages"
    PATH=$box/bin:$PATH sh "$box/check" 2>&1 || :
}
asks | grep -q libdnnl-dev || fail "a build with oneDNN does not ask for it"
! asks CMAKE_FLAGS=-DQUENCH_WEBP=OFF | grep -q libwebp-dev || fail "a build without WebP asks for libwebp"
! asks CMAKE_FLAGS=-DQUENCH_BACKEND_DNNL=OFF | grep -q libdnnl-dev || fail "a build without oneDNN asks for it"

run() { # WANTED-CODE [all]: the tests that stand in $box/CTestTestfile.cmake
    code=0
    scripts/test "$box" 2 ${2:-} >"$box/out" 2>&1 || code=$?
    [ "$code" = "$1" ] || fail "exit code $code, not $1: $(cat "$box/out")"
    tail -15 "$box/out" | grep -q 'tests failed out of' || fail "no summary at the end: $(cat "$box/out")"
}
cat >"$box/CTestTestfile.cmake" <<'END'
add_test(good true)
add_test(absent sh -c "echo 'skipped: no such thing here'; exit 77")
add_test(mute sh -c "exit 77")
set_tests_properties(absent mute PROPERTIES SKIP_RETURN_CODE 77)
END
run 0
grep -q '^== 2 SKIPPED' "$box/out" || fail "the skipped are not counted: $(cat "$box/out")"
grep -q '^  absent: no such thing here$' "$box/out" || fail "no reason: $(cat "$box/out")"
grep -q '^  mute: it does not say why$' "$box/out" || fail "no word of a mute one: $(cat "$box/out")"
echo 'add_test(bad false)' >>"$box/CTestTestfile.cmake"
run 1
echo "add_test(good true)" >"$box/CTestTestfile.cmake"
echo 'add_test(more true)' >>"$box/CTestTestfile.cmake"
echo 'set_tests_properties(more PROPERTIES LABELS all)' >>"$box/CTestTestfile.cmake"
run 0
! grep -q more "$box/out" || fail "the tests of all models run too: $(cat "$box/out")"
run 0 all
grep -q more "$box/out" || fail "not all tests run: $(cat "$box/out")"
! grep -q SKIPPED "$box/out" || fail "nothing was skipped: $(cat "$box/out")"
echo "the front door holds what it promises"
