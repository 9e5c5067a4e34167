package integration

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/programs"
)

// smallDisk mounts a file system of its own over a folder until the test ends.
func smallDisk(t *testing.T, dir, size string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	err := syscall.Mount("muster-test", dir, "tmpfs", 0, "size="+size+",mode=0755")
	if errors.Is(err, syscall.EPERM) {
		t.Skip("not permitted here: mounting a small tmpfs needs CAP_SYS_ADMIN")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// fill writes a file until the disk has no room.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zeros := make([]byte, 4096)
	for {
		if _, err := f.Write(zeros); errors.Is(err, syscall.ENOSPC) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// readiness is a node's Ready condition: status, reason and message.
func (c *cluster) readiness(node string) string {
	c.t.Helper()
	n := c.node(node)
	for _, condition := range n.Status.Conditions {
		if condition.Type == "Ready" {
			return fmt.Sprintf("%s %s: %s", condition.Status, condition.Reason, condition.Message)
		}
	}
	return "there is none"
}

// TestAFullDiskTakesNoNewWorkAndLetsOldWorkGo fills the disk below a running
// agent: promises are refused before they are written, releases are made
// durable in the room kept for them, and the node says why, until there is
// room again.
func TestAFullDiskTakesNoNewWorkAndLetsOldWorkGo(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	a := c.agents[0]
	smallDisk(t, a.dataDir, "17m") // 16 MiB are kept for releases
	a.configure(a.settings.set("assignmentsDir", filepath.Join(t.TempDir(), "assignments")))
	a.start()
	c.coordinator.start()
	c.awaitLeader()
	c.awaitNodes(1)
	c.submit(gang("old", 1, gpus(4)))
	c.awaitRunning("old")
	fillers := filepath.Join(a.dataDir, "filler-")

	// The journal uses up what it has allocated beyond the reserve first.
	waiting := ""
	for i := 0; waiting == "" && i < 200; i++ {
		fill(t, fmt.Sprint(fillers, i)) // also what a removal gave back
		name := fmt.Sprintf("new-%d", i)
		c.submit(gang(name, 1, gpus(1)))
		programs.Eventually(t, patience, "job "+name+" runs, or its node refuses it", func() error {
			j, err := c.client.Jobs(namespace).Get(soon(t), name, sdk.GetOptions{})
			switch {
			case err != nil || j.Status.Phase == api.Running:
				return err
			case strings.HasPrefix(c.readiness(a.name), "False DiskFull: "):
				waiting = name
				return nil
			}
			return fmt.Errorf("it is %s", j.Status.Phase)
		})
		if waiting == "" {
			c.remove(name)
		}
	}
	if waiting == "" {
		t.Fatalf("the full disk refuses nothing; the node says %q", c.readiness(a.name))
	}
	c.remove("old")
	if free := c.freeGPUs()[a.name]; free < 7 {
		t.Errorf("%d GPUs are free after the release, want 7 or 8", free)
	}
	before := c.incarnation(a.name)
	c.restart(a)
	programs.Eventually(t, patience, "the agent is back on the full disk", func() error {
		if got := c.readiness(a.name); !strings.HasPrefix(got, "True ") && !strings.Contains(got, "DiskFull") {
			return fmt.Errorf("its node says %q", got)
		}
		return nil
	})
	if now := c.incarnation(a.name); now != before {
		t.Errorf("a restart on the full disk made incarnation %v of %v: it forgot something", now, before)
	}
	full, err := filepath.Glob(fillers + "*")
	if err != nil || len(full) == 0 {
		t.Fatalf("fillers: %v, %v", full, err)
	}
	for _, f := range full {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	c.awaitNodes(1)
	c.awaitRunning(waiting)
}

// TestAFullDiskOfAssignmentFilesIsNoBlackHole fills another disk than the
// journal's: what was running before the node refuses has its files, and so has
// everything that is Ready.
func TestAFullDiskOfAssignmentFilesIsNoBlackHole(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	a := c.agents[0]
	dir := filepath.Join(t.TempDir(), "assignments")
	smallDisk(t, dir, "2m")
	a.configure(a.settings.set("assignmentsDir", dir))
	a.start()
	c.coordinator.start()
	c.awaitLeader()
	c.awaitNodes(1)
	filler := filepath.Join(dir, "filler")
	fill(t, filler)
	c.submit(gang("promised", 1, gpus(1)))
	c.awaitRunning("promised")
	programs.Eventually(t, patience, "the node refuses work", func() error {
		if got := c.readiness(a.name); !strings.HasPrefix(got, "False DiskFull: ") {
			return fmt.Errorf("it says %q", got)
		}
		return nil
	})
	programs.Eventually(t, patience, "what is Ready has its files", func() error {
		documents, err := filepath.Glob(filepath.Join(dir, "*.json"))
		if err == nil && len(documents) != 1 {
			err = fmt.Errorf("there are %v", documents)
		}
		return err
	})
	c.submit(gang("late", 1, gpus(1)))
	programs.Eventually(t, patience, "the node says which disk is full", func() error {
		for _, condition := range c.node(a.name).Status.Conditions {
			if condition.Type == "DiskPressure" && condition.Status == "True" && condition.Reason == "AssignmentsNotWritable" {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %+v", c.node(a.name).Status.Conditions)
	})
	if j, err := c.client.Jobs(namespace).Get(soon(t), "late", sdk.GetOptions{}); err != nil || j.Status.Phase == api.Running {
		t.Errorf("work on a node that cannot hand it over: %+v, %v", j, err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	c.awaitRunning("late")
}
