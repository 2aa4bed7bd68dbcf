#!/usr/bin/env bash
# Runs make targets one after the other and stops at the first that fails.
# The last lines say how long each took and how many tests passed.
set -uo pipefail

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
times="" failed=""
for stage in "$@"; do
  echo "== $stage"
  began=$SECONDS
  make --no-print-directory "$stage" 2>&1 | tee "$logs/$stage" || failed=$stage
  times+=$(printf '%-8s %5d s' "$stage" $((SECONDS - began)))$'\n'
  [ -z "$failed" ] || break
done

# Sums `N passed` and `N failed` over the closing lines of nextest and of cargo test.
counts=$(cat "$logs"/* | awk '
  /^ *Summary \[/ || /^test result: / {
    for (i = 2; i <= NF; i++) {
      if ($i ~ /^passed/) passed += $(i - 1)
      if ($i ~ /^failed/ || $i ~ /^timed/) failed += $(i - 1)
    }
  }
  / is SKIPPED: / { skipped++ }
  END { printf "%d passed, %d failed, %d suites skipped\n", passed, failed, skipped }')

echo
printf '%s%-8s %5d s\n' "$times" total "$SECONDS"
[ -z "$failed" ] || echo "stage $failed failed"
echo "$counts"
[ -z "$failed" ]
