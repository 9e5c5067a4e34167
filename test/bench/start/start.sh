#!/bin/bash
# The time from the call of a client's program to the first instruction of the command, of
# Muster and of Debian's Slurm on this host, one submission after the other:
#
#   start.sh muster BIN [COUNT]   BIN is a folder with muster and muster-shim
#   start.sh sbatch [COUNT]       needs root, and the packages slurmctld slurmd slurm-client munge
#   start.sh srun [COUNT]         the same with srun, which waits for its job
#
# Both start their own daemons in a folder of /tmp, and end them. The command writes a byte
# into a pipe that the script reads. COUNT is 30. The client's program is part of the time in
# all cases. Slurm gathers batch jobs for up to 3 s before it schedules them; batch_sched_delay=0
# ends that here, so that its own path is measured. The last line has the form of a Go
# benchmark, which `make bench-check` reads.
set -eu
what=${1:?muster BIN, sbatch or srun}
shift
dir=$(mktemp -d /tmp/start.XXXXXX)
chmod 0755 "$dir"
daemons=()
end() {
	for pid in "${daemons[@]}"; do kill "$pid" 2>/dev/null || true; done
	for pid in "${daemons[@]}"; do wait "$pid" 2>/dev/null || true; done
	rm -rf "$dir"
}
trap end EXIT
mkfifo -m 0666 "$dir/pipe"
exec 9<>"$dir/pipe" # so that neither side waits for the other

case $what in
muster)
	bin=${1:?the folder with muster and muster-shim}
	count=${2:-30}
	export MUSTER_CONTEXT="$dir/context"
	user=()
	if [ "$(id -u)" = 0 ]; then user=(--run-as nobody); fi
	"$bin/muster" dev --nodes 1 --profile dgx-a100 --data-dir "$dir/data" --listen 127.0.0.1:0 "${user[@]}" >"$dir/log" 2>&1 &
	daemons+=($!)
	until [ -s "$MUSTER_CONTEXT" ]; do
		kill -0 "${daemons[0]}" || { cat "$dir/log"; exit 1; }
		sleep 0.2
	done
	submit() {
		printf '{"kind":"Job","metadata":{"name":"start-%s"},"spec":{"parallelism":1,"template":{"spec":{"resources":{"requests":{"cpu":"100m","memory":"1Mi"}},"command":["/bin/sh","-c","printf x > %s"]}}}}' \
			"$1" "$dir/pipe" >"$dir/job.json"
		"$bin/muster" submit -f "$dir/job.json" >/dev/null
	}
	ended() { "$bin/muster" get job "start-$1" -o 'jsonpath={.status.phase}' | grep -q Succeeded; }
	;;
sbatch | srun)
	count=${1:-30}
	mkdir "$dir/state" "$dir/spool"
	dd if=/dev/urandom of="$dir/key" bs=128 count=1 status=none
	chmod 0400 "$dir/key"
	munged --foreground --force --key-file "$dir/key" --socket "$dir/munge" --pid-file "$dir/munged.pid" --log-file "$dir/munged.log" --seed-file "$dir/seed" >"$dir/munged.out" 2>&1 &
	daemons+=($!)
	host=$(hostname -s)
	cat >"$dir/slurm.conf" <<CONF
ClusterName=start
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
AuthType=auth/munge
AuthInfo=socket=$dir/munge
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0
ReturnToService=2
MpiDefault=none
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
CONF
	export SLURM_CONF="$dir/slurm.conf"
	sleep 1
	slurmctld -D >"$dir/slurmctld.out" 2>&1 &
	daemons+=($!)
	slurmd -D >"$dir/slurmd.out" 2>&1 &
	daemons+=($!)
	for _ in $(seq 60); do
		if sinfo -h -o %t 2>/dev/null | grep -q idle; then break; fi
		sleep 1
	done
	sinfo -h -o %t | grep -q idle || { tail "$dir"/*.log; exit 1; }
	printf '#!/bin/sh\nprintf x > %s\n' "$dir/pipe" >"$dir/job"
	chmod 0755 "$dir/job"
	cd "$dir"
	submit() {
		if [ "$what" = srun ]; then
			srun -Q "$dir/job"
		else
			sbatch -Q -o /dev/null "$dir/job" >/dev/null
		fi
	}
	ended() { [ -z "$(squeue -h)" ]; }
	;;
*)
	echo "start.sh: $what: want muster BIN, sbatch or srun" >&2
	exit 2
	;;
esac

for i in $(seq "$count"); do
	submit "$i" &
	# The client's answer may come after the first instruction, so the time of the call is that before it.
	at=$EPOCHREALTIME
	read -r -n 1 -u 9 _
	now=$EPOCHREALTIME
	echo $((${now/[.,]/} - ${at/[.,]/}))
	wait $!
	until ended "$i"; do sleep 0.05; done
done | sort -n | awk -v what="$what" '{ t[NR] = $1 / 1000 } END {
	printf "BenchmarkStart/%s %d %.1f p50-ms %.1f p99-ms %.1f greatest-ms\n", what, NR, t[int((NR + 1) / 2)], t[int((NR * 99 + 99) / 100)], t[NR]
}'
