package narrate_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/narrate"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// The part of a lost member ends at its loss, that of the others with the grant; the exit
// of a member in another transaction is that one's.
func TestALostMember(t *testing.T) {
	k, u, rec := newKeys(), unit(), committed(5)
	u.Members, u.Phase, u.TxID = 2, "Running", tx
	lost := record.Placement{Member: 1, Node: "n2", Assignment: rec.Members[0].Assignment}
	rec.Members = append(rec.Members, lost)
	k.write(record.MustPutRecord(u.Path().Key(), u), record.MustPutRecord(record.TxKey(tx), rec))
	rec.Members = rec.Members[:1]
	rec.LostMembers = []record.LostMember{{Placement: lost, AtMillis: began + 20_000}}
	k.write(record.MustPutRecord(record.TxKey(tx), rec))
	grants := k.n.Take().Grants
	if len(grants) != 1 || len(grants[0].Members) != 2 || !grants[0].Members[1].Ended.Equal(at(20)) || !grants[0].Members[0].Ended.IsZero() || grants[0].Members[1].Node != "n2" {
		t.Fatalf("after the loss: %+v", grants)
	}
	rec.State, rec.EndedMillis, rec.Ended = grant.RecordReleased, began+65_000, "2000-01-01T00:01:05Z"
	rec.Outcome = &record.Outcome{Phase: "Succeeded", Exits: []record.Exit{{Member: 0, Node: "n1", Reason: "Completed"}, {Member: 1, Node: "n3", Reason: "Completed", Tx: "another"}}}
	k.write(record.MustPutRecord(record.TxKey(tx), rec))
	grants = k.n.Take().Grants
	var exits []record.Exit
	if len(grants) != 1 || json.Unmarshal(grants[0].Exits, &exits) != nil || len(exits) != 1 || exits[0].Member != 0 || !grants[0].Members[1].Ended.Equal(at(20)) {
		t.Errorf("at the end: %+v with the exits %s", grants, grants[0].Exits)
	}
}

// TestMembersThatEndAtDifferentTimes: the part of a member ends when the member's node freed
// the part, before the grant's end, also for a narrator with a later begin.
func TestMembersThatEndAtDifferentTimes(t *testing.T) {
	k, u, rec := newKeys(), unit(), committed(5)
	u.Members, u.Phase, u.TxID = 2, "Terminating", tx
	rec.Members = append(rec.Members, record.Placement{Member: 1, Node: "n2", Assignment: rec.Members[0].Assignment})
	rec.State, rec.EndingMillis = grant.RecordReleasing, began+10_000
	k.write(record.MustPutRecord(u.Path().Key(), u), record.MustPutRecord(record.TxKey(tx), rec))
	ready := record.Ready{AtMillis: began + 6000, Freed: []record.FreedNode{{Node: "n2", AtMillis: began + 20_000}}}
	k.write(record.MustPutRecord(record.ReadyKey(tx), ready))
	if b := k.n.Take(); len(b.Grants) != 1 || !b.Grants[0].Members[1].Ended.Equal(at(20)) || !b.Grants[0].Members[0].Ended.IsZero() || !b.At.Equal(at(20)) {
		t.Fatalf("once n2 has freed its member, at %s: %+v", b.At, b.Grants)
	}
	rec.State, rec.EndedMillis = grant.RecordReleased, began+65_000
	ready.Freed = append(ready.Freed, record.FreedNode{Node: "n1", AtMillis: began + 65_000})
	k.write(record.MustPutRecord(record.TxKey(tx), rec), record.MustPutRecord(record.ReadyKey(tx), ready))
	followed := k.n.Take().Grants
	if len(followed) != 1 || !followed[0].Members[1].Ended.Equal(at(20)) || !followed[0].Members[0].Ended.IsZero() || !followed[0].Ended.Equal(at(65)) {
		t.Errorf("at the end: %+v", followed)
	}
	whole := narrate.New("prod")
	var kvs []record.KV
	for _, o := range []record.Op{record.MustPutRecord(record.ReadyKey(tx), ready), record.MustPutRecord(record.TxKey(tx), rec), record.MustPutRecord(u.Path().Key(), u)} {
		kvs = append(kvs, record.KV{Key: o.Key, Value: o.Value, CreateRev: 2, ModRev: k.at})
	}
	whole.LoadAll(kvs, k.at)
	if d := cmp.Diff(followed, whole.Take().Grants); d != "" {
		t.Errorf("(-followed +read)\n%s", d)
	}
}

