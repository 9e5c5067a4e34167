//go:build vm

// Package vm_test is the enforcement suite: the shipped programs, units and configuration
// on a machine with systemd and the unified hierarchy, where a test may do everything.
// test/vm.sh makes the machine, and runs this suite in it as root; nothing else does.
package vm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// limit bounds a command: the machine is emulated.
const limit = 10 * time.Minute

// sh runs a script, which has to succeed, and returns its output.
func sh(t *testing.T, script string) string {
	t.Helper()
	out, err := try(script)
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return out
}

func try(script string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c := exec.CommandContext(ctx, "/bin/sh", "-euc", script)
	c.Env = append(os.Environ(), "HOME=/root", "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "MUSTER_ADDR=http://127.0.0.1:8470")
	if token, err := os.ReadFile("/etc/muster/admin-token"); err == nil {
		c.Env = append(c.Env, "MUSTER_TOKEN="+strings.TrimSpace(string(token)))
	}
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	return out.String(), err
}

// until waits until a script succeeds.
func until(t *testing.T, script string) string {
	t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(500 * time.Millisecond) {
		out, err := try(script)
		if err == nil {
			return out
		}
		if time.Now().After(end) {
			logs, _ := try("journalctl -b --no-pager -n 60 -u muster-agent -u muster-coordinator -u muster-launch")
			t.Fatalf("%s: %v\n%s\n%s", script, err, out, logs)
		}
	}
}

// TestMain installs Muster as docs/install.md and docs/work.md say, with two users of
// tenants and the helper of systemd.
func TestMain(m *testing.M) {
	if out, err := try(install); err != nil {
		fmt.Fprintf(os.Stderr, "install: %v\n%s\n", err, out)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

const install = `
install -m 0755 bin/* /usr/local/bin/
useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin muster
useradd --create-home ada
useradd --create-home bob
install -d -m 0755 /etc/muster
for name in token admin-token; do
	install -m 0600 -o muster -g muster /dev/null /etc/muster/$name
	head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' > /etc/muster/$name
done
install -m 0644 systemd/muster-agent.yaml systemd/muster-coordinator.yaml /etc/muster/
sed -i 's/^  join: \[\]/  join: ["127.0.0.1:7948"]/' /etc/muster/muster-agent.yaml
install -m 0644 systemd/*.service systemd/*.socket /etc/systemd/system/
# attach has users too, which are those of work.
sed -i '0,/^  users: {}/s|^  users: {}|  users: {default: ada, other: bob}|; s|^  helper: .*|  helper: /run/muster-launch.sock|; s|^  tasks: .*|  tasks: 64|' /etc/muster/muster-agent.yaml
sed -i 's|^  # images: .*|  images: [/srv/images]|; s|^  # mounts: .*|  mounts: [/srv/data]|' /etc/muster/muster-agent.yaml
for name in bin dev etc mnt proc sys tmp; do
	install -d /srv/images/tiny/$name
done
install -m 0755 "$(command -v busybox)" /srv/images/tiny/bin/busybox
for name in cat grep id sh; do
	ln -s busybox /srv/images/tiny/bin/$name
done
install -d /srv/data
echo open >/srv/data/file
install -m 0600 /etc/hostname /srv/data/closed
sed -i 's|^startsWork: .*|startsWork: true|; s|^leaseTTL: .*|leaseTTL: 1m|' /etc/muster/muster-coordinator.yaml
chmod 0666 /dev/kmsg
# The machine is emulated: its programs need more time than a real host's.
for unit in muster-agent muster-coordinator muster-launch; do
	install -d /etc/systemd/system/$unit.service.d
	printf '[Service]\nTimeoutStartSec=600\nWatchdogSec=300\n' > /etc/systemd/system/$unit.service.d/slow.conf
done
systemctl daemon-reload
systemctl enable --now muster-launch.socket
systemctl start muster-coordinator muster-agent
`

// run runs a command by muster run, and returns the lines of its output and its exit code.
func run(t *testing.T, flags, script string) (out string, code int) {
	t.Helper()
	out, err := try("muster run " + flags + " -- sh -c '" + script + "'")
	return out, exitCode(t, err)
}

// exitCode is the exit code of a command that has run.
func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		t.Fatal(err)
	}
	return exit.ExitCode()
}

func TestTheInstalledAgentHasNoRights(t *testing.T) {
	until(t, "muster get nodes --no-headers | grep -w Ready")
	pid := strings.TrimSpace(sh(t, "systemctl show -p MainPID --value muster-agent"))
	status := sh(t, "grep -E '^(Uid|CapEff|CapBnd):' /proc/"+pid+"/status")
	if !strings.Contains(status, "CapEff:\t0000000000000000") || !strings.Contains(status, "CapBnd:\t0000000000000000") || strings.Contains(status, "Uid:\t0") {
		t.Errorf("the agent has %s", status)
	}
	if logs := sh(t, "journalctl -b --no-pager -u muster-agent"); strings.Contains(logs, "work_not_enforced") {
		t.Errorf("the agent says that it does not enforce everything:\n%s", regexp.MustCompile(`.*work_not_enforced.*`).FindString(logs))
	}
}

// TestTheLimitsOfACommand reads each limit where the kernel enforces it.
func TestTheLimitsOfACommand(t *testing.T) {
	out, code := run(t, "--name limits --cpu 1 --memory 256Mi", `id -un; pwd; grep -E "^(Cpus|Mems)_allowed_list|^NoNewPrivs|^CapBnd" /proc/self/status; g=/sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup); echo $g; for f in memory.max pids.max hugetlb.2MB.max cpuset.cpus; do echo $f $(cat $g/$f); done; head -c1 /dev/zero >/dev/null && echo zero; (: </dev/kmsg) 2>&1 | sed s/.*cannot/cannot/; systemctl show -p Slice,MemoryMax,TasksMax,DevicePolicy,User,KillMode $(basename $(dirname $g))`)
	t.Log(out)
	if code != 0 {
		t.Fatalf("code %d", code)
	}
	for _, want := range []string{
		"ada\n", "/home/ada\n", "NoNewPrivs:\t1", "CapBnd:\t0000000000000000", "/sys/fs/cgroup/muster.slice/muster-work-", "/work\n", "memory.max 268435456", "pids.max 64", "hugetlb.2MB.max 0", "zero\n",
		"Operation not permitted", "Slice=muster.slice", "MemoryMax=285212672", "TasksMax=96", "DevicePolicy=closed", "KillMode=mixed",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output has no %q", want)
		}
	}
	cpus := regexp.MustCompile(`Cpus_allowed_list:\t(\S+)`).FindStringSubmatch(out)
	if cpus == nil || !strings.Contains(out, "cpuset.cpus "+cpus[1]+"\n") || strings.ContainsAny(cpus[1], ",-") {
		t.Errorf("CPUs %v, want one, which is that of the cgroup", cpus)
	}
	if mems := regexp.MustCompile(`Mems_allowed_list:\t(\S+)`).FindStringSubmatch(out); mems == nil || strings.ContainsAny(mems[1], ",-") {
		t.Errorf("NUMA nodes %v, want one", mems)
	}
}

