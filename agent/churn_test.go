package agent_test

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/deviceplugin"
	"github.com/musterd/muster/agent/deviceplugin/kubelettest"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
)

var (
	churnTime = flag.Duration("churn.time", 5*time.Second, "how long pods and work come and go; by hand 1h")
	churnSeed = flag.Uint64("churn.seed", uint64(time.Now().UnixNano()), "decides what comes and goes")
)

// The bounds of a churn, however long it is: what there may be beyond the state after the
// second run of the agent.
const (
	churnGoroutines = 8
	churnFiles      = 8
	churnHeap       = 32 << 20             // bytes; a run of an hour keeps the names of its parts
	churnDisk       = 16 << 20             // bytes of the agent's folder in all: the journal is compacted
	churnLife       = 2 * time.Second      // of one run of the agent, at most
	churnPace       = 2 * time.Millisecond // from step to step
)

// churn is a host whose kubelet and leader both hand out devices.
type churn struct {
	*rig
	dice    *rand.Rand
	dir     string   // of the kubelet's sockets
	devices []string // of the host; pool is the configured part
	pool    []string
	memory  *kubelettest.Checkpoint
	work    map[string][]string // devices by transaction, of Muster's own work
	next    int
	// of the present run of the agent
	kubelet *kubelettest.Kubelet
	leader  *leader
	done    map[string]int // steps that had an effect
}

// TestChurnLeaksNothing has pods and Muster's own work come and go on one host, while the
// pool changes and agent and kubelet restart. No device is ever given twice, over both
// origins, and at the end nothing has leaked: goroutines, files, grants, memory, disk.
func TestChurnLeaksNothing(t *testing.T) {
	c := &churn{
		rig: newRig(t), dice: rand.New(rand.NewPCG(*churnSeed, 1)), dir: kubelettest.Dir(t), memory: &kubelettest.Checkpoint{Pods: map[string]kubelettest.Pod{}},
		work: map[string][]string{}, done: map[string]int{},
	}
	t.Logf("seed %d: repeat with -args -churn.seed=%d", *churnSeed, *churnSeed)
	_, deps := c.config()
	for _, d := range deps.Discovered.Inventory.Devices {
		c.devices = append(c.devices, d.UUID)
	}
	c.pool = c.devices[:4]
	c.tune = func(a *agent.Config, _ *agent.Deps) {
		a.Heartbeat = 20 * time.Millisecond
		a.Kubelet = &deviceplugin.Config{Pool: c.pool, Sockets: c.dir, PodResources: kubelettest.PodResources(c.dir), Look: 5 * time.Millisecond, List: 5 * time.Millisecond, Absent: 200 * time.Millisecond}
	}
	var first resources
	began, lives := time.Now(), 0
	for ; lives < 3 || time.Since(began) < *churnTime; lives++ {
		if !t.Run("", func(t *testing.T) { c.live(t, churnLife/4+time.Duration(c.dice.Int64N(int64(3*churnLife/4)))) }) {
			return
		}
		switch lives {
		case 0:
		case 1:
			first = measured(t, c.rig.dir)
		default:
			first.mustHold(t, c.rig.dir)
		}
	}
	t.Run("", c.settle)
	first.mustHold(t, c.rig.dir)
	t.Logf("%d runs of the agent in %s: %v; at the end %+v, after the second run %+v", lives, time.Since(began).Round(time.Second), c.done, measured(t, c.rig.dir), first)
	for _, step := range []string{"pods run", "pods end", "work runs", "work ends", "pool changes", "the kubelet restarts"} {
		if c.done[step] == 0 {
			t.Errorf("never: %s", step)
		}
	}
}

// begin starts the kubelet and the agent, which end with the test.
func (c *churn) begin(t *testing.T) {
	c.rig.t = t
	c.kubelet = kubelettest.Start(t, c.dir, c.memory)
	c.start()
	c.leader = c.lead(1)
}

// finish ends both, the agent first or last.
func (c *churn) finish(t *testing.T) {
	stop := []func(){func() { c.memory = c.kubelet.Stop() }, func() {
		if err := c.end(); err != nil {
			t.Fatal(err)
		}
	}}
	first := c.dice.IntN(2)
	stop[first]()
	stop[1-first]()
}

// live is one run of the agent.
func (c *churn) live(t *testing.T, life time.Duration) {
	c.begin(t)
	pace := time.NewTicker(churnPace)
	defer pace.Stop()
	for end := time.Now().Add(life); time.Now().Before(end); <-pace.C {
		if c.step(t) {
			c.mustBeExclusive(t)
		}
	}
	c.finish(t)
}

