# The functions that the scripts share; source it. Sets `root` (the top of the tree), `build` (the
# build folder; ACLTAPE_BUILD overrides it) and `jobs`, and goes to the top of the tree.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${ACLTAPE_BUILD:-$root/build}
jobs=${ACLTAPE_JOBS:-$(nproc)}
cd "$root"
# PyTorch is stricter where CI is set: a custom operator that returns its input, as the adapter's broadcast in
# a compiled step does, is an error then and a warning otherwise. The programs run as they do for users.
unset CI
# A compiler cache serves every checkout: paths below this one count from the build folder.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1
# Kits are compiled with a precompiled header, which the cache takes only with these.
export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros}

# Prints the interpreter that the workloads run with: the first one that imports torch among
# ACLTAPE_PYTHON, python3 on the path, /usr/bin/python3 and the versioned ones beside it. The
# interpreter first on the path need not be the one that Debian's python3-torch serves.
find_torch_python() {
  local candidate
  for candidate in "${ACLTAPE_PYTHON:-}" "$(command -v python3 || true)" /usr/bin/python3 \
      /usr/bin/python3.[0-9]*; do
    [[ $candidate == *-config ]] && continue
    [[ -n $candidate && -x $candidate ]] || continue
    if "$candidate" -c 'import torch' >/dev/null 2>&1; then
      echo "$candidate"
      return 0
    fi
  done
  echo "no python3 on this machine can import torch; scripts/setup installs Debian's" >&2
  return 1
}

# Configures a preset into a folder unless that was done before: configure FOLDER PRESET [options]
configure() {
  local folder=$1 preset=$2
  shift 2
  [[ -f $folder/build.ninja ]] ||
    cmake --preset "$preset" -B "$folder" --log-level=WARNING "$@" >/dev/null
}

# Builds targets and says how far it is: build_targets FOLDER [targets]. A terminal gets ninja's own
# line, a file one line in twenty seconds; what compilers say goes through.
build_targets() {
  local folder=$1 line next=0
  shift
  if [[ -t 1 ]]; then
    ninja -C "$folder" -j "$jobs" "$@"
    return
  fi
  NINJA_STATUS='[%f/%t] ' ninja -C "$folder" -j "$jobs" "$@" | while IFS= read -r line; do
    if [[ ! $line =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
      [[ $line == "ninja: "* && $line != *stopped* ]] || printf '%s\n' "$line"
    elif ((SECONDS >= next)); then
      printf '   built %d of %d\n' "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
      next=$((SECONDS + 20))
    fi
  done
  return "${PIPESTATUS[0]}"
}

say() { printf '\n== %s\n' "$*"; }

# Makes the root of a Debian by debootstrap, unless it is there: make_debian SUITE FOLDER. Ends the script
# with code 77 where that cannot be done.
make_debian() {
  local suite=$1 place=$2
  local name=scripts/${0##*/}
  [[ $(id -u) == 0 ]] || { echo "$name: skipped, because only root can make a root" >&2; exit 77; }
  command -v debootstrap >/dev/null ||
    { echo "$name: skipped, because debootstrap is missing; apt-get install debootstrap" >&2; exit 77; }
  unshare --mount true 2>/dev/null ||
    { echo "$name: skipped, because this process may not mount" >&2; exit 77; }
  [[ ! -f $place/complete ]] || return 0
  rm -rf "$place"
  mkdir -p "$place"
  say "Debian $suite: a root in ${place#"$root"/}"
  debootstrap --variant=minbase "$suite" "$place" >"$place.log" 2>&1 || {
    echo "$name: skipped, because debootstrap failed; ${place#"$root"/}.log says why: $(tail -n 1 "$place.log")" >&2
    exit 77
  }
  touch "$place/complete"
}

# Runs a command of the shell in such a root: in_debian FOLDER DIRECTORY COMMAND. Its mounts go away with
# the process.
in_debian() {
  local place=$1 directory=$2
  shift 2
  unshare --mount --fork bash -c '
    mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && shift 1 && directory=$1 && shift 1 &&
    exec chroot "$0" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
      bash -c "cd $directory && $*"' "$place" "$place" "$directory" "$@"
}
