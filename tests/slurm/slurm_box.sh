#!/usr/bin/env bash
# A real Slurm in a cluster in a box (docs/reference/slurm.md): slurmctld in the first node, a slurmd in each, munged
# for both.
#
#   slurm_box.sh up FOLDER CPUS…      starts it: one node per number, with so many CPUs (3 2: two nodes, n0 and n1)
#   slurm_box.sh run FOLDER COMMAND…  runs a command in the first node, where sbatch, squeue and so on reach it
#   slurm_box.sh logs FOLDER          prints what the daemons have said
#   slurm_box.sh down FOLDER          ends everything and removes FOLDER
#
# FOLDER must not be there yet; all state, logs and sockets lie in it. CLUSTER_TOOL=PROGRAM is used in place of `tutti
# cluster`, ./tutti of this tree where none is installed. With OWNER=PID it goes down by itself when that process has ended.
# Needs root, iproute2, slurm-wlm and munge; starts nothing outside the cluster's own namespaces.
set -euo pipefail

# An installed tutti, else the one of this tree.
cluster_tool=(tutti cluster)
command -v tutti >/dev/null || cluster_tool=("$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)/tutti" cluster)
[[ -z ${CLUSTER_TOOL:-} ]] || cluster_tool=("$CLUSTER_TOOL")
die() {
  printf 'slurm_box: %s\n' "$*" >&2
  exit 1
}

# Debian keeps daemons where a user's PATH may not reach.
PATH=$PATH:/usr/sbin:/sbin

cluster() {
  local action=$1
  shift
  "${cluster_tool[@]}" "$action" --name "$(<"$folder/name")" "$@"
}
in_node() {
  local node=$1
  shift
  cluster run --node "$node" -- env SLURM_CONF="$folder/slurm.conf" "$@"
}

write_configuration() {
  local node=0 cpus
  # No systemd, no cgroups, no accounts: what is tested is how jobs start, stop and start again.
  cat >"$folder/slurm.conf" <<CONF
ClusterName=box
SlurmctldHost=n0
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
# How long a requeued job waits before it starts again, too; 120 by default.
AuthInfo=socket=$folder/munge/socket,cred_expire=5
StateSaveLocation=$folder/state
SlurmctldPidFile=$folder/slurmctld.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdPidFile=$folder/%n/slurmd.pid
SlurmdLogFile=$folder/%n/slurmd.log
SlurmdSpoolDir=$folder/%n/spool
TmpFS=$folder/%n/tmp
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1,batch_sched_delay=0,sched_min_interval=0
ReturnToService=2
# What a job of the partition 'urgent' needs it takes from those of 'all', which wait in the queue until it is done.
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
CONF
  for cpus in "$@"; do
    mkdir -p "$folder/n$node/spool" "$folder/n$node/tmp"
    printf 'NodeName=n%d CPUs=%d State=UNKNOWN\n' "$node" "$cpus" >>"$folder/slurm.conf"
    node=$((node + 1))
  done
  printf 'PartitionName=%s Nodes=ALL PriorityTier=%d Default=%s MaxTime=INFINITE State=UP\n' \
    all 1 YES urgent 2 NO >>"$folder/slurm.conf"
  printf 'CgroupPlugin=cgroup/v1\n' >"$folder/cgroup.conf"
}

start_munge() {
  (umask 077 && head -c 1024 /dev/urandom >"$folder/munge/key")
  # In a node, so that it ends with the cluster; its socket is a file, which all nodes see.
  cluster run -- munged --force --key-file="$folder/munge/key" --socket="$folder/munge/socket" \
    --pid-file="$folder/munge/pid" --log-file="$folder/munge/log" --seed-file="$folder/munge/seed" 2>"$folder/munge/said" ||
    die "munged did not start: $(cat "$folder/munge/said")"
}

wait_for_nodes() {
  local tries idle
  for ((tries = 0; tries < 600; ++tries)); do
    idle=$(in_node n0 sinfo --noheader --Node --states=idle --format=%N 2>/dev/null | sort -u | wc -l || true)
    [[ $idle -eq $1 ]] && return
    sleep 0.1
  done
  logs >&2
  die "of $1 nodes $idle are ready after 60 s"
}

up() {
  [[ $# -gt 0 ]] || die "how many CPUs per node? For example: up FOLDER 2 2"
  local program node
  for program in munged slurmctld slurmd sbatch; do
    command -v "$program" >/dev/null || die "$program is missing: apt-get install slurm-wlm munge"
  done
  mkdir -m 755 "$folder"
  folder=$(cd -P -- "$folder" && pwd)
  trap down EXIT
  mkdir "$folder/munge" "$folder/state"
  printf 'slurm%d' "$$" >"$folder/name"
  cluster up --nodes "$#" --rate unlimited >"$folder/cluster.log"
  write_configuration "$@"
  start_munge
  in_node n0 slurmctld -c
  for ((node = 0; node < $#; ++node)); do in_node "n$node" slurmd; done
  wait_for_nodes "$#"
  trap - EXIT
  if [[ -n ${OWNER:-} ]]; then setsid "$0" down-after "$folder" "$OWNER" >/dev/null 2>&1 </dev/null & fi
}

# Ends too when somebody else has taken it down.
down_after() {
  while kill -0 "$1" 2>/dev/null; do
    [[ -e $folder/name ]] || exit 0
    sleep 1
  done
  down
}

logs() {
  local file
  for file in "$folder"/slurmctld.log "$folder"/*/slurmd.log; do
    [[ -e $file ]] || continue
    printf -- '--- %s\n' "$file"
    tail -n 40 "$file"
  done
}

down() {
  [[ ! -e $folder/name ]] || cluster down >/dev/null
  rm -rf "$folder"
}

[[ $# -ge 2 ]] || die "what? up FOLDER CPUS…, run FOLDER COMMAND…, logs FOLDER or down FOLDER"
action=$1 folder=$2
shift 2
[[ $action == up ]] || folder=$(cd -P -- "$folder" 2>/dev/null && pwd) || die "$folder is not there"
case $action in
  up) up "$@" ;;
  run) in_node n0 "$@" ;;
  logs) logs ;;
  down) down ;;
  down-after) down_after "$@" ;;
  *) die "unknown action '$action': up, run, logs and down are known" ;;
esac
