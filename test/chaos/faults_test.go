package chaos

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/cluster"
	"github.com/musterd/muster/test/delay"
	"github.com/musterd/muster/test/long"
)

// A leader that is stopped for longer than its lease wakes up in office, as it
// believes, with requests under way. No later act of this leader takes effect:
// the witness holds every commit against who leads in that revision.
func TestAPausedLeaderDoesNothingWhenItWakes(t *testing.T) {
	long.Only(t, "a cluster of its own; TestFaultsInTurnLoseNothing pauses a leader")
	t.Parallel()
	c := start(t, cluster.Options{})
	l := load(c, "p-")
	for range 2 {
		pauseLeader(c, l)
	}
	t.Log(outcomes(finish(t, c, l, "all")), c.Witness.Counts())
}

func pauseLeader(c *cluster.Cluster, l *cluster.Load) {
	leader, epoch := c.AwaitLeader(0)
	leader.Pause()
	c.AwaitLeader(epoch)
	l.AwaitProgress(1, "while "+leader.Name+" is paused")
	leader.Resume()
	l.AwaitProgress(1, "after "+leader.Name+" woke up")
}

func TestAPausedStoreLosesNothing(t *testing.T) {
	long.Only(t, "a cluster of its own; TestFaultsInTurnLoseNothing pauses a store")
	t.Parallel()
	c := start(t, cluster.Options{})
	l := load(c, "s-")
	pauseStore(c, l)
	t.Log(outcomes(finish(t, c, l, "all")), c.Witness.Counts())
}

func pauseStore(c *cluster.Cluster, l *cluster.Load) {
	c.Etcd[0].Pause()
	l.AwaitProgress(1, "with one of three members of the store paused")
	c.Etcd[1].Pause() // two of three: no quorum
	hold(lasting)
	c.Etcd[0].Resume()
	c.Etcd[1].Resume()
	l.AwaitProgress(1, "after the store came back")
}

// diskSize holds the journal, its preallocation and little else.
const diskSize = 40 << 20

func TestAnAgentWithAFullDiskReleasesAndPromisesNothing(t *testing.T) {
	long.Only(t, "a cluster of its own; TestFaultsInTurnLoseNothing fills a disk")
	t.Parallel()
	cluster.NeedPrivate(t)
	disk := smallDisk(t)
	c := start(t, cluster.Options{AgentDir: on(disk)})
	l := load(c, "d-")
	l.AwaitProgress(20, "before the disk is full")
	t.Log(outcomes(fillDisk(t, c, l, disk, 40)), c.Witness.Counts())
	c.Fill("all")
}

// smallDisk is a file system of its own, which little fills.
func smallDisk(t *testing.T) string {
	t.Helper()
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprintf("size=%d", diskSize)); err != nil {
		t.Skipf("not permitted here: a file system of its own: %v", err)
	}
	t.Cleanup(func() {
		// Namespaces of processes that have just ended may hold it a moment longer.
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return disk
}

// on puts the folder of an agent on a disk.
func on(disk string) func(resource.NodeID) string {
	return func(node resource.NodeID) string {
		if node == "node-1" {
			return filepath.Join(disk, "agent")
		}
		return ""
	}
}

// fillDisk ends a load while the disk of an agent is full, and empties the cluster.
func fillDisk(t *testing.T, c *cluster.Cluster, l *cluster.Load, disk string, granted int) []cluster.Operation {
	t.Helper()
	filler := filepath.Join(disk, "filler")
	fill(t, filler)
	l.AwaitProgress(granted, "with a full disk")
	operations := l.Stop()
	c.Audit(operations)
	c.Clear() // also on the node whose disk is full
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	return operations
}

// fill writes until nothing more fits.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for {
		if _, err := f.Write(make([]byte, 4096)); errors.Is(err, syscall.ENOSPC) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// Proxies stand between coordinators, agents and the store: everything arrives
// late, in another order than it was sent over other connections, some stalls,
// and connections break at any byte.
func TestDelaysStallsAndCutConnectionsLoseNothing(t *testing.T) {
	t.Parallel()
	cluster.NeedPrivate(t)
	lot := dice(t, 2)
	c := start(t, cluster.Options{})
	var proxies []*delay.Proxy
	via := map[string]string{}
	between := func(address string) {
		p := delay.Start(t, c.Address(), address, delay.Rules{
			Seed: lot.Uint64(), Latest: 20 * time.Millisecond, Stalls: 2, Stall: 3 * time.Second, CutAfter: 400_000,
		})
		proxies, via[address] = append(proxies, p), p.Address()
	}
	for _, a := range c.Agents {
		between(a.Address(cluster.AgentPort))
	}
	for _, p := range c.Coordinators {
		between(p.Address(cluster.GRPCPort))
	}
	for _, p := range c.Etcd {
		between(p.Address(cluster.EtcdPort))
	}
	for _, p := range c.Coordinators {
		p.Divert(via)
	}
	for _, a := range c.Agents {
		a.Divert(via)
	}
	// Connections that are open stay as they are: everybody makes new ones.
	for _, p := range c.Processes()[len(c.Etcd):] {
		p.Kill()
		p.Restart()
	}
	c.AwaitReady()
	for _, p := range proxies {
		p.Disturb()
	}
	l := load(c, "d-")
	l.AwaitProgress(long.Size(10, 30), "through slow and broken connections")
	var sum delay.Counts
	for _, p := range proxies {
		p.Calm()
		n := p.Counts()
		sum.Connections, sum.Pieces, sum.Stalls, sum.Cuts = sum.Connections+n.Connections, sum.Pieces+n.Pieces, sum.Stalls+n.Stalls, sum.Cuts+n.Cuts
	}
	t.Log(outcomes(finish(t, c, l, "all")), c.Witness.Counts(), fmt.Sprintf("%+v", sum))
}
