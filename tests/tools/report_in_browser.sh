#!/usr/bin/env bash
# Opens reports in headless Chromium: they must draw every chart without an error.
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
failed=0

# draw PAGE: runs its script; no message may reach the console.
draw() {
  "$browser" --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
    --disable-component-update --disable-sync --user-data-dir="$folder/profile" --enable-logging=stderr \
    --virtual-time-budget=5000 --dump-dom "file://$1" > "$folder/dom.html" 2> "$folder/log.txt"
  if grep 'CONSOLE' "$folder/log.txt"; then
    echo "the page wrote to the console"
    failed=1
  fi
}

# expect COUNT PATTERN: how often a pattern occurs in the page as drawn.
expect() {
  local found
  found=$({ grep -o -- "$2" "$folder/dom.html" || true; } | wc -l)
  if [ "$found" -ne "$1" ]; then
    echo "expected $1 times '$2', found $found"
    failed=1
  fi
}

"$rubato" reproduce spaan2026 --db "$folder/r.db" > "$folder/table.txt"
"$rubato" report --db "$folder/r.db" -o "$folder/report.html"
draw "$folder/report.html"
expect 3 '<svg viewBox="0 0 900'
expect 3 '<path class="front"'
expect 8 'class="mark published"'
expect 46 'class="row"'
expect 66 'class="cell"'

# 12 settings of 3 units, and a scenario whose name must stay text.
cat > "$folder/e.toml" <<'TOML'
schema = 1
name = "<script>alert(1)</script> & \"co\""
[axes]
gpu = "rtx-3080-ti"
model = "gpt3-xl"
batch = [4, 8, 16]
sequence = [512, 1024]
switch_stall_us = [0, 100]
clocks = "mem=5001,auto core=1470,1680,auto"
granularity = ["iteration", "pass", "kernel"]
[scenario."</script><b>bold"]
gpu = "rtx-3080-ti"
trace = "gpt3-xl"
goal = "time"
energy_budget_j = 1
TOML
"$rubato" sweep run "$folder/e.toml" --db "$folder/e.db" 2> "$folder/sweep.txt"
"$rubato" report --db "$folder/e.db" --experiment latest -o "$folder/e.html"
draw "$folder/e.html"
expect 5 'data-ready-ms=\|<h1 id="title">&lt;script&gt;alert(1)&lt;/script&gt; &amp; "co"</h1>\|37 of 37 units\|12 of 13 settings that save most'
expect 3 '<svg viewBox="0 0 900'   # fronts, latency, kernels
expect 6 'class="panel"'           # batch x sequence
expect 36 'class="unit"'
expect 6 'class="front"'           # three granularities of two settings
expect 3 'class="latency"'
expect $((12 * 46)) 'class="cell"'
expect 37 'class="unit-row"'
expect 0 '<b>bold'
# Captured runs in an experiment: 4 units of 2 settings, a front of single clocks each.
cat > "$folder/captured.toml" <<TOML
schema = 1
name = "captured"
[axes]
gpu = "a100-sxm4-80gb"
capture = "$(cd "$(dirname "$0")/../.." && pwd)/docs/examples/run.pt.trace.json.gz"
clocks = "coarse"
granularity = ["iteration", "kernel"]
slack_pct = 1
switch_latency_us = [1000, 22000]
TOML
"$rubato" sweep run "$folder/captured.toml" --db "$folder/captured_sweep.db" 2> "$folder/sweep.txt"
"$rubato" report --db "$folder/captured_sweep.db" --experiment latest -o "$folder/captured_sweep.html"
draw "$folder/captured_sweep.html"
expect 2 '4 of 4 units'     # title and table
expect 4 'class="unit-row"'
expect 2 'class="front"'
expect 2 'class="latency"'
expect 0 'class="cell"'
# A captured run: the answer, 82 single clocks at most, two plans, one row per kernel.
run=$(cd "$(dirname "$0")/../.." && pwd)/docs/examples/run.pt.trace.json.gz
"$rubato" explore "$run" --captured-clock 1593/1410 --slack 5 --granularity iteration,kernel --db "$folder/c.db" > "$folder/captured.txt" 2>&1
"$rubato" report --db "$folder/c.db" -o "$folder/c.html"
draw "$folder/c.html"
expect 1 '<b>memory 1593 MHz, core 1005 MHz</b>'
expect 3 '<svg viewBox="0 0 900'   # coverage, time against energy, kernels
expect 1 'class="bound"'
expect 2 '<g class="plan"'
expect 40 '<g class="row"'
[ "$failed" -eq 0 ] && echo "3 passed, 0 failed"
exit "$failed"
