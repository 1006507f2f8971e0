#!/bin/sh
# package.sh BUILD-FOLDER: installs into a scratch prefix, then builds and runs a program against it
# twice: with pkg-config's flags, and with CMake's find_package.
set -eu
box=$(mktemp -d)
trap 'rm -rf "$box"' EXIT
cmake --install "$1" --prefix "$box/usr" >/dev/null

cat >"$box/main.c" <<'END'
#include <quench.h>
#include <stdio.h>
int main(void)
{
    qn_context *ctx;
    if (qn_context_create(&ctx, NULL) != QN_OK)
        return 1;
    qn_context_free(ctx);
    return puts(qn_version()) < 0;
}
END

PKG_CONFIG_PATH=$(dirname "$(find "$box/usr" -name quench.pc)")
export PKG_CONFIG_PATH
version=$(pkg-config --modversion quench)
libdir=$(pkg-config --variable=libdir quench)
# shellcheck disable=SC2046 # one word per flag
cc -o "$box/main" "$box/main.c" $(pkg-config --cflags --libs quench)
[ "$(LD_LIBRARY_PATH=$libdir "$box/main")" = "$version" ]
readelf -d "$libdir/libquench.so" | grep -q "SONAME.*libquench.so.${version%%.*}\]"
# shellcheck disable=SC2046 # one word per flag
cc -Wall -Wextra -Werror -o "$box/classify" examples/classify.c $(pkg-config --cflags --libs quench)
tests/cli/make-npy "$box/black.npy" '<f4' 1,1,28,28
LD_LIBRARY_PATH=$libdir "$box/classify" examples/fashion.onnx "$box/black.npy" >/dev/null

cat >"$box/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
find_package(quench ${version%.*} REQUIRED)
add_executable(main main.c)
target_link_libraries(main PRIVATE quench::quench)
END
cmake -S "$box" -B "$box/build" -DCMAKE_PREFIX_PATH="$box/usr" >/dev/null
cmake --build "$box/build" >/dev/null
[ "$("$box/build/main")" = "$version" ]

# The pages that the command writes about itself, and what it says when it cannot.
for page in man/man1/quench.1 bash-completion/completions/quench zsh/site-functions/_quench \
    fish/vendor_completions.d/quench.fish doc/quench/operators.md doc/quench/passes.md \
    doc/quench/cli.md; do
    [ -s "$box/usr/share/$page" ] || { echo "share/$page is missing"; exit 1; }
done
grep -q '^| Conv | ai.onnx | 1+ |' "$box/usr/share/doc/quench/operators.md"

# The installed command finds its library without help.
[ ! -e "$box/usr/bin/quench" ] || "$box/usr/bin/quench" version >/dev/null
[ ! -e "$box/usr/bin/quench" ] || "$box/usr/bin/Knight" version >/dev/null
echo "quench $version: pkg-config and find_package agree"
