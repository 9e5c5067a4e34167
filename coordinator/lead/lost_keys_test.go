package lead

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// lostOn is the key of lost devices as the store has it; revision 0 for none.
func (x *scene) lostOn(id resource.NodeID) (record.NodeLost, resource.Revision) {
	x.t.Helper()
	r, kv := storedAs[record.NodeLost](x, record.NodeLostKey(id))
	return r, kv.ModRev
}

// reports has the agent of n1 report devices as lost; none ends the condition. at is the
// revision of the report.
func (x *scene) reports(at resource.Revision, uuids ...string) {
	x.t.Helper()
	status, text := record.NodeStatus{}, ""
	for _, uuid := range uuids {
		text += uuid + " ; "
	}
	if text != "" {
		status.Conditions = []record.Condition{{Type: "DeviceLost", Status: "True", Reason: "HeldDeviceGone", Message: text + "held, and gone"}}
	}
	health := map[int]grant.DeviceHealth{}
	n := x.nodes["n1"]
	for i, d := range n.host.Inventory.Devices {
		for _, uuid := range uuids {
			if d.UUID == uuid {
				health[i] = grant.DeviceHealth{Health: devices.Tainted, Reason: "gone"}
			}
		}
	}
	x.hear(grant.HealthChanged{Node: "n1", Health: health})
	x.give(NodeFacts{
		Node: "n1", Leased: true, Status: record.KV{Key: record.NodeStatusKey("n1"), Value: record.MustEncode(status), ModRev: at},
		Observed: n.observed.revision, Lost: n.lost.Revision,
	})
}

// runningOnN1 is an allocation of two GPUs of n1.
func (x *scene) runningOnN1() *work.Unit {
	x.t.Helper()
	for i := range 20 {
		if a := x.running(fmt.Sprint("a", i), 2, ""); a.Placements()[0].Node == "n1" {
			return a
		}
	}
	x.t.Fatal("nothing runs on n1")
	return nil
}

// gpusOf are the devices of a unit of one member.
func (x *scene) gpusOf(u *work.Unit) []string {
	var uuids []string
	for _, g := range u.Placements()[0].Assignment.GPUs {
		uuids = append(uuids, g.UUID)
	}
	return uuids
}

// TestALostDeviceIsAKey: the store names a device that is lost as long as work holds it,
// a returned device too, and the key goes with the last holder.
func TestALostDeviceIsAKey(t *testing.T) {
	x := newScene(t)
	a := x.runningOnN1()
	gpus := x.gpusOf(a)
	first, second := min(gpus[0], gpus[1]), max(gpus[0], gpus[1])
	lost := func() (record.NodeLost, resource.Revision) { x.seconds(2); return x.lostOn("n1") }
	if r, rev := lost(); rev != 0 {
		t.Fatalf("%+v although nothing is lost", r)
	}
	x.reports(100, second, "GPU-of-nobody")
	r, at := lost()
	if diff := cmp.Diff(record.NodeLost{Lost: []string{second}}, r); diff != "" {
		t.Fatalf("(-want +stored):\n%s", diff)
	}
	if shown := x.showMember(a, 0); shown.Revision != at || shown.Show().Status.Conditions[2].Type != "DeviceLost" {
		t.Errorf("revision %d, want %d: %+v", shown.Revision, at, shown.Show().Status.Conditions)
	}
	if _, again := lost(); again != at {
		t.Errorf("the same was written again at revision %d", again)
	}
	x.reports(101, first)
	r, later := lost()
	if diff := cmp.Diff(record.NodeLost{Lost: []string{first}, Returned: []string{second}}, r); diff != "" || later <= at {
		t.Fatalf("revision %d after %d (-want +stored):\n%s", later, at, diff)
	}
	x.leaves(a.Record.Name)
	x.answers()
	if r, _ := lost(); len(r.Lost) != 1 {
		t.Errorf("%+v, and the unit that is ending holds the device still", r)
	}
	x.settles(a, grant.Tombstone)
	if r, rev := lost(); rev != 0 {
		t.Errorf("%+v although nobody holds the devices", r)
	}
}

