package cluster

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// story builds what a store tells a watcher: one batch per step.
type story struct {
	t       *testing.T
	witness *Witness
	at      resource.Revision
}

func tell(t *testing.T) *story {
	s := &story{t: t, witness: newWitness()}
	s.elect("l1") // revision 1, so its epoch is 1
	s.revision(s.put(record.QuotaKey{Kind: record.QuotaResources, Namespace: "ns", Name: "limit"}.Key(), quotaOf(t, 2)))
	return s
}

func quotaOf(t *testing.T, gpus int) []byte {
	t.Helper()
	q := api.ResourceQuota{Kind: "ResourceQuota"}
	q.Spec.Hard = map[resource.Name]string{resource.GPU: string(rune('0' + gpus))}
	document, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	return record.MustEncode(record.Quota{UID: "u", Namespace: "ns", Name: "limit", Document: document})
}

func (s *story) put(key string, value []byte) record.Event {
	return record.Event{KV: record.KV{Key: key, Value: value, CreateRev: s.at + 1, ModRev: s.at + 1}}
}

func (s *story) revision(events ...record.Event) *story {
	s.at++
	s.witness.follow(record.Batch{Revision: s.at, Events: events})
	return s
}

func (s *story) elect(lease string) *story {
	return s.revision(s.put(record.LeaderPrefix+lease, record.MustEncode(record.LeaderAddress{ID: lease})))
}

func (s *story) depose(lease string) *story {
	return s.revision(record.Event{Type: record.EventDelete, KV: record.KV{Key: record.LeaderPrefix + lease, ModRev: s.at + 1}})
}

// record is a transaction's, of one member with one device.
func recordIn(state grant.RecordState, epoch resource.Epoch, unit, device string) record.Tx {
	return record.Tx{
		State: state, Epoch: epoch, Unit: record.UnitPath{Namespace: "ns", Kind: record.AllocUnit, Name: unit}, UnitUID: resource.UnitUID(unit),
		Charges: []record.Charge{{Tree: quota.Tree, Group: "ns", Request: resource.Vector{resource.GPU: 1000}}},
		Members: []record.Placement{{Node: "n1", Incarnation: resource.Incarnation{JournalID: "j", BootID: "b"}, Assignment: resource.Assignment{
			GPUs: []resource.GPUGrant{{UUID: device, Milli: resource.WholeDevice}},
		}}},
	}
}

// write is a record's put, with its index key as the leader writes it.
func (s *story) write(tx resource.TxID, r record.Tx) *story {
	index := s.put(record.NodeTxKey("n1", tx), record.MustEncode(record.NodeTx{Members: []int{0}}))
	if !r.State.Charged() {
		index = record.Event{Type: record.EventDelete, KV: record.KV{Key: index.KV.Key, ModRev: s.at + 1}}
	}
	return s.revision(s.put(record.TxKey(tx), record.MustEncode(r)), index)
}

func TestTheWitnessFindsWhatIsPromisedNeverToBe(t *testing.T) {
	const a, b, c = grant.RecordCommitted, grant.RecordReleasing, grant.RecordReleased
	for name, x := range map[string]struct {
		happens func(s *story)
		want    string
	}{
		"a life": {func(s *story) {
			s.write("t1", recordIn(a, 1, "u1", "g1")).write("t1", recordIn(b, 1, "u1", "g1")).write("t2", recordIn(a, 1, "u2", "g1"))
			s.write("t1", recordIn(c, 1, "u1", "g1")).write("t3", recordIn(a, 1, "u3", "g3"))
		}, ""},
		"the next leader goes on": {func(s *story) {
			s.elect("l2").depose("l1").write("t1", recordIn(a, 3, "u1", "g1"))
		}, ""},
		"a device twice": {func(s *story) {
			s.write("t1", recordIn(a, 1, "u1", "g1")).write("t2", recordIn(a, 1, "u2", "g1"))
		}, "I1"},
		"more than the limit": {func(s *story) {
			s.write("t1", recordIn(a, 1, "u1", "g1")).write("t2", recordIn(b, 1, "u2", "g2")).write("t3", recordIn(a, 1, "u3", "g3"))
		}, "I2"},
		"a limit that is lowered takes nothing back": {func(s *story) {
			s.write("t1", recordIn(a, 1, "u1", "g1")).write("t2", recordIn(a, 1, "u2", "g2"))
			s.revision(s.put(record.QuotaKey{Kind: record.QuotaResources, Namespace: "ns", Name: "limit"}.Key(), quotaOf(s.t, 1)))
			s.write("t2", recordIn(b, 1, "u2", "g2"))
		}, ""},
		"a unit twice": {func(s *story) {
			s.write("t1", recordIn(a, 1, "u1", "g1")).write("t2", recordIn(a, 1, "u1", "g2"))
		}, "I6"},
		"an end that is taken back": {func(s *story) {
			s.write("t1", recordIn(a, 1, "u1", "g1")).write("t1", recordIn(b, 1, "u1", "g1")).write("t1", recordIn(a, 1, "u1", "g1"))
		}, "I11"},
		"aborted, and then committed": {func(s *story) {
			s.revision(s.put(record.TxKey("t1"), record.MustEncode(record.Tx{State: grant.RecordAborted, UnitUID: "u1"})))
			s.write("t1", recordIn(a, 1, "u1", "g1"))
		}, "I11"},
		"released at once": {func(s *story) {
			s.write("t1", recordIn(a, 1, "u1", "g1")).write("t1", recordIn(c, 1, "u1", "g1"))
		}, "I11"},
		"a commit of a candidate that waits": {func(s *story) {
			s.elect("l2").write("t1", recordIn(a, 3, "u1", "g1"))
		}, "I12"},
		"a commit of a leader that was": {func(s *story) {
			s.elect("l2").depose("l1").write("t1", recordIn(a, 1, "u1", "g1"))
		}, "I12"},
		"a live record is removed": {func(s *story) {
			s.write("t1", recordIn(a, 1, "u1", "g1"))
			s.revision(
				record.Event{Type: record.EventDelete, KV: record.KV{Key: record.TxKey("t1")}},
				record.Event{Type: record.EventDelete, KV: record.KV{Key: record.NodeTxKey("n1", "t1")}},
			)
		}, "is deleted while"},
		"a record without its index": {func(s *story) {
			s.revision(s.put(record.TxKey("t1"), record.MustEncode(recordIn(a, 1, "u1", "g1"))))
		}, "the index lists it at []"},
		"an index without its record": {func(s *story) {
			s.revision(s.put(record.NodeTxKey("n1", "t1"), record.MustEncode(record.NodeTx{Members: []int{0}})))
		}, "the index lists it at [n1]"},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t)
			x.happens(s)
			found := strings.Join(s.witness.Problems(), "\n")
			if x.want == "" && found != "" || !strings.Contains(found, x.want) {
				t.Errorf("found %q, want %q", found, x.want)
			}
		})
	}
}