func TestACommandThatTakesMoreMemoryIsKilled(t *testing.T) {
	_, code := run(t, "--name hog --cpu 1 --memory 64Mi", "head -c 300M /dev/zero | tail -n 1 | wc -c; exit 5")
	if code != 5 {
		t.Errorf("code %d, want that the shell goes on", code)
	}
	var job struct {
		Status struct {
			Allocations []struct {
				Use struct {
					OOMKills        int
					PeakMemoryBytes any
				}
			}
		}
	}
	text := sh(t, "muster get job hog -o json")
	if err := json.Unmarshal([]byte(text), &job); err != nil {
		t.Fatal(err)
	}
	if a := job.Status.Allocations; len(a) != 1 || a[0].Use.OOMKills < 1 {
		t.Errorf("the job has the use %+v, want a kill for lack of memory\n%s", a, text)
	}
}

func TestACommandHasNoMoreTasksThanItsBound(t *testing.T) {
	out, _ := run(t, "--name bomb --cpu 1 --memory 128Mi", "i=0; while [ $i -lt 100 ]; do sleep 900 & i=$((i+1)); done 2>&1; echo all")
	if strings.Contains(out, "all\n") || !strings.Contains(strings.ToLower(out), "fork") {
		t.Errorf("output %q, want that a process is refused", out)
	}
}

