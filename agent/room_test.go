package agent_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/handoff"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
)

// smallDisk is the file system of an assignment folder with so many bytes. A
// file takes whole blocks.
type smallDisk struct {
	mu    sync.Mutex
	free  int64
	sizes map[string]int64
	fails error // of every write, even with free space
}

const block = 4096

// resize is called with mu held.
func (d *smallDisk) resize(path string, size int64) error {
	size = (size + block - 1) / block * block
	if d.free -= size - d.sizes[path]; d.free < 0 && size > d.sizes[path] {
		d.free += size - d.sizes[path]
		return &fs.PathError{Op: "write", Path: path, Err: syscall.ENOSPC}
	}
	d.sizes[path] = size
	return nil
}

func (d *smallDisk) WriteFile(path string, data []byte, mode fs.FileMode) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails != nil {
		return &fs.PathError{Op: "write", Path: path, Err: d.fails}
	}
	if err := d.resize(path, int64(len(data))); err != nil {
		return err
	}
	return os.WriteFile(path, data, mode)
}

func (d *smallDisk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.free += d.sizes[to]
	d.sizes[to] = d.sizes[from]
	delete(d.sizes, from)
	return os.Rename(from, to)
}

func (d *smallDisk) Remove(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.free += d.sizes[path]
	delete(d.sizes, path)
	return os.Remove(path)
}

func (d *smallDisk) Allocate(path string, size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.resize(path, size)
}

// set changes the free space, or the way in which writes fail.
func (d *smallDisk) set(free int64, fails error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.free, d.fails = free, fails
}

func newSmallDiskRig(t *testing.T, free int64) (*rig, *smallDisk) {
	r := newRig(t)
	disk := &smallDisk{free: free, sizes: map[string]int64{}}
	r.tune = func(c *agent.Config, d *agent.Deps) { c.Heartbeat, d.AssignmentFS = 10*time.Millisecond, disk }
	return r, disk
}

// refused reserves until the agent answers No, and returns the reason.
func (l *leader) refused() string {
	l.t.Helper()
	for range 10_000 {
		reply := l.reserve("probe", 1, time.Minute)
		if reply.GetState() == musterv1.Reply_NO {
			return reply.GetReasons()[0].GetCode() + ": " + reply.GetReasons()[0].GetDetail()
		}
		l.send(&musterv1.Abort{Tx: "probe", Epoch: l.epoch})
		l.reply("probe")
	}
	l.t.Fatal("nothing is refused")
	return ""
}

// accepted reserves until the agent answers Yes.
func (l *leader) accepted() {
	l.t.Helper()
	deadline := time.Now().Add(patient)
	for l.reserve("probe", 1, time.Minute).GetState() != musterv1.Reply_RESERVED {
		if time.Now().After(deadline) {
			l.t.Fatal("everything is refused")
		}
	}
	l.send(&musterv1.Abort{Tx: "probe", Epoch: l.epoch})
	l.reply("probe")
}

// diskPressure awaits a heartbeat with this status of the condition.
func (r *rig) diskPressure(status string) *schedulerv1.NodeCondition {
	r.t.Helper()
	deadline := time.After(patient)
	for {
		select {
		case beat := <-r.store.beats:
			for _, c := range beat.GetConditions() {
				if c.GetType() == "DiskPressure" && c.GetStatus() == status {
					return c
				}
			}
		case <-deadline:
			r.t.Fatalf("no heartbeat says DiskPressure %s", status)
		}
	}
}

// commit makes a promise COMMITTED in the store and sends Commit to the agent,
// which may be repeated.
func (r *rig) commit(l *leader, promise *musterv1.Reply) {
	r.store.put(promise.GetTx(), musterv1.Record_COMMITTED, promise.GetMembers())
	var revision int64
	r.store.set(func(s *store) { revision = s.revision })
	l.send(&musterv1.Commit{Tx: promise.GetTx(), Epoch: l.epoch, Revision: revision})
}

