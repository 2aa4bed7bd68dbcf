#!/usr/bin/env bash
# Fetches the releases that the benchmark REL stores: the browser compatibility data of MDN (CC0),
# 12 to 17 MB of JSON each, from the npm package that publishes it. They stay where the benchmark
# looks for them.
set -euo pipefail

folder=${XDG_CACHE_HOME:-$HOME/.cache}/duramen/releases
package=@mdn/browser-compat-data
mkdir -p "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
command -v npm >/dev/null || { echo "install npm first (Debian: npm)" >&2; exit 1; }
for version in 5.3.0 5.4.0 5.5.0 5.6.0 5.7.0 6.0.0 6.1.1 7.0.0; do
  if [ -f "$folder/$version.json" ]; then continue; fi
  echo "fetching $package $version"
  (cd "$work" && npm pack --silent "$package@$version" >/dev/null && tar xzf ./*.tgz package/data.json)
  mv "$work/package/data.json" "$folder/$version.json"
  rm -f "$work"/*.tgz
done
echo "the releases are in $folder"