// started starts a job that runs until it is ended, and returns the folder of its start.
func started(t *testing.T, name, script string) (folder string) {
	t.Helper()
	sh(t, "nohup muster run --name "+name+" --cpu 1 --memory 64Mi -- sh -c '"+script+"' >/tmp/"+name+".out 2>&1 & echo $! >/tmp/"+name+".pid")
	until(t, "grep ready /tmp/"+name+".out")
	return strings.TrimSpace(sh(t, "ls -td /var/lib/muster-agent/run/*.0.0 | head -1")) // the newest
}

func pidOf(t *testing.T, file string) int {
	t.Helper()
	var p struct{ PID int }
	if err := json.Unmarshal([]byte(sh(t, "cat "+file)), &p); err != nil {
		t.Fatal(err)
	}
	return p.PID
}

// TestNothingOutlivesAKilledSupervisor: systemd kills what has left the session and has no
// trace in its environment. The agent could not: it has no right to.
func TestNothingOutlivesAKilledSupervisor(t *testing.T) {
	folder := started(t, "lost", `env -i setsid sh -c "trap : TERM; while :; do /bin/sleep 1; done" & echo ready; wait`)
	begun := pidOf(t, folder+"/begun")
	unit := filepath.Base(strings.TrimSpace(sh(t, fmt.Sprintf("sed -n s/^0:://p /proc/%d/cgroup | xargs dirname", begun))))
	group := "/sys/fs/cgroup/muster.slice/" + unit
	if n, _ := strconv.Atoi(strings.TrimSpace(sh(t, "wc -l <"+group+"/work/cgroup.procs"))); n < 2 {
		t.Errorf("%d processes in the cgroup of the command", n)
	}
	if err := syscall.Kill(begun, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "test ! -e "+group)
	until(t, "muster get job lost -o json | grep SupervisorLost")
	sh(t, "muster delete job lost")
}

// TestWorkOutlivesTheAgentAndTheHelper: restarts of both, and of the coordinator, touch no command.
func TestWorkOutlivesTheAgentAndTheHelper(t *testing.T) {
	folder := started(t, "stays", "echo ready; until [ -e /tmp/go ]; do sleep 0.2; done; exit 3")
	command := pidOf(t, folder+"/started")
	sh(t, "systemctl restart muster-agent; systemctl restart muster-launch; systemctl restart muster-coordinator")
	until(t, "muster get nodes --no-headers | grep -w Ready")
	if err := syscall.Kill(command, 0); err != nil {
		t.Fatalf("the command has ended: %v", err)
	}
	sh(t, "touch /tmp/go")
	until(t, `muster get job stays -o json | grep -E '"exitCode": 3'`)
}

// TestACommandIsStopped: the supervisor may signal the processes of another user.
func TestACommandIsStopped(t *testing.T) {
	started(t, "stopped", `trap "echo stopping; exit 0" TERM; echo ready; while :; do sleep 0.2; done`)
	sh(t, "muster cancel job stopped || muster delete job stopped")
	until(t, "grep stopping /tmp/stopped.out || muster logs stopped | grep stopping")
	until(t, "test -z \"$(systemctl list-units --no-legend 'muster-work-*')\"")
}

