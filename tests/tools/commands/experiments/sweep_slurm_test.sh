#!/usr/bin/env bash
# A sweep as a job array on a real Slurm: one node, started here and stopped at the end. The scripts for clusters too: its prolog and epilog,
# and a clock for each rank, on two GPUs that only Slurm believes in and an nvidia-smi that writes down what it is told.
# Usage: sweep_slurm_test.sh RUBATO; exit status 77: skipped.
set -euo pipefail
PATH=$PATH:/usr/sbin
rubato=$(realpath "$1")
skip() { echo "skipped: $1"; exit 77; }
for program in munged slurmctld slurmd sbatch; do
  command -v "$program" > /dev/null || skip "no $program here (Debian: slurm-wlm, munge)"
done

folder=$(mktemp -d /tmp/rubato_slurm_XXXXXX)
daemons=()
stop() {
  local pid
  for pid in "${daemons[@]}"; do kill "$pid" 2> /dev/null || true; done
  for pid in "${daemons[@]}"; do wait "$pid" 2> /dev/null || true; done
  rm -rf "$folder"
}
trap stop EXIT

# patient SECONDS COMMAND...: waits until the command succeeds.
patient() {
  local left=$(($1 * 10)); shift
  until "$@" > /dev/null 2>&1; do
    left=$((left - 1))
    [ "$left" -gt 0 ] || return 1
    sleep 0.1
  done
}

user=$(id -un) host=$(hostname -s) port=$((20000 + RANDOM % 20000))
dd if=/dev/urandom of="$folder/munge.key" bs=1024 count=1 status=none
chmod 400 "$folder/munge.key"
munged --foreground --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" \
  --pid-file="$folder/munge.pid" --log-file="$folder/munge.log" --seed-file="$folder/munge.seed" > "$folder/munged.out" 2>&1 &
daemons+=($!)
patient 10 test -S "$folder/munge.socket" || skip "munged does not start: $(tail -n 1 "$folder/munged.out")"

mkdir "$folder/state" "$folder/spool" "$folder/bin"
scripts=$(realpath "$(dirname "$0")/../../../../tools/packaging/clusters")
printf '#!/bin/bash\necho "$*" >> "%s"\n' "$folder/told" > "$folder/bin/nvidia-smi"
printf '#!/bin/bash\nPATH=%s exec %s/give_clocks_back\n' "$folder/bin" "$scripts" > "$folder/give_back"
ln -s /bin/true "$folder/bin/rubato"
chmod +x "$folder/bin/nvidia-smi" "$folder/give_back"
ln -s /dev/null "$folder/gpu0" && ln -s /dev/zero "$folder/gpu1"  # Slurm wants devices
echo "Name=gpu File=$folder/gpu[0-1]" > "$folder/gres.conf"
cat > "$folder/slurm.conf" <<CONF
ClusterName=rubato
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
SlurmctldPort=$port
SlurmdPort=$((port + 1))
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_interval=1,batch_sched_delay=0
MinJobAge=600
GresTypes=gpu
Prolog=$folder/give_back
Epilog=$folder/give_back
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 Gres=gpu:2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$folder/slurm.conf
slurmctld -D > "$folder/slurmctld.out" 2>&1 &
daemons+=($!)
slurmd -D > "$folder/slurmd.out" 2>&1 &
daemons+=($!)
idle() { sinfo -h -o %T | grep -q idle; }
patient 30 idle || skip "slurm does not start: $(tail -n 1 "$folder/slurmctld.log" "$folder/slurmd.log" | tr '\n' ' ')"

cd "$folder"
cat > e.toml <<'TOML'
schema = 1
name = "it's a \"sweep\" $HOME; rm"
[axes]
gpu = "rtx-3080-ti"
model = "gpt3-xl"
batch = [1, 2, 3, 4, 5, 6]
sequence = 1024
granularity = ["pass", "kernel"]
TOML
# The program fails once for shard 2, so that its retry is seen.
cat > flaky <<SCRIPT
#!/bin/bash
case "\$*" in *"--shard 2/3"*) [ -e "$folder/failed" ] || { touch "$folder/failed"; exit 4; } ;; esac
exec '$rubato' "\$@"
SCRIPT
chmod +x flaky
"$rubato" experiment slurm e.toml --db merged.db --shards 3 --program ./flaky --submit > submitted.txt
cat submitted.txt
merge=$(awk '{print $4}' submitted.txt)
ended() { squeue -h -j "$merge" -t all -o %T | grep -qE 'COMPLETED|FAILED|CANCELLED'; }
if ! patient 90 ended; then
  echo "the jobs did not end"; squeue -t all; tail -n 5 e-slurm/logs/* slurmctld.log slurmd.log
  exit 1
fi
state=$(squeue -h -j "$merge" -t all -o %T)
"$rubato" experiment run e.toml --db whole.db 2> whole.txt
fail() { echo "$1"; cat e-slurm/logs/*.log; exit 1; }
[ "$state" = COMPLETED ] || fail "the merge job is $state"
grep -q 'attempt 1 of 3 ended with status 4' e-slurm/logs/2.log || fail "shard 2 was not retried"
"$rubato" compare merged.db whole.db --tolerance 0 > compared.txt || fail "merged and whole differ"
grep -q '12 questions in both, 0 differ; 0 only in A, 0 only in B' compared.txt || fail "$(cat compared.txt)"

rm -f told
PATH=$folder/bin:$PATH srun -n 2 --gres=gpu:2 "$scripts/clocks_of_rank" 900,1110 bash -c 'echo "train $SLURM_PROCID" >> told'
given_back() { [ "$(grep -c -- "-rac" told)" = 4 ]; }  # of both GPUs, before and after
patient 30 given_back || fail "the prolog or the epilog did not run: $(cat told)"
back=$(printf -- '-i %s\n' '0 -rgc' '0 -rmc' '0 -rac' '1 -rgc' '1 -rmc' '1 -rac')
[ "$(head -6 told)" = "$back" ] && [ "$(tail -6 told)" = "$back" ] || fail "prolog or epilog: $(cat told)"
for rank in 0 1; do
  mhz=$((900 + 210 * rank))
  [ "$(sed '1,6d' told | head -n -6 | grep -e "-i $rank\|train $rank")" = "-i $rank -lgc $mhz,$mhz
train $rank
-i $rank -rgc" ] || fail "rank $rank: $(cat told)"
done
echo "2 passed, 0 failed: clocks of two ranks set and given back; 3 shards with one retry, merged to the same results as one run"
