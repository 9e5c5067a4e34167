#!/bin/sh
# A launcher of your own: it waits for a grant of this host, runs a command on the grant, and
# reports how the command has ended, which ends the grant.
#   launch.sh NAMESPACE/alloc/NAME COMMAND [ARGUMENT...]     (NAMESPACE/job/NAME for a job)
set -eu
assignments=${ASSIGNMENTS:-/var/lib/muster-agent/assignments}
socket=${SOCKET:-/run/muster-agent/attach.sock}
unit=$1
shift

# The document of an assignment has the name of its unit; its file has that of the transaction.
until document=$(grep -ls "\"name\": \"$unit/" "$assignments"/*.json); do sleep 0.2; done
tx=$(basename "$document" .json)

# From here on the grant lasts until this script and all that it starts have ended.
muster-agent attach --socket "$socket" --transaction "$tx" --pid $$

set -a
. "$assignments/$tx.env"
set +a
taskset -pc "$MUSTER_CPUS" $$ > /dev/null || echo "CPUs $MUSTER_CPUS are not bound" >&2

# At a deletion or an eviction all processes get SIGTERM; the script goes on to report the end.
trap : TERM
"$@" &
command=$!
status=0
while wait "$command" || status=$?; kill -0 "$command" 2> /dev/null; do status=0; done
muster-agent done --socket "$socket" --transaction "$tx" --status "$status"
exit "$status"