// TestAContainerUnderSystemd: the supervisor, which is neither root nor the user of the command,
// sets a container with a mount up, in the cgroup of the member.
func TestAContainerUnderSystemd(t *testing.T) {
	until(t, "muster get nodes -l muster.dev/mounts-folders=true --no-headers | grep -w Ready")
	out, code := run(t, "--name inside --cpu 1 --memory 64Mi --rootfs /srv/images/tiny --mount /srv/data:/mnt:ro", `id -u; cat /mnt/file /mnt/closed; echo no >/mnt/new; grep CapEff /proc/self/status; cat /proc/self/cgroup; exit 5`)
	if code != 5 {
		t.Errorf("code %d, want 5", code)
	}
	for _, want := range []string{strings.TrimSpace(sh(t, "id -u ada")) + "\n", "open\n", "/mnt/closed': Permission denied", "/mnt/new: Read-only file system", "CapEff:\t0000000000000000", "/muster.slice/muster-work-", "/work\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output has no %q:\n%s", want, out)
		}
	}
	if out, code := run(t, "--name elsewhere --cpu 1 --memory 64Mi --rootfs /srv/images/tiny --mount /etc:/mnt", "true"); code != 126 || !strings.Contains(out, "the mount of /etc: it lies in none of the folders that this host permits: /srv/data") {
		t.Errorf("code %d, want 126 and the mount:\n%s", code, out)
	}
}

// TestATerminalUnderSystemd: the command has a terminal of its own as another user, with the
// size of the person's, and Ctrl-C reaches it.
func TestATerminalUnderSystemd(t *testing.T) {
	sh(t, `cat >/tmp/tty.sh <<'END'
test -t 0 && test -t 1 && echo "at $(tty) of $(stat -c %U "$(tty)")"
trap "echo interrupted; exit 9" INT
echo "ready $(stty size)"
while :; do sleep 0.2; done
END
chmod 0644 /tmp/tty.sh; rm -f /tmp/tty.out`)
	out, err := try(`{ until grep -qs ready /tmp/tty.out; do sleep 0.5; done; printf '\003'; sleep 30; } | script -qefc 'stty rows 33 cols 99; exec muster run -it --name tty --cpu 1 --memory 64Mi -- sh /tmp/tty.sh' /tmp/tty.out`)
	if code := exitCode(t, err); code != 9 {
		t.Errorf("code %d, want 9", code)
	}
	for _, want := range []string{"at /dev/pts/", " of ada", "ready 33 99", "interrupted"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output has no %q:\n%s", want, out)
		}
	}
}

// TestASignalBeforeTheEndUnderSystemd: the supervisor may signal the processes of another user
// ahead of a known end, and the command of a terminal too.
func TestASignalBeforeTheEndUnderSystemd(t *testing.T) {
	sh(t, `cat >/tmp/signal.yaml <<'END'
kind: Job
metadata: {name: signal}
spec:
  activeDeadlineSeconds: 120
  backoffLimit: 0
  template:
    spec:
      command: [sh, -c, 'trap "echo saving; exit 7" USR1; while :; do sleep 0.2; done']
      signal: USR1
      signalBefore: 110s
      resources: {requests: {cpu: 1, memory: 64Mi}}
END
muster submit -f /tmp/signal.yaml`)
	until(t, `muster get job signal -o json | grep -E '"exitCode": 7'`)
	until(t, "muster logs signal | grep saving")
}

// TestAnotherUserCannotUseTheHelper: a tenant's command reaches no other user by it.
func TestAnotherUserCannotUseTheHelper(t *testing.T) {
	out, err := try(`setpriv --reuid ada --regid ada --clear-groups python3 -c 'import socket; s=socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect("/run/muster-launch.sock")'`)
	if err == nil || !strings.Contains(out, "Permission") {
		t.Errorf("%v: %s", err, out)
	}
}
