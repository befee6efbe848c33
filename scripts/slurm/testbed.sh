#!/usr/bin/env bash
# A private Slurm on this machine, for tests and for trying things out: no root services, everything in one folder.
#   scripts/slurm/testbed.sh start DIR [NODES=3] [CPUS=1]     then: export SLURM_CONF=DIR/slurm.conf
#   scripts/slurm/testbed.sh stop DIR       cancels what is queued and ends the daemons that were started there, by pid
# Nodes are n1, n2, ...; there are no cgroups, so a task can use cores that it was not granted. DIR must be short:
# munge's socket in it is a Unix socket, whose path has at most 107 characters.
set -euo pipefail

usage() {
  sed -n '3,6s/^# \{0,1\}//p' "$0"
}

fail() {  # CODE MESSAGE
  echo "testbed.sh: $2" >&2
  exit "$1"
}

number() {  # NAME VALUE: VALUE if it is a number of at least 1
  [[ $2 =~ ^[1-9][0-9]{0,3}$ ]] || fail 2 "$1 '$2': expected a number from 1 to 9999"
  echo "$2"
}

# wait_for TENTHS COMMAND...: succeeds as soon as the command does, fails after that many tenths of a second
wait_for() {
  local tenths=$1
  shift
  for ((i = 0; i < tenths; ++i)); do
    "$@" > /dev/null 2>&1 && return
    sleep 0.1
  done
  return 1
}

free_ports() {  # COUNT different TCP ports that nothing listens on
  /usr/bin/python3 -c '
import socket, sys
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*(s.getsockname()[1] for s in held))' "$1"
}

write_configuration() {  # NODES CPUS
  local host user ports
  host=$(hostname -s)
  user=$(id -un)
  read -ra ports <<< "$(free_ports $(($1 + 1)))"
  # cred_expire: how long a requeued task waits (121 s otherwise). SlurmdTimeout: when a silent node counts as down.
  cat << EOF_CONF
ClusterName=attnbench
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=${ports[0]}
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$folder/run/munge.sock,cred_expire=5
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
SlurmctldPidFile=$folder/run/slurmctld.pid
SlurmdPidFile=$folder/run/slurmd.%n.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,sched_min_interval=0,batch_sched_delay=0,bf_interval=1
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
SlurmdParameters=config_overrides
ReturnToService=2
JobRequeue=1
SlurmdTimeout=10
SlurmctldTimeout=10
InactiveLimit=0
KillWait=2
MinJobAge=600
MaxArraySize=10001
MailProg=/bin/true
EOF_CONF
  for ((node = 1; node <= $1; ++node)); do
    echo "NodeName=n$node NodeHostname=$host NodeAddr=127.0.0.1 Port=${ports[node]} CPUs=$2 State=UNKNOWN"
  done
  echo "PartitionName=main Nodes=n[1-$1] Default=YES MaxTime=INFINITE State=UP"
}

all_idle() {
  [ "$(sinfo --noheader --Node --states=idle --format=%N | wc -l)" -eq "$1" ]
}

start() {  # NODES CPUS
  local missing=()
  for program in munged slurmctld slurmd sbatch; do
    command -v "$program" > /dev/null || missing+=("$program")
  done
  [ ${#missing[@]} -eq 0 ] ||
    fail 3 "missing: ${missing[*]}; Debian's slurmctld, slurmd, slurm-client and munge have them"
  [ $((${#folder} + 15)) -le 107 ] || fail 2 "$folder: too long for a Unix socket in it; expected at most 92 characters"
  [ ! -e "$folder/slurm.conf" ] || fail 2 "$folder: holds a testbed already; stop it and remove it, or give another"
  mkdir -p "$folder"/{munge,state,spool,log,run}
  chmod 700 "$folder/munge"
  head -c 128 /dev/urandom > "$folder/munge/munge.key"
  chmod 600 "$folder/munge/munge.key"
  write_configuration "$1" "$2" > "$folder/slurm.conf"

  if ! daemons "$1"; then
    stop
    fail 1 "Slurm does not come up; its logs are in $folder/log"
  fi
  echo "export SLURM_CONF=$SLURM_CONF"
}

daemons() {  # NODES: starts the daemons and waits until every node is idle
  munged --force --socket="$folder/run/munge.sock" --key-file="$folder/munge/munge.key" --num-threads=2 \
    --pid-file="$folder/run/munged.pid" --seed-file="$folder/munge/seed" --log-file="$folder/log/munged.log" &&
    wait_for 50 test -S "$folder/run/munge.sock" &&
    slurmctld -c -i -f "$SLURM_CONF" 2>> "$folder/log/start.log" &&
    wait_for 100 sh -c 'scontrol ping | grep -q "is UP"' || return
  for ((node = 1; node <= $1; ++node)); do
    slurmd -N "n$node" -f "$SLURM_CONF" 2>> "$folder/log/start.log" || return
  done
  wait_for 200 all_idle "$1"
}

ended() {  # PID: true if no process has it, or only a zombie
  ! grep -q '^State:' "/proc/$1/status" || grep -q '^State:.Z' "/proc/$1/status"
}

queue_is_empty() {
  [ -z "$(timeout 5 squeue --noheader)" ]
}

stop() {
  [ -e "$folder/slurm.conf" ] || fail 2 "$folder: holds no testbed; expected the folder that start was given"
  # Cancels all jobs: tasks would outlive the daemons, and every job in this queue belongs to this testbed.
  if timeout 5 scancel --user="$(id -un)" 2> /dev/null; then
    wait_for 100 queue_is_empty || true
  fi
  for file in "$folder"/run/slurmd.*.pid "$folder"/run/slurmctld.pid "$folder"/run/munged.pid; do
    [ -s "$file" ] || continue
    pid=$(cat "$file")
    # The pid may belong to a different process by now.
    tr '\0' ' ' < "/proc/$pid/cmdline" 2> /dev/null | grep -qF -- "$folder" || continue
    kill "$pid" || continue
    wait_for 50 ended "$pid" || kill -KILL "$pid"
  done
}

case "${1:-}" in
  -h | --help) usage; exit 0 ;;
  start) if [ $# -lt 2 ] || [ $# -gt 4 ]; then fail 2 "start: expected DIR [NODES] [CPUS]"; fi ;;
  stop) if [ $# -ne 2 ]; then fail 2 "stop: expected DIR"; fi ;;
  *) usage >&2; exit 2 ;;
esac
folder=$(realpath -m "$2")
export SLURM_CONF=$folder/slurm.conf
if [ "$1" = start ]; then
  nodes=$(number NODES "${3:-3}")
  cpus=$(number CPUS "${4:-1}")
  start "$nodes" "$cpus"
else
  stop
fi
