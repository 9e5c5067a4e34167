#!/bin/bash
# gpu.sh BIN: jobs on a machine with a GPU get exactly their devices. BIN holds
# muster and muster-dev (make build). Needs python3 and the driver's libcuda.so.1,
# and root. Takes a minute, and ends what it has started. Exit code 0: all holds.
set -u
BIN=$(cd "$1" && pwd); W=$(mktemp -d); export XDG_CONFIG_HOME=$W/cfg HOME=$W; mkdir -p $W/cfg
fails=0; check() { if eval "$2"; then echo "  ok    $1"; else echo "  WRONG $1: [$2]"; fails=$((fails+1)); fi; }
cat > $W/see.py <<'P'
import ctypes, os, sys, time
c = ctypes.CDLL("libcuda.so.1"); n = ctypes.c_int(0)
r = c.cuInit(0)
if r == 0: c.cuDeviceGetCount(ctypes.byref(n))
ids = []
for i in range(n.value):
    d = ctypes.c_int(0); u = (ctypes.c_ubyte * 16)()
    c.cuDeviceGet(ctypes.byref(d), i)
    (getattr(c, "cuDeviceGetUuid_v2", None) or c.cuDeviceGetUuid)(u, d)
    h = bytes(u).hex(); ids.append("GPU-%s-%s-%s-%s-%s" % (h[:8], h[8:12], h[12:16], h[16:20], h[20:]))
print("cuInit", r, "devices", n.value, ",".join(ids), "visible", os.environ.get("CUDA_VISIBLE_DEVICES", "unset"), "cpus", len(os.sched_getaffinity(0)), "granted", os.environ.get("MUSTER_CPUS"), flush=True)
if len(sys.argv) > 1 and n.value:
    ctx = ctypes.c_void_p(); p = ctypes.c_uint64()
    r1 = c.cuCtxCreate_v2(ctypes.byref(ctx), 0, 0); r2 = c.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(1 << 30))
    r3 = c.cuMemsetD8_v2(p, 7, ctypes.c_size_t(1 << 30)); r4 = c.cuCtxSynchronize()
    print("holds 1 GiB", r1, r2, r3, r4, flush=True); time.sleep(float(sys.argv[1]))
P
job() { # NAME GPUS ARGS...
  n=$1; g=$2; shift 2; a=$(printf '"%s",' "$@")
  echo "{\"kind\":\"Job\",\"metadata\":{\"name\":\"$n\"},\"spec\":{\"backoffLimit\":0,\"template\":{\"spec\":{\"resources\":{\"requests\":{\"cpu\":\"2\",\"memory\":\"2Gi\"${g:+,\"nvidia.com/gpu\":\"$g\"}}},\"command\":[${a%,}]}}}}" > $W/$n.json
  $BIN/muster submit -f $W/$n.json > /dev/null || fails=$((fails+1)); }
phase() { $BIN/muster get job $1 -o json | python3 -c 'import json,sys; print(json.load(sys.stdin)["status"]["phase"])'; }
member() { $BIN/muster get job $1 -o json | python3 -c 'import json,sys; print(json.load(sys.stdin)["status"]["allocations"][0])'; }
await() { for i in $(seq 200); do p=$(phase $1); case $p in Succeeded|Failed|Cancelled) return;; esac; sleep 0.2; done; echo "$1 is $p"; }
out() { for d in $W/data/nodes/*/run/*; do grep -q -- "$1" $d/spec 2>/dev/null && cat $d/log.* ; done; }
$BIN/muster dev --run-as root --data-dir $W/data --listen 127.0.0.1:18470 > $W/dev.log 2>&1 & DEV=$!
for i in $(seq 120); do grep -q "Ctrl-C stops" $W/dev.log && break; sleep 0.5; done; sed -n 1,12p $W/dev.log
$BIN/muster get nodes; nvidia-smi -L
echo "1. a job with one GPU sees that GPU; a job without sees none"
job one 1 python3 $W/see.py; await one; L=$(out '"one-mark\|see.py"'); echo "     $L"
check "one succeeded" '[ "$(phase one)" = Succeeded ]'
check "it sees one device, the granted one" 'echo "$L" | grep -q "devices 1 GPU-" && u=$(echo "$L" | sed "s/.*devices 1 \([^ ]*\).*/\1/") && echo "$L" | grep -q "visible $u"'
check "it runs on its CPUs alone" 'echo "$L" | grep -q "cpus 2 "'
rm -rf $W/x; mkdir $W/x; cp $W/see.py $W/x/none.py; job none "" python3 $W/x/none.py; await none; L=$(out none.py); echo "     $L"
check "a job without a GPU sees none" 'echo "$L" | grep -q "devices 0 "'
echo "2. two shares of one GPU run side by side"
cp $W/see.py $W/x/left.py; cp $W/see.py $W/x/right.py
job left 0.5 python3 $W/x/left.py 8; job right 0.5 python3 $W/x/right.py 8; sleep 5
nvidia-smi --query-compute-apps=pid,used_memory --format=csv; A=$(phase left); B=$(phase right)
check "both run at once" '[ "$A $B" = "Running Running" ]'
await left; await right; out left.py | sed 's/^/     /'; out right.py | sed 's/^/     /'
check "both held memory and succeeded" '[ "$(phase left) $(phase right)" = "Succeeded Succeeded" ] && [ "$( (out left.py; out right.py) | grep -c "holds 1 GiB 0 0 0 0")" = 2 ]'
echo "3. a cancelled job gets SIGTERM and its grace; the GPU is free after"
cp $W/see.py $W/x/long.py; job long 1 python3 $W/x/long.py 600; sleep 4; $BIN/muster cancel job long > /dev/null 2>&1 || $BIN/muster delete job long > /dev/null; sleep 3
check "no process is left on the GPU" '[ -z "$(nvidia-smi --query-compute-apps=pid --format=csv,noheader)" ]'
echo "4. a killed supervisor is no success, and leaves nothing on the GPU"
cp $W/see.py $W/x/lost.py; job lost 1 python3 $W/x/lost.py 600; sleep 5
kill -9 $(grep -l lost.py $W/data/nodes/*/run/*/spec | xargs -n1 dirname | xargs -I{} python3 -c 'import json; print(json.load(open("{}/begun"))["pid"])'); await lost; echo "     $(member lost)"
check "it failed as SupervisorLost" 'member lost | grep -q SupervisorLost'
check "no process is left on the GPU" '[ -z "$(nvidia-smi --query-compute-apps=pid --format=csv,noheader)" ]'
echo "5. work outlives muster dev, and the next one reports its end"
cp $W/see.py $W/x/keeps.py; job keeps 1 python3 $W/x/keeps.py 12; sleep 4; kill -9 $DEV; sleep 1
check "the process runs on without a cluster" 'pgrep -f keeps.py > /dev/null'
$BIN/muster dev --run-as root --data-dir $W/data --listen 127.0.0.1:18470 > $W/dev2.log 2>&1 & DEV=$!
for i in $(seq 120); do grep -q "Ctrl-C stops" $W/dev2.log && break; sleep 0.5; done; await keeps; echo "     $(member keeps)"
check "it succeeded, and was started once" '[ "$(phase keeps)" = Succeeded ] && [ $(out keeps.py | grep -c cuInit) = 1 ]'
kill -INT $DEV; wait $DEV 2>/dev/null
echo; [ $fails = 0 ] && rm -rf "$W" && echo "all checks hold" || echo "$fails checks are WRONG; logs in $W"; exit $((fails > 0))