// TestTheKeyOfLostDevicesIsTheLeadersAlone: a value that is torn or somebody else's, or a
// key that was deleted, is written anew.
func TestTheKeyOfLostDevicesIsTheLeadersAlone(t *testing.T) {
	for name, value := range map[string][]byte{
		"torn":             []byte(`{"v":1,"lo`),
		"of somebody else": record.MustEncode(record.NodeLost{Lost: []string{"GPU-x"}}),
		"deleted":          nil,
	} {
		for _, lost := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", a device is lost: ", lost), func(t *testing.T) {
				x := newScene(t)
				a := x.runningOnN1()
				want := record.NodeLost{}
				if lost {
					want.Lost = x.gpusOf(a)[:1]
					x.reports(100, want.Lost...)
					x.seconds(2)
				}
				key := record.NodeLostKey("n1")
				n := x.nodes["n1"]
				x.give(NodeFacts{Node: "n1", Leased: true, Status: record.KV{Key: record.NodeStatusKey("n1"), Value: record.MustEncode(n.said.NodeStatus), ModRev: 101}, Observed: n.observed.revision, Lost: n.lost.Revision})
				op := record.Put(key, value)
				if value == nil {
					op = record.Delete(key)
				}
				if _, err := x.kv.Txn(t.Context(), record.Txn{Then: []record.Op{op}}); err != nil {
					t.Fatal(err)
				}
				kv, _, _, err := x.kv.Get(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				x.give(NodeFacts{Node: "n1", Leased: true, Status: record.KV{Key: record.NodeStatusKey("n1"), Value: record.MustEncode(n.said.NodeStatus), ModRev: 102}, Observed: n.observed.revision, Lost: kv.ModRev})
				x.seconds(3)
				if got, _ := x.lostOn("n1"); !got.Equal(want) {
					t.Errorf("stored %+v, want %+v", got, want)
				}
			})
		}
	}
}

// TestALostKeyWithoutAnAnswerIsReadAgain: the leader knows the key whether the write has
// landed or not.
func TestALostKeyWithoutAnAnswerIsReadAgain(t *testing.T) {
	for _, lands := range []bool{true, false} {
		t.Run(fmt.Sprint("the write lands: ", lands), func(t *testing.T) {
			x := newScene(t)
			a := x.runningOnN1()
			x.seconds(2)
			x.reports(100, x.gpusOf(a)[0])
			x.second()
			for len(x.asked) > 0 && (x.asked[0].Kind != post.WriteKeys || x.asked[0].Write.Ops[0].Key != record.NodeLostKey("n1")) {
				x.answer()
			}
			x.loses(lands)
			x.seconds(4)
			if r, rev := x.lostOn("n1"); len(r.Lost) != 1 || x.nodes["n1"].lost.Revision != rev || !x.nodes["n1"].lost.Equal(r) {
				t.Errorf("stored %+v at %d, the leader has %+v", r, rev, x.nodes["n1"].lost)
			}
		})
	}
}

// TestTheDeletionOfANodeDeletesItsLostDevices: also a key that was written after the read.
func TestTheDeletionOfANodeDeletesItsLostDevices(t *testing.T) {
	x := newScene(t)
	x.nodes["n1"].connected = false
	kvs, _, err := x.kv.Range(t.Context(), record.NodeIn("n1"), store.RangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	x.put(record.NodeLostKey("n1"), record.MustEncode(record.NodeLost{Lost: []string{"GPU-a"}}))
	x.finish(func() { x.deleteRead(DeleteNode{Node: "n1"}, kvs, record.KV{}, 1, func(*api.Status) {}) })
	if left, _, _ := x.kv.Range(t.Context(), record.NodeIn("n1"), store.RangeOptions{}); len(left) > 0 {
		t.Errorf("%d keys of a deleted node are left, %s first", len(left), left[0].Key)
	}
}

// TestAGangHoldsItsDevicesOnEachNode, also on the node of a later member.
func TestAGangHoldsItsDevicesOnEachNode(t *testing.T) {
	x := newScene(t)
	for _, id := range x.gangOf(2, "", "").Attempt.Machine.Nodes() {
		if got := len(x.heldOn(x.nodes[id])); got != 8 {
			t.Errorf("%d devices are held on %s, want 8", got, id)
		}
	}
}
