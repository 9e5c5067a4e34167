package work

import (
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

	"github.com/musterd/muster/agent/attach"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/programs"
)

// examples is the folder of the launchers that the documents show.
const examples = "../../examples/launchers"

// agentProgram builds muster-agent, and returns the folder that has it.
func agentProgram(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := programs.Build(dir, "muster-agent"); err != nil {
		t.Fatal(err)
	}
	return dir
}

// launcher is a run of examples/launchers/launch.sh on the only node.
type launcher struct {
	w   *world
	cmd *exec.Cmd
	out *screen
}

// launch starts the example for an allocation.
func (w *world) launch(programs, name string, command ...string) *launcher {
	w.t.Helper()
	return w.launchFor(programs, "alloc/"+name, command...)
}

// launchFor starts the example for a unit.
func (w *world) launchFor(programs, unit string, command ...string) *launcher {
	w.t.Helper()
	node := w.cluster.Addresses.Nodes[0].DataDir
	l := &launcher{w: w, out: newScreen(), cmd: exec.CommandContext(w.ctx, filepath.Join(examples, "launch.sh"), append([]string{"default/" + unit}, command...)...)}
	l.cmd.Env = []string{"PATH=" + programs + ":/usr/bin:/bin", "ASSIGNMENTS=" + filepath.Join(node, "assignments"), "SOCKET=" + filepath.Join(node, "attach.sock")}
	l.cmd.Stdout, l.cmd.Stderr = l.out, l.out
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := l.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = syscall.Kill(-l.cmd.Process.Pid, syscall.SIGKILL) })
	return l
}

// allocate submits an allocation of GPUs without a command.
func (w *world) allocate(name string, gpus int) {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "a.yaml")
	document := fmt.Sprintf(`{apiVersion: muster/v1, kind: Allocation, metadata: {name: %s}, spec: {resources: {requests: {cpu: 1, memory: 1Mi, nvidia.com/gpu: %d}}}}`, name, gpus)
	if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.muster("submit", "-f", path).ends(0)
}

func (w *world) allocation(name string, phase api.Phase) *api.Allocation {
	w.t.Helper()
	a, err := w.cluster.Client.Allocations("default").WaitFor(w.ctx, name, func(a *api.Allocation) (bool, error) { return a != nil && a.Status.Phase == phase, nil })
	if err != nil {
		now, _ := w.cluster.Client.Allocations("default").Get(w.ctx, name, sdk.GetOptions{})
		w.t.Fatalf("allocation %s never is %s: %v\n%+v", name, phase, err, now)
	}
	return a
}

// TestTheShellLauncherEndsAGrantWithItsCommand: the command has the devices of the grant, and
// its exit code ends the allocation.
func TestTheShellLauncherEndsAGrantWithItsCommand(t *testing.T) {
	programs := agentProgram(t) // before the time of the world begins
	w := open(t, 1)
	for name, c := range map[string]struct {
		code    int
		phase   api.Phase
		message string
	}{
		"good": {0, api.Succeeded, "its work is done"},
		"bad":  {7, api.Failed, "exited with code 7"},
	} {
		t.Run(name, func(t *testing.T) {
			l := w.launch(programs, name, "sh", "-c", `echo "has $CUDA_VISIBLE_DEVICES"; exit `+strconv.Itoa(c.code))
			w.allocate(name, 2)
			a := w.allocation(name, c.phase)
			if !strings.Contains(a.Status.Message, c.message) {
				t.Errorf("the message is %q, want %q", a.Status.Message, c.message)
			}
			_ = l.cmd.Wait()
			if l.cmd.ProcessState.ExitCode() != c.code || !regexp.MustCompile(`(?m)^has GPU-[^,]+,GPU-[^,]+$`).MatchString(l.out.String()) {
				t.Errorf("the launcher has ended with %s:\n%s", l.cmd.ProcessState, l.out)
			}
		})
	}
}

