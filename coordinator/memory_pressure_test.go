package coordinator_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/pressure"
	"github.com/musterd/muster/agent/usage"
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/test/rig"
)

// A memoryHost is a folder with the files of a kernel that measures stalls.
type memoryHost struct {
	t   *testing.T
	dir string
}

func newMemoryHost(t *testing.T) memoryHost {
	h := memoryHost{t, t.TempDir()}
	if err := os.MkdirAll(filepath.Join(h.dir, "proc", "pressure"), 0o755); err != nil {
		t.Fatal(err)
	}
	h.write("meminfo", "MemTotal: 16777216 kB\nMemAvailable: 1048576 kB\n")
	h.stall("0.00")
	return h
}

// write replaces a file of proc at once, as the kernel does.
func (h memoryHost) write(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.dir, "proc", name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		h.t.Fatal(err)
	}
}

func (h memoryHost) stall(percent string) {
	h.write("pressure/memory", fmt.Sprintf("some avg10=%[1]s avg60=0.00 avg300=0.00 total=1\nfull avg10=%[1]s avg60=0.00 avg300=0.00 total=1\n", percent))
}

// watched is a cluster whose agents look at the memory of this host.
func (h memoryHost) watched() rig.Options {
	o := beating
	o.Equip = func(c *agent.Config, d *agent.Deps) {
		c.MemoryPressure = pressure.Policy{Stall: 1000, Available: 500, Clear: time.Minute}
		d.Memory = func() (pressure.Reading, error) { return usage.ReadMemory(os.DirFS(h.dir)) }
	}
	return o
}

// readiness is the Ready condition of n1, and the message of its MemoryPressure.
func readiness(t *testing.T, k *rig.Coordinator) (ready api.Condition, phase, memory string) {
	t.Helper()
	n, err := k.GetNode(t.Context(), "n1")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range n.Status.Conditions {
		switch c.Type {
		case "Ready":
			ready = c
		case "MemoryPressure":
			memory = c.Status + " " + c.Reason + ": " + c.Message
		}
	}
	return ready, n.Status.Phase, memory
}

// TestANodeThatIsShortOfMemoryTakesNoNewWorkUntilItHasRecovered: the work there
// runs on, new work waits, and the node shows the numbers; it takes work again
// after a minute of good readings, and not before.
func TestANodeThatIsShortOfMemoryTakesNoNewWorkUntilItHasRecovered(t *testing.T) {
	host := newMemoryHost(t)
	bubble(t, host.watched(), func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocateOn(t, c, rig.Submission{Name: "before", GPUs: 1})
		time.Sleep(20 * time.Second)
		if _, _, memory := readiness(t, k); memory != "False MemorySuffices: " {
			t.Errorf("at first the node says %q", memory)
		}

		host.stall("12.50")
		c.Eventually("the node is not ready", func() bool {
			ready, phase, _ := readiness(t, k)
			return ready.Status == "False" && ready.Reason == "MemoryPressure" && phase == "NotReady"
		})
		allocate(t, k, rig.Submission{Name: "after", GPUs: 1})
		time.Sleep(20 * time.Second)
		if _, _, memory := readiness(t, k); !strings.HasPrefix(memory, "True TasksStall: all tasks waited for memory during 12.50 %") || !strings.Contains(memory, "1024 of 16384 MiB are available") {
			t.Errorf("the node says %q", memory)
		}
		phase(t, c, "before", api.Running)
		phase(t, c, "after", api.Pending)

		host.stall("4.00")
		time.Sleep(50 * time.Second)
		phase(t, c, "after", api.Pending)
		c.Eventually("the node is ready again", func() bool {
			ready, _, _ := readiness(t, k)
			return ready.Status == "True"
		})
		phase(t, c, "after", api.Running)
	})
}

// TestMemoryThatCannotBeReadChangesNothing: a shortage neither begins nor ends
// by a file that is gone.
func TestMemoryThatCannotBeReadChangesNothing(t *testing.T) {
	host := newMemoryHost(t)
	bubble(t, host.watched(), func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		host.write("meminfo", "")
		time.Sleep(time.Minute)
		if ready, _, _ := readiness(t, k); ready.Status != "True" {
			t.Errorf("Ready is %+v", ready)
		}
		host.write("meminfo", "MemTotal: 16777216 kB\nMemAvailable: 1048576 kB\n")
		host.stall("50.00")
		c.Eventually("the node is not ready", func() bool {
			ready, _, _ := readiness(t, k)
			return ready.Reason == "MemoryPressure"
		})
		host.write("pressure/memory", "nonsense\n")
		time.Sleep(10 * time.Minute)
		if ready, _, _ := readiness(t, k); ready.Reason != "MemoryPressure" {
			t.Errorf("Ready is %+v", ready)
		}
	})
}
