#!/usr/bin/env bash
# Builds and runs one stage of scripts/test: steps.sh NAME. Each has a function of its name, with - as _.
# scripts/test sets ACLTAPE_PYTHON and, where there is one, ACLTAPE_TORCH2_PYTHON.
set -euo pipefail
source "$(dirname "$0")/../../scripts/common.sh"

# Kits that the tests build are theirs, not the user's.
export ACLTAPE_CACHE=$build/cache

run_tests() { python3 -B tests/stages/run_tests.py "$1" --build "$2" --jobs "$jobs"; }

# Runs a command that builds something, whose time does not count for the stage's budget: built COMMAND..
built() {
  local start=$SECONDS
  "$@"
  echo "$((SECONDS - start))" >>"$build/stages/build_seconds"
}

release() {
  say "$1: build"
  configure "$build" release
  built build_targets "$build"
  if [[ -n ${ACLTAPE_TORCH2_PYTHON:-} ]]; then
    say "$1: the kit for $ACLTAPE_TORCH2_PYTHON"
    built "$build/bin/acltape" torch add "$ACLTAPE_TORCH2_PYTHON"
  fi
}

# Tests of the release build: release_tests STAGE
release_tests() {
  release "$1"
  say "$1: tests"
  run_tests "$1" "$build"
}

core() { release_tests core; }
programs() { release_tests programs; }
campaigns() { release_tests campaigns; }
spark() { release_tests spark; }

# A run of all stages takes every cell of the matrix, any other one a sample, which the commit chooses.
matrix() {
  local cells=(--cells 400)
  [[ ${ACLTAPE_SHARE:-} != all ]] || cells=()
  release matrix
  say "matrix: programs and commands"
  ACLTAPE_BINARY=$build/bin/acltape ACLTAPE_SDK=$build/sdk python3 -B tests/matrix/matrix.py "${cells[@]}"
}

style() {
  say "style"
  scripts/format
  if [[ ${ACLTAPE_SHARE:-} == all ]]; then scripts/lint --all; else scripts/lint; fi
}

# Two types of one name in two files are no error for compiler and linker, and crash by chance.
odr() {
  say "odr: equal names of types in different files"
  configure "$build-odr" odr
  built build_targets "$build-odr" acltape
}

# libtorch is not built for the sanitizers, and ThreadSanitizer cannot do without: what needs it stays out
# of these builds. sanitized STAGE TARGETS..
sanitized() {
  local preset=$1 folder=$build-$1
  shift
  say "$preset: build"
  configure "$folder" "$preset" -DACLTAPE_TORCH=OFF
  built build_targets "$folder" "$@"
  say "$preset: tests"
  run_tests "$preset" "$folder"
}

asan() { sanitized asan tests/{runtime,recorder,analyzer,acl,storage}/all; }

# Code without threads is no matter for ThreadSanitizer: in the analyzer only the metrics have
# threads.
tsan() { sanitized tsan tests/{runtime,recorder}/all metrics_test; }

# The end-to-end tests start programs into which a sanitizer's runtime would have to be loaded first, so
# they are none of this stage.
asan_torch() {
  say "asan-torch: build"
  configure "$build-asan-torch" asan
  built build_targets "$build-asan-torch" tests/{opapi,replayer,lint,cli}/all
  say "asan-torch: tests"
  run_tests asan-torch "$build-asan-torch"
}

wheel() {
  export ACLTAPE_TEST_WHEEL=1
  release_tests wheel
}

# The same tests of the recorder and the same workloads with each PyTorch that a package index has for
# this machine. torch_npu is not asked for there: it stands beside PyTorch in the first of them.
torches() {
  local version python
  release torches
  export TORCH_DEVICE_BACKEND_AUTOLOAD=0
  for version in 2.13.0 newest; do
    python=$(scripts/torch2-python $version) || continue
    say "torches: $("$python" -c 'import torch; print("torch", torch.__version__)')"
    ACLTAPE_PYTHON=$python ctest --test-dir "$build" --output-on-failure -j "$jobs" \
      -R '^(torch\.(Leaves|Values|Processes|Kills)|cli\.(Decoder|MlpTrain|BertLayer))$'
  done
}

# A stage that needs a root of another Debian says with code 77 that none can be made.
debian12() { scripts/debian12 || [[ $? == 77 ]]; }
debian13() { scripts/debian13 || [[ $? == 77 ]]; }

models() {
  release models
  if [[ -z ${ACLTAPE_TORCH2_PYTHON:-} ]]; then
    say "models: skipped, because there is no interpreter with transformers"
    return
  fi
  say "models: all small models of transformers"
  ACLTAPE_BINARY=$build/bin/acltape "$ACLTAPE_TORCH2_PYTHON" -B tests/torch/models/models_test.py --all
}

long_campaigns() {
  say "long-campaigns: damaged traces"
  scripts/campaign --hours 0.5
  say "long-campaigns: each call fails once"
  scripts/campaign failures --all
  say "long-campaigns: kills"
  scripts/campaign kills --hours 0.5
  say "long-campaigns: hostile programs"
  scripts/campaign hostile
  say "long-campaigns: hostile fleets"
  scripts/campaign fleets --hours 0.5
}

mkdir -p "$build/stages"
"${1//-/_}"