// step takes one step, and reports whether it had an effect.
func (c *churn) step(t *testing.T) (effect bool) {
	name := ""
	switch c.dice.IntN(12) {
	case 0, 1, 2, 3:
		c.next++
		name = "pods run"
		_, err := c.kubelet.Run(fmt.Sprint("pod-", c.next), deviceplugin.DefaultResource, c.dice.IntN(2)+1)
		effect = err == nil // the kubelet has too few units, or its list is older than the pool
	case 4, 5, 6:
		name = "pods end"
		if pods := slices.Sorted(maps.Keys(c.kubelet.Pods())); len(pods) > 0 {
			c.kubelet.End(pods[c.dice.IntN(len(pods))])
			effect = true
		}
	case 7, 8:
		name = "work runs"
		effect = c.begins()
	case 9:
		name = "work ends"
		if txs := slices.Sorted(maps.Keys(c.work)); len(txs) > 0 {
			c.ends(t, txs[c.dice.IntN(len(txs))])
			effect = true
		}
	case 10:
		name = "pool changes"
		p := &musterv1.KubeletPool{}
		for _, uuid := range c.devices {
			switch c.dice.IntN(6) {
			case 0:
				p.Add = append(p.Add, uuid)
			case 1:
				p.Remove = append(p.Remove, uuid)
			}
		}
		c.leader.send(p)
		c.leader.until("the agent confirms the pool", func(m *musterv1.AgentMessage) bool { return m.GetOccupancy() != nil })
		effect = true
	case 11:
		switch c.dice.IntN(6) {
		case 0:
			name = "the kubelet restarts"
			c.memory = c.kubelet.Stop()
			c.kubelet = kubelettest.Start(t, c.dir, c.memory)
		case 1:
			name = "PodResources fails"
			c.kubelet.Break(true)
		default:
			name = "PodResources answers again"
			c.kubelet.Break(false)
		}
		effect = true
	}
	if effect {
		c.done[name]++
	}
	return effect
}

// begins has Muster's own work hold some devices, if there are enough.
func (c *churn) begins() bool {
	c.next++
	tx := fmt.Sprint("tx-", c.next)
	yes := c.leader.reserve(tx, c.dice.IntN(3)+1, time.Minute)
	if yes.GetState() != musterv1.Reply_RESERVED {
		return false
	}
	c.store.put(tx, musterv1.Record_COMMITTED, yes.GetMembers())
	var revision int64
	c.store.set(func(s *store) { revision = s.revision })
	c.leader.send(&musterv1.Commit{Tx: tx, Epoch: 1, Revision: revision})
	mustBe(c.rig.t, c.leader.reply(tx), musterv1.Reply_HELD)
	c.work[tx] = uuids(yes)
	return true
}

// ends releases work, and has the agent and the store forget it.
func (c *churn) ends(t *testing.T, tx string) {
	c.leader.send(&musterv1.Release{Tx: tx, Epoch: 1})
	c.leader.until(tx+" has ended", func(m *musterv1.AgentMessage) bool {
		return m.GetReply().GetTx() == tx && m.GetReply().GetState() == musterv1.Reply_FREED
	})
	c.leader.send(&musterv1.Forget{Tx: tx})
	c.store.set(func(s *store) { delete(s.records, tx) })
	delete(c.work, tx)
}

// mustBeExclusive checks the ledger against the kubelet's account and the leader's: no
// device has two owners (I1), and each side has the devices that it was promised.
func (c *churn) mustBeExclusive(t *testing.T) {
	t.Helper()
	s, err := c.agent.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	owner := map[string]string{}
	for _, g := range s.Grants {
		for _, d := range g.Assignment.GPUs {
			by := g.State
			if g.Held {
				by = string(g.Tx)
			}
			if other := owner[d.UUID]; other != "" {
				t.Fatalf("%s is of %s and of %s", d.UUID, other, by)
			}
			owner[d.UUID] = by
		}
	}
	taken := map[string]string{}
	for pod, p := range c.kubelet.Pods() {
		for _, unit := range p.Units {
			if owner[unit] != "KUBELET" || taken[unit] != "" {
				t.Fatalf("pod %s has %s, which is of %q for the agent; pod %q has it too", pod, unit, owner[unit], taken[unit])
			}
			taken[unit] = pod
		}
	}
	for tx, devices := range c.work {
		for _, uuid := range devices {
			if owner[uuid] != tx {
				t.Fatalf("%s was promised %s, which is of %q for the agent", tx, uuid, owner[uuid])
			}
		}
	}
}

// settle ends everything: the pool of the configuration is free then, and nothing else
// has a grant.
func (c *churn) settle(t *testing.T) {
	c.begin(t)
	c.kubelet.Break(false)
	for pod := range c.kubelet.Pods() {
		c.kubelet.End(pod)
	}
	for _, tx := range slices.Sorted(maps.Keys(c.work)) {
		c.ends(t, tx)
	}
	c.leader.send(&musterv1.KubeletPool{})
	eventually(t, "the pool of the configuration is free, and nothing else has a grant", func() bool {
		s, err := c.agent.Snapshot(t.Context())
		if err != nil || len(s.Grants) != len(c.pool) {
			return false
		}
		free, _ := c.ofKubelet()
		return slices.Equal(slices.Sorted(slices.Values(free)), slices.Sorted(slices.Values(c.pool)))
	})
	c.finish(t)
}

// resources are those of this process, and the agent's folder.
type resources struct {
	Goroutines, Files int
	Heap, Disk        int64 // bytes
}

func measured(t *testing.T, folder string) resources {
	t.Helper()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	r := resources{Goroutines: runtime.NumGoroutine(), Files: len(files), Heap: int64(m.HeapAlloc)}
	if err := filepath.WalkDir(folder, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			r.Disk += info.Size()
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return r
}

// mustHold waits until the process is back within the bounds.
func (first resources) mustHold(t *testing.T, folder string) {
	t.Helper()
	eventually(t, fmt.Sprintf("goroutines, files, heap and disk are as after the second run: %+v", first), func() bool {
		now := measured(t, folder)
		return now.Goroutines <= first.Goroutines+churnGoroutines && now.Files <= first.Files+churnFiles && now.Heap <= first.Heap+churnHeap && now.Disk <= churnDisk
	})
}