// TestTheUseOfAttachedWorkIsShown: a job has the use of its launcher's work as that of a
// command.
func TestTheUseOfAttachedWorkIsShown(t *testing.T) {
	programs := agentProgram(t) // before the time of the world begins
	w := open(t, 1)
	l := w.launchFor(programs, "job/used", "sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")
	path := filepath.Join(w.t.TempDir(), "job.yaml")
	if err := os.WriteFile(path, []byte(`{apiVersion: muster/v1, kind: Job, metadata: {name: used}, spec: {template: {spec: {resources: {requests: {cpu: 1, memory: 1Mi}}}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	w.muster("submit", "-f", path).ends(0)
	j, err := w.cluster.Client.Jobs("default").WaitFor(w.ctx, "used", func(j *api.Job) (bool, error) { return j != nil && j.Status.Phase.Ended(), nil })
	if err != nil {
		t.Fatalf("%v\n%s", err, l.out)
	}
	if j.Status.Phase != api.Succeeded || len(j.Status.Allocations) != 1 {
		t.Fatalf("the job is %+v", j.Status)
	}
	if use := j.Status.Allocations[0].Use; use == nil || use.CPUMillis < 20 || use.CPUMillis > 60_000 || use.PeakMemoryBytes < 1<<18 || use.MemoryBytes != 0 {
		t.Errorf("use %+v, want the time and the memory of the command", use)
	}
}

// TestADeletionEndsAttachedWorkBeforeItsDevicesAreFree: the command gets SIGTERM, and its
// devices are nobody else's until it has ended.
func TestADeletionEndsAttachedWorkBeforeItsDevicesAreFree(t *testing.T) {
	programs := agentProgram(t) // before the time of the world begins
	w := open(t, 1)
	gate := filepath.Join(t.TempDir(), "gate")
	w.allocate("first", 8)
	l := w.launch(programs, "first", "sh", "-c", fmt.Sprintf(`trap 'echo asked' TERM; echo up; while [ ! -e %s ]; do sleep 0.05; done; exit 0`, gate))
	await := func(text string) {
		t.Helper()
		for !strings.Contains(l.out.String(), text) {
			if w.ctx.Err() != nil {
				t.Fatalf("the launcher has not said %q:\n%s", text, l.out)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	await("up")
	w.allocate("second", 8)
	w.muster("delete", "allocation", "first").ends(0)
	await("asked")
	if a := w.allocation("second", api.Pending); a.Status.NodeID != "" {
		t.Errorf("the second allocation is on node %s while the first one's work runs", a.Status.NodeID)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.allocation("second", api.Running)
	if err := l.cmd.Wait(); err != nil {
		t.Errorf("the launcher: %v\n%s", err, l.out)
	}
}

// TestTheServiceOfTheExamples: its lines attach the cgroup of the service, and end the grant
// with the status, as systemd runs them: in one cgroup, one after the other.
func TestTheServiceOfTheExamples(t *testing.T) {
	hierarchy := attach.Hierarchy()
	own := filepath.Join(hierarchy, fmt.Sprintf("muster-test-%d", os.Getpid()))
	if err := os.Mkdir(own, 0o755); hierarchy == "" || err != nil {
		t.Skip("not permitted here: a cgroup of the unified hierarchy: ", err)
	}
	programs := agentProgram(t) // before the time of the world begins
	w := open(t, 1)
	t.Cleanup(func() {
		_ = os.WriteFile(filepath.Join(own, "cgroup.kill"), []byte("1"), 0)
		for range 100 {
			if os.Remove(own) == nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Errorf("%s is not empty", own)
	})
	text, err := os.ReadFile(filepath.Join(examples, "muster-grant@.service"))
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(Exec\w+)=\+?(.*)$`).FindAllStringSubmatch(string(text), -1) {
		lines[m[1]] = m[2]
	}
	w.allocate("served", 8)
	w.allocation("served", api.Running)
	node := w.cluster.Addresses.Nodes[0].DataDir
	var files []string
	for len(files) == 0 && w.ctx.Err() == nil { // the record comes first
		time.Sleep(10 * time.Millisecond)
		if files, err = filepath.Glob(filepath.Join(node, "assignments", "*.json")); err != nil {
			t.Fatal(err)
		}
	}
	if len(files) != 1 {
		t.Fatalf("the assignment files are %q", files)
	}
	run := func(line string) {
		t.Helper()
		line = strings.ReplaceAll(line, "%i", strings.TrimSuffix(filepath.Base(files[0]), ".json"))
		line = strings.ReplaceAll(line, "/usr/local/bin/muster-agent", filepath.Join(programs, "muster-agent")) + " --socket " + filepath.Join(node, "attach.sock")
		c := exec.CommandContext(w.ctx, "sh", "-c", line)
		c.Env = []string{"EXIT_STATUS=KILL"}
		c.SysProcAttr = inGroup(t, own)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	run(lines["ExecStartPre"])
	main := exec.CommandContext(w.ctx, "sleep", "1000")
	main.SysProcAttr = inGroup(t, own)
	if err := main.Start(); err != nil {
		t.Fatal(err)
	}
	f := shim.Folder(filepath.Join(node, "run", strings.TrimSuffix(filepath.Base(files[0]), ".json")+".0.0"))
	if a, err := f.Attached(); err != nil || len(a.Cgroups) != 1 || a.Cgroups[0].Path != own {
		t.Errorf("attached is %+v: %v", a, err)
	}
	run(lines["ExecStopPost"]) // while the command runs: the grant stays
	if a := w.allocation("served", api.Running); a.Status.Phase != api.Running {
		t.Errorf("the allocation is %s while its command runs", a.Status.Phase)
	}
	if err := main.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = main.Wait()
	if a := w.allocation("served", api.Failed); !strings.Contains(a.Status.Message, "exited with code 137") {
		t.Errorf("the message is %q", a.Status.Message)
	}
}

// inGroup starts a command in a cgroup.
func inGroup(t *testing.T, path string) *syscall.SysProcAttr {
	t.Helper()
	dir, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
}