// TestAPromiseOfBeforeAFullDiskIsHandedOverAndNoOtherIsMade: the room that was
// kept serves the promise, and from then on the node takes no new work and
// shows the reason, until there is room again.
func TestAPromiseOfBeforeAFullDiskIsHandedOverAndNoOtherIsMade(t *testing.T) {
	r, disk := newSmallDiskRig(t, 2*handoff.DefaultRoom)
	metrics := prometheus.NewRegistry()
	faulty := r.tune
	r.tune = func(c *agent.Config, d *agent.Deps) { faulty(c, d); d.Metrics = metrics }
	r.start()
	l := r.lead(1)
	promise := l.reserve("a", 2, time.Minute)
	mustBe(t, promise, musterv1.Reply_RESERVED)
	disk.set(0, nil)
	r.commit(l, promise)
	mustBe(t, l.outcome("a"), musterv1.Reply_HELD)
	if _, err := os.Stat(filepath.Join(r.dir, "assignments", "a.json")); err != nil {
		t.Error(err)
	}
	if why := l.refused(); !strings.HasPrefix(why, "DiskFull: ") || !strings.Contains(why, "assignment files") {
		t.Errorf("refused with %q", why)
	}
	pressure := r.diskPressure("True")
	if pressure.GetReason() != "AssignmentsNotWritable" || !strings.Contains(pressure.GetMessage(), "no space left on device") {
		t.Errorf("the condition is %v", pressure)
	}
	full := func() float64 {
		families, err := metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "muster_agent_disk_full" {
				return f.GetMetric()[0].GetGauge().GetValue()
			}
		}
		t.Fatal("there is no muster_agent_disk_full")
		return 0
	}
	if full() != 1 {
		t.Error("muster_agent_disk_full is not 1")
	}
	disk.set(2*handoff.DefaultRoom, nil)
	l.accepted()
	r.diskPressure("False")
	if full() != 0 {
		t.Error("muster_agent_disk_full is not 0")
	}
}

// TestHeldIsToldOnceLaunchersCanReadTheFiles: files that cannot be written are
// tried again, and until they are there the leader gets no reply about the
// grant.
func TestHeldIsToldOnceLaunchersCanReadTheFiles(t *testing.T) {
	r, disk := newSmallDiskRig(t, 2*handoff.DefaultRoom)
	r.start()
	l := r.lead(1)
	promise := l.reserve("a", 2, time.Minute)
	mustBe(t, promise, musterv1.Reply_RESERVED)
	disk.set(0, syscall.EIO)
	for range 2 { // a repeated Commit is not answered either
		r.commit(l, promise)
		l.send(&musterv1.Reserve{Tx: "probe", Epoch: l.epoch, TtlMillis: 60000, Members: []*musterv1.MemberRequest{want(1)}})
		l.send(&musterv1.Abort{Tx: "probe", Epoch: l.epoch})
		for answers := 0; answers < 2; {
			m := l.until("a reply", func(m *musterv1.AgentMessage) bool { return m.GetReply() != nil }).GetReply()
			if m.GetTx() == "probe" {
				answers++
			} else {
				t.Errorf("%s is told %s without its files", m.GetTx(), m.GetState())
			}
		}
	}
	l.refused()
	if pressure := r.diskPressure("True"); !strings.Contains(pressure.GetMessage(), "input/output error") {
		t.Errorf("the condition is %v", pressure)
	}
	disk.set(2*handoff.DefaultRoom, nil)
	mustBe(t, l.outcome("a"), musterv1.Reply_HELD)
	if _, err := os.Stat(filepath.Join(r.dir, "assignments", "a.json")); err != nil {
		t.Error(err)
	}
	l.accepted()
}

// TestANodeWithoutRoomForAssignmentFilesTakesNoWorkFromTheStart: a folder on a
// disk that was full before.
func TestANodeWithoutRoomForAssignmentFilesTakesNoWorkFromTheStart(t *testing.T) {
	r, disk := newSmallDiskRig(t, handoff.DefaultRoom/2)
	r.start()
	l := r.lead(1)
	mustBe(t, l.reserve("a", 1, time.Minute), musterv1.Reply_NO)
	disk.set(2*handoff.DefaultRoom, nil)
	l.accepted()
}