// TestAFreedNodeBehindTheEnd: the commit of the next holder may write the instant of a freed
// node behind the end of the record, when the unit is gone.
func TestAFreedNodeBehindTheEnd(t *testing.T) {
	k, u, rec := newKeys(), unit(), committed(5)
	u.Members, u.TxID = 2, tx
	rec.Members = append(rec.Members, record.Placement{Member: 1, Node: "n2", Assignment: rec.Members[0].Assignment})
	ready := record.Ready{AtMillis: began + 6000}
	k.write(record.MustPutRecord(u.Path().Key(), u), record.MustPutRecord(record.TxKey(tx), rec), record.MustPutRecord(record.ReadyKey(tx), ready))
	rec.State, rec.EndingMillis, rec.EndedMillis = grant.RecordReleased, began+10_000, began+65_000
	k.write(record.MustPutRecord(record.TxKey(tx), rec), record.Delete(u.Path().Key()))
	end := k.n.Take().Grants
	if len(end) != 1 || !end[0].Members[1].Ended.IsZero() || !end[0].Ended.Equal(at(65)) {
		t.Fatalf("at the end: %+v", end)
	}
	ready.SignaledMillis = began + 9000
	if k.write(record.MustPutRecord(record.ReadyKey(tx), ready)); len(k.n.Take().Grants) > 0 {
		t.Error("a row behind the end for no instant of a node")
	}
	ready.Freed = []record.FreedNode{{Node: "n2", AtMillis: began + 20_000}}
	k.write(record.MustPutRecord(record.ReadyKey(tx), ready))
	want := end[0]
	want.Members[1].Ended, want.Signaled, want.Revision = at(20), at(9), k.at
	if d := cmp.Diff([]history.Grant{want}, k.n.Take().Grants); d != "" || k.n.IsPartial(tx) {
		t.Errorf("behind the end, without the unit's request %t (-want +got)\n%s", k.n.IsPartial(tx), d)
	}
	k.write(record.Delete(record.TxKey(tx)), record.Delete(record.ReadyKey(tx)))
	if b := k.n.Take(); len(b.Grants) > 0 {
		t.Errorf("a record that is collected: %+v", b.Grants)
	}
}

// The replacement of a member of a job whose members differ has the requests of that member.
func TestAReplacementOfMembersThatDiffer(t *testing.T) {
	k, u, rec := newKeys(), unit(), committed(5)
	path := u.Path()
	path.Kind, path.N = record.JobUnit, record.FirstReplacement+1
	u.Kind, u.N, u.Document, u.Made, u.FirstMember, u.Replaces, u.Parent, u.Phase, u.TxID = record.JobUnit, path.N, nil, nil, 1, true, "u0", "Running", tx
	rec.Unit = path
	job := record.Job{UID: "j1", Namespace: "ns", Name: "train", Tenant: "t", Phase: "Running", Created: u.Created, Units: []record.UnitPath{path}, Document: []byte(
		`{"kind":"Job","metadata":{"name":"train"},"spec":{"members":[{"name":"launcher","count":1},{"name":"worker","count":2,"nodeSelector":{"pool":"gpu"},"resources":{"requests":{"cpu":"2","nvidia.com/gpu":"2"},"limits":{"cpu":"4"}}}],` +
			`"template":{"spec":{"resources":{"requests":{"cpu":"1"}}}}}}`)}
	k.write(record.MustPutRecord(record.JobKey("ns", "train"), job), record.MustPutRecord(path.Key(), u), record.MustPutRecord(record.TxKey(tx), rec))
	got, amounts := k.n.Take(), resource.Vector{resource.CPU: 2000, resource.GPU: 2000}
	if len(got.Units) != 1 || len(got.Grants) != 1 {
		t.Fatalf("%+v", got)
	}
	if diff := cmp.Diff([]resource.Vector{amounts, {resource.CPU: 4000}, amounts}, []resource.Vector{got.Units[0].Requests, got.Units[0].Limits, got.Grants[0].Members[0].Requested}); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if selector := string(got.Units[0].NodeSelector); selector != `{"pool":"gpu"}` {
		t.Errorf("the selector is %s", selector)
	}
}

// TestAKeyOfReadinessBehindTheEnd: the write of the key was refused, because the grant had
// ended, and the commit of the next holder carries the key. A narrator with a later begin gives
// the same row.
func TestAKeyOfReadinessBehindTheEnd(t *testing.T) {
	k, u, rec := newKeys(), unit(), committed(5)
	u.TxID = tx
	k.write(record.MustPutRecord(u.Path().Key(), u), record.MustPutRecord(record.TxKey(tx), rec))
	rec.State, rec.EndingMillis, rec.EndedMillis = grant.RecordReleased, began+10_000, began+65_000
	k.write(record.MustPutRecord(record.TxKey(tx), rec), record.Delete(u.Path().Key()))
	end, ended := k.n.Take().Grants, k.at
	ready := record.Ready{AtMillis: began + 6000, Freed: []record.FreedNode{{Node: "n1", AtMillis: began + 65_000}}}
	key := record.MustPutRecord(record.ReadyKey(tx), ready)
	k.write(key)
	want := end[0]
	want.Ready, want.Revision = at(6), k.at
	followed := k.n.Take().Grants
	if d := cmp.Diff([]history.Grant{want}, followed); d != "" || k.n.IsPartial(tx) {
		t.Errorf("behind the end, without the unit's request %t (-want +got)\n%s", k.n.IsPartial(tx), d)
	}
	whole := narrate.New("prod")
	whole.LoadAll([]record.KV{
		{Key: record.TxKey(tx), Value: record.MustEncode(rec), CreateRev: 2, ModRev: ended}, {Key: key.Key, Value: key.Value, CreateRev: k.at, ModRev: k.at},
	}, k.at)
	read := whole.Take().Grants
	if len(read) != 1 || !read[0].Ready.Equal(at(6)) || read[0].Revision != want.Revision {
		t.Errorf("a narrator with a later begin: %+v, want the instant and the revision of %+v", read, want)
	}
	k.write(record.MustPutRecord(record.ReadyKey(tx), ready))
	if again := k.n.Take().Grants; len(again) != 1 || again[0].Revision != k.at {
		t.Errorf("the key is written again: %+v, want the row at revision %d", again, k.at)
	}
}
