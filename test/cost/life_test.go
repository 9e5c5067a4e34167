package cost_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/record"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/test/ratchet"
	"github.com/musterd/muster/test/rig"
)

// retention is how long the store keeps a record that has ended, in these tests.
const retention = 5 * time.Second

// traffic is the work of a life for the store, the agent and its disk.
type traffic struct {
	txns, compares, keys, written                      int64
	toAgent, toAgentBytes, fromAgent, fromAgentBytes   int64
	journalRecords, journalSyncs, assignmentOperations int64
}

// watcher counts the traffic of a rig.
type watcher struct {
	mu sync.Mutex
	traffic
}

// watch has everything counted that allocations cause. Heartbeats and the leader's lease
// are not of allocations.
func watch(c *rig.Cluster, k *rig.Coordinator, plant func(*record.Txn)) *watcher {
	w := &watcher{}
	k.Gate.OnTxn(func(t record.Txn) rig.Fault {
		if plant != nil {
			plant(&t)
		}
		w.countTxn(t)
		return rig.None
	})
	c.Tap(func(m rig.Message) bool {
		w.countMessage(m)
		return true
	})
	c.OnStep(func(s rig.Step) error {
		w.countStep(s)
		return nil
	})
	return w
}

// isOfALife reports whether a key belongs to an allocation.
func isOfALife(key string) bool {
	for _, prefix := range []string{record.UnitsPrefix, record.JobsPrefix, record.OrderPrefix, record.TxPrefix, record.ReadyPrefix, record.RequestsPrefix, record.AuditPrefix} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return strings.HasPrefix(key, record.NodesPrefix) && strings.Contains(key, "/tx/")
}

func (w *watcher) countTxn(t record.Txn) {
	life, written := false, 0
	for _, op := range t.Then {
		life = life || isOfALife(op.Key)
		written += len(op.Key) + len(op.Value)
	}
	if !life {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.txns++
	w.compares += int64(len(t.If))
	w.keys += int64(len(t.Then))
	w.written += int64(written)
}

func (w *watcher) countMessage(m rig.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.ToAgent != nil {
		w.toAgent++
		w.toAgentBytes += int64(proto.Size(m.ToAgent))
		return
	}
	w.fromAgent++
	w.fromAgentBytes += int64(proto.Size(withoutHash(m.FromAgent)))
}

// withoutHash is a message of an agent without the hash of its ledger, whose length as a
// varint is random.
func withoutHash(m *musterv1.AgentMessage) *musterv1.AgentMessage {
	m = proto.CloneOf(m)
	m.LedgerHash = 0
	return m
}

func (w *watcher) countStep(s rig.Step) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case s.After:
	case s.Name == "journal append":
		w.journalRecords++
	case s.Name == "journal sync":
		w.journalSyncs++
	case strings.HasPrefix(s.Name, "assignment "):
		w.assignmentOperations++
	}
}

// take returns the traffic since the last call.
func (w *watcher) take() traffic {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.traffic
	w.traffic = traffic{}
	return t
}

