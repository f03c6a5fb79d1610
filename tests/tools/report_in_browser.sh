#!/usr/bin/env bash
# Opens a report in headless Chromium: it must draw every chart without an error.
# Usage: report_in_browser.sh RUBATO; exit status 77: skipped.
set -euo pipefail
rubato=$1
browser=$(command -v chromium || command -v chromium-browser || true)
if [ -z "$browser" ]; then
  echo "skipped: no chromium on this machine"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$rubato" reproduce spaan2026 --db "$folder/r.db" > "$folder/table.txt"
"$rubato" report --db "$folder/r.db" -o "$folder/report.html"
"$browser" --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
  --disable-component-update --disable-sync --user-data-dir="$folder/profile" --enable-logging=stderr \
  --virtual-time-budget=5000 --dump-dom "file://$folder/report.html" > "$folder/dom.html" 2> "$folder/log.txt"

failed=0
if grep 'CONSOLE' "$folder/log.txt"; then
  echo "the page wrote to the console"
  failed=1
fi
# expect COUNT PATTERN: how often a pattern occurs in the page as drawn.
expect() {
  local found
  found=$(grep -o -- "$2" "$folder/dom.html" | wc -l)
  if [ "$found" -ne "$1" ]; then
    echo "expected $1 times '$2', found $found"
    failed=1
  fi
}
expect 3 '<svg viewBox="0 0 900'
expect 3 '<path class="front"'
expect 8 'class="mark published"'
expect 46 'class="row"'
expect 66 'class="cell"'
[ "$failed" -eq 0 ] && echo "1 passed, 0 failed"
exit "$failed"
