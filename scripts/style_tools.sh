# Tools of other package indexes that scripts/format and scripts/lint use; source it after common.sh. Each
# version is fixed, so that the same tree has the same findings everywhere. They are installed at the first
# use into the build folder, because Debian 12 has neither. Where no index is reached the check is skipped,
# and the script says so.
ruff_version=0.17.6    # lints the Python
biome_version=2.6.8    # formats and lints the scripts of the report page

# Each sets `ruff` or `biome` to the program and returns 0, or says what hinders it and returns 1.
find_ruff() {
  local folder=$build/style/ruff-$ruff_version log=$build/style/ruff.log
  ruff=$folder/bin/ruff
  [[ -f $folder/complete ]] && return
  mkdir -p "$build/style"
  rm -rf "$folder"
  if { python3 -m venv "$folder" &&
      "$folder/bin/pip" install --disable-pip-version-check "ruff==$ruff_version"; } >"$log" 2>&1; then
    touch "$folder/complete"
    return
  fi
  skip_style "ruff $ruff_version" "python3 -m venv or pip" "$log"
}

find_biome() {
  local folder=$build/style/biome-$biome_version log=$build/style/biome.log
  biome=$folder/node_modules/.bin/biome
  [[ -f $folder/complete ]] && return
  mkdir -p "$build/style"
  rm -rf "$folder"
  if npm install --prefix "$folder" --no-fund --no-audit "@biomejs/biome@$biome_version" >"$log" 2>&1; then
    touch "$folder/complete"
    return
  fi
  skip_style "biome $biome_version" "npm" "$log"
}

skip_style() {
  rm -rf "$build/style/${1/ /-}"
  echo "${0##*/}: skipped $1, because $2 could not install it: $(grep -aE . "$3" | tail -n 1)" >&2
  return 1
}