// live has an allocation of a GPU begin, run for some seconds, end and go. It takes
// ten seconds, so that each life comes with as much of the regular work of the leader.
func live(t *testing.T, k *rig.Coordinator, i int) {
	t.Helper()
	name := fmt.Sprint("a", i)
	a, _, err := k.Allocate(t.Context(), rig.Submission{Name: name, GPUs: 1, Wait: time.Minute})
	if err != nil || a.Status.Phase != api.Running {
		t.Fatalf("%s: %+v, %v", name, a, err)
	}
	synctest.Wait()
	time.Sleep(2 * time.Second)
	if _, err := k.DeleteAllocation(t.Context(), rig.Namespace, name, api.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(retention + 3*time.Second)
	synctest.Wait()
}

// inRig runs lives in turn in a rig with a node and so many coordinators, of
// which the first leads. begin is called when the rig is at rest; each after each life.
func inRig(t *testing.T, coordinators, lives int, begin func(*rig.Cluster, *rig.Coordinator), each func()) {
	oneProcessor(t)
	synctest.Test(t, func(t *testing.T) {
		c := rig.New(t, rig.Options{Heartbeat: time.Hour, Configure: func(c *coordinator.Config) {
			c.RecordRetention = retention
			c.LeaseTTL = 2 * time.Hour // a term ends by the real clock too, which a busy machine may stretch
		}})
		k := c.Bring(1)
		for i := 1; i < coordinators; i++ {
			c.StartCoordinator(fmt.Sprint("c", i+1))
		}
		time.Sleep(time.Minute) // the agent registers again shortly after its first start
		live(t, k, 0)           // makes connections and pools
		begin(c, k)
		for i := range lives {
			live(t, k, 1+i)
			each()
		}
		if n := len(c.Agents()[0].Assigned()); n > 0 {
			t.Errorf("%d assignments are left", n)
		}
	})
}

// trafficOfALife is the traffic of a life. plant changes each Txn before it is counted,
// where it is set.
func trafficOfALife(t *testing.T, plant func(*record.Txn)) []ratchet.Figure {
	var w *watcher
	var all []traffic
	inRig(t, 1, 3, func(c *rig.Cluster, k *rig.Coordinator) { w = watch(c, k, plant) }, func() { all = append(all, w.take()) })
	one := all[0]
	if all[1] != one || all[2] != one {
		t.Errorf("three lives differ in their traffic: %+v", all)
	}
	figure := func(name string, value int64, unit, means string) ratchet.Figure {
		return ratchet.Figure{Name: "life/" + name, Value: value, Unit: unit, Means: means}
	}
	const store, to, of, disk = "the store in a life, from the submission until the record is collected", "the leader's messages to the agent in a life", "the agent's messages in a life", "the agent's disk in a life"
	return []ratchet.Figure{
		figure("txns", one.txns, "Txns", store), figure("compares", one.compares, "compares", store), figure("keys", one.keys, "keys", store), figure("written", one.written, "bytes", store),
		figure("to-agent", one.toAgent, "messages", to), figure("to-agent-bytes", one.toAgentBytes, "bytes", to),
		figure("of-agent", one.fromAgent, "messages", of), figure("of-agent-bytes", one.fromAgentBytes, "bytes", of),
		figure("disk-journal", one.journalRecords, "journal writes", disk), figure("disk-syncs", one.journalSyncs, "syncs", disk), figure("disk-files", one.assignmentOperations, "file operations", disk),
	}
}

func TestTrafficOfALife(t *testing.T) { hold(t, "life", trafficOfALife(t, nil)) }

func TestHeapOfALife(t *testing.T) {
	newMeter(t)
	count := func(coordinators, lives int) (decoded int64, least heap) {
		var taken []profile
		take := func() { taken = append(taken, takeProfile()) }
		stop := profiled(t)
		inRig(t, coordinators, lives, func(*rig.Cluster, *rig.Coordinator) { take() }, take)
		stop()
		least, decoded = most, 1<<60
		for i, p := range taken[1:] {
			all, n := p.product(taken[i])
			least, decoded = least.least(all), min(decoded, n)
		}
		return decoded, least
	}
	leader, least := count(1, 20)
	both, _ := count(2, 3)
	figures := []ratchet.Figure{
		{Name: "life-heap/decodes-leader", Value: leader, Unit: "records", Means: "records that the leader decodes in a life"},
		{Name: "life-heap/decodes-follower", Value: both - leader, Unit: "records", Means: "records that a follower decodes in a life"},
	}
	for _, f := range least.figures("life-heap/whole", "a whole life with gRPC, at coordinator and agent, without the store") {
		f.Within = 2
		figures = append(figures, f)
	}
	hold(t, "life-heap", figures)
}
