#!/usr/bin/env bash
# Builds the C recorder with AddressSanitizer and UndefinedBehaviorSanitizer, apart from any other
# build, and runs its tests and then the stress program with it.
#
#   tests/record/native/sanitize.sh [MINUTES of stress, default 10] [python, default python3]
#
# Needs gcc with libasan, and a Python that has what `pip install .[test]` brings, without a
# virtual environment of its own for opscope: src/ is copied.
set -euo pipefail
minutes=${1:-10}
python=${2:-python3}
root=$(cd "$(dirname "$0")/../../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp -r "$root/src" "$root/tests" "$root/fuzz" "$root/pyproject.toml" "$work"
rm -f "$work"/src/opscope/record/_native*.so
include=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
suffix=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
gcc -std=c11 -g -O1 -fno-omit-frame-pointer -fPIC -shared -fvisibility=hidden -D_GNU_SOURCE \
    -fsanitize=address,undefined -fno-sanitize-recover=undefined \
    -I"$include" "$work"/src/opscope/record/native/*.c -o "$work/src/opscope/record/_native$suffix"

# PYTHONMALLOC: Python's own allocator would hide what is used after it was freed. Leaks: Python
# itself keeps much to the end. Frame pointers of Python's own stack: no stack-use-after-return.
run() {
    (cd "$work" && env LD_PRELOAD="$(gcc -print-file-name=libasan.so):$(gcc -print-file-name=libubsan.so)" \
        ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
        PYTHONMALLOC=malloc PYTHONPATH="$work/src" OPSCOPE_RECORDER=native "$@")
}
run "$python" -c 'from opscope.record import extension as e; assert e.native, e.missing; print(e.native.__file__)'
# Not the test that forks with busy threads: AddressSanitizer's malloc may hang in the child.
run "$python" -m pytest -q -p no:cacheprovider -k 'not fork_and_exit' tests/record/native tests/record/test_scope.py \
    tests/record/test_writer.py tests/record/test_writer_bounds.py tests/record/test_writer_end.py \
    tests/record/test_adopt.py
run env -u OPSCOPE_RECORDER "$python" fuzz/stress_recorder.py --calm-forks \
    --recorder native --minutes "$minutes"
echo "no complaints from AddressSanitizer or UndefinedBehaviorSanitizer"
