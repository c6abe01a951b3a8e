#!/bin/bash
# Puts the programs, the GPU tests and benches and their shared libraries into one folder for GPU machines, where often
# nothing is installed: all libraries but glibc's, CUDA's and the driver's, which is the machine's own.
#   tests/gpu/bundle.sh BUILD FOLDER      FOLDER/first-gpu, FOLDER/check-gpu, FOLDER/shoal, FOLDER/shoal-agent, ... run there
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1 bundle=$2
most_mib=45
[ -e "$build/libshoal_cuda.so" ] || { echo "bundle.sh: $build was built without nvcc: it is of no use on a GPU" >&2; exit 1; }
rm -rf "$bundle"
mkdir -p "$bundle/lib" "$bundle/tests"

programs="shoal shoal-agent shoal-operator tests/gpu/gpu $(tests/gpu/programs.sh | sed 's,^,tests/,')"
programs="$programs $(cd "$build" && { find tests/gpu tests/bench -type f -perm -u+x 2>/dev/null || true; })"
for program in $(tr ' ' '\n' <<<"$programs" | sort -u); do
    install -D -m 755 --strip "$build/$program" "$bundle/build/release/$program"
    ldd "$build/$program" | grep -o '/[^ ]*' || true
done | sort -u | grep -vE '/(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util)\.so\.[0-9]+)$' | while read -r library; do
    install -m 644 "$library" "$bundle/lib/"
done
install -m 755 --strip "$build/libshoal_cuda.so" "$bundle/build/release/"
cp tests/run_one.sh tests/tap.sh tests/wait.sh "$bundle/tests/"
cp -r tests/gpu "$bundle/tests/"
mkdir -p "$bundle/tests/data/tokenizers" "$bundle/tests/bench/models"
cp -r tests/data/tokenizers/unigram_t5 "$bundle/tests/data/tokenizers/"
cp -r tests/bench/models/t5 "$bundle/tests/bench/models/"
cp -r tests/data/parity "$bundle/tests/data/"
tests/gpu/programs.sh >"$bundle/tests/gpu/programs"
git describe --always --dirty >"$bundle/tests/gpu/commit" 2>/dev/null || rm "$bundle/tests/gpu/commit"
cat >"$bundle/start" <<'END'
#!/bin/sh
# Starts the program of its own name with the libraries beside it.
here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd) || exit
# packed until the first program starts
[ ! -e "$here/packed.tar.gz" ] || { tar -xzf "$here/packed.tar.gz" -C "$here" && rm "$here/packed.tar.gz"; } || exit
# the machine's own C++ library, where it has one: what CUDA's libraries ask of it may be newer than ours
if ! PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | grep -q 'libstdc++\.so\.6'; then LD_LIBRARY_PATH=$here/lib/c++${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}; fi
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
case ${0##*/} in
check-gpu) exec "$here/tests/gpu/check.sh" "$@" ;;
bench-gpu) exec "$here/tests/gpu/bench.sh" "$@" ;;
first-gpu) exec "$here/tests/gpu/first.sh" "$@" ;;
*) exec "$here/build/release/${0##*/}" "$@" ;;
esac
END
mkdir "$bundle/lib/c++"
mv "$bundle"/lib/libstdc++.so.* "$bundle"/lib/libgcc_s.so.* "$bundle/lib/c++/"
chmod +x "$bundle/start"
tar -czf "$bundle/packed.tar.gz" -C "$bundle" --remove-files build lib
for name in shoal shoal-agent shoal-operator check-gpu bench-gpu first-gpu; do ln -s start "$bundle/$name"; done

mib=$(du -sm --apparent-size "$bundle" | cut -f1)
echo "$bundle: $mib MiB"
[ "$mib" -le "$most_mib" ] || { echo "bundle.sh: more than $most_mib MiB" >&2; exit 1; }
