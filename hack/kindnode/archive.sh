# Sourced by the scripts beside it.

# archive NAME FOLDER FILE CONFIG writes FILE, which `docker load` and `kind load image-archive` can read: an image
# called NAME whose only layer is FOLDER. CONFIG is JSON as in the image specification, for example
# {"Entrypoint":["/manager"]}. OWNER is the owner of the files in it, 0 unless it is set; "kept" leaves owners as they
# are. This needs no engine.
archive() {
  local work owner=(--owner="${OWNER:-0}" --group="${OWNER:-0}")
  [[ ${OWNER:-} != kept ]] || owner=()
  work=$(mktemp -d "$3.XXXXXX")
  tar -C "$2" --sort=name --mtime=@0 --numeric-owner "${owner[@]}" -cf "$work/layer.tar" .
  printf '{"architecture":"%s","os":"linux","config":%s,"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
    "$(go env GOARCH)" "$4" "$(sha256sum "$work/layer.tar" | cut -d' ' -f1)" >"$work/config.json"
  printf '[{"Config":"config.json","RepoTags":["%s"],"Layers":["layer.tar"]}]' "$1" >"$work/manifest.json"
  tar -C "$work" --mtime=@0 -cf "$work/image.tar" manifest.json config.json layer.tar
  mv "$work/image.tar" "$3"
  rm -r "$work"
}
