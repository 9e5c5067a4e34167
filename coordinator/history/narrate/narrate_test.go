package narrate_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/narrate"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// keys writes revisions for a narrator.
type keys struct {
	n  *narrate.Narrator
	at resource.Revision
	// created are the create revisions of the keys.
	created map[string]resource.Revision
}

func newKeys() *keys {
	return &keys{n: narrate.New("prod"), at: 1, created: map[string]resource.Revision{}}
}

// write makes one revision.
func (k *keys) write(ops ...record.Op) {
	k.at++
	b := record.Batch{Revision: k.at}
	for _, o := range ops {
		e := record.Event{KV: record.KV{Key: o.Key, ModRev: k.at}}
		if o.Delete {
			e.Type = record.EventDelete
			delete(k.created, o.Key)
		} else {
			if k.created[o.Key] == 0 {
				k.created[o.Key] = k.at
			}
			e.KV.Value, e.KV.CreateRev = o.Value, k.created[o.Key]
		}
		b.Events = append(b.Events, e)
	}
	k.n.Follow(b)
}

const (
	tx       = resource.TxID("u1.2.1.00000000000000000000000000000001")
	began    = int64(946_684_800_000) // 2000-01-01T00:00:00Z
	document = `{"metadata":{"name":"train"},"spec":{"resources":{"requests":{"cpu":"2","nvidia.com/gpu":"2"}},"ttl":"1h"}}`
)

func at(seconds int64) time.Time { return time.UnixMilli(began + 1000*seconds).UTC() }

func unit() record.Unit {
	return record.Unit{
		UID: "u1", Kind: record.AllocUnit, Namespace: "ns", Name: "train", Tenant: "t", Phase: "Pending", Members: 1, Priority: 5,
		Document: []byte(document), Created: "2000-01-01T00:00:00Z", Made: &record.Actor{ID: "946684800000-1", Person: "ada", RequestID: "r1"},
	}
}

func committed(at int64) record.Tx {
	return record.Tx{
		State: grant.RecordCommitted, Epoch: 2, Unit: unit().Path(), UnitUID: "u1", Tenant: "t", CommittedMillis: began + 1000*at,
		Members: []record.Placement{{Node: "n1", Assignment: resource.Assignment{
			CPUs: []resource.CPUGrant{{ID: 0, Milli: 1000}, {ID: 1, Milli: 1000}}, GPUs: []resource.GPUGrant{{UUID: "GPU-b", Index: 1, Milli: 1000}, {UUID: "GPU-a", Milli: 1000}},
		}}},
	}
}

// life writes a whole life: 5 s of waiting, 60 s of work, an end that the owner asks for.
func (k *keys) life() {
	u := unit()
	order := u.Order().Key()
	k.write(record.MustPutRecord(u.Path().Key(), u), record.MustPutRecord(order, record.Order{UnitUID: "u1"}))
	k.write(record.MustPutRecord(order, record.Order{UnitUID: "u1", Waiting: &record.Waiting{Code: "WaitingForResources", Message: "no place", SinceMillis: began + 1000}}))
	u.Phase, u.TxID, u.Started = "Running", tx, "2000-01-01T00:00:05Z"
	rec := committed(5)
	k.write(record.MustPutRecord(u.Path().Key(), u), record.MustPutRecord(record.TxKey(tx), rec), record.Delete(order))
	k.write(record.MustPutRecord(record.ReadyKey(tx), record.Ready{AtMillis: began + 6000}))
	u.Phase, rec.State, rec.EndingMillis, rec.Reason = "Terminating", grant.RecordReleasing, began+60_000, "deleted"
	k.write(record.MustPutRecord(u.Path().Key(), u), record.MustPutRecord(record.TxKey(tx), rec))
	rec.State, rec.EndedMillis, rec.Ended = grant.RecordReleased, began+65_000, "2000-01-01T00:01:05Z"
	k.write(record.Delete(u.Path().Key()), record.MustPutRecord(record.TxKey(tx), rec))
	k.write(record.Delete(record.TxKey(tx)), record.Delete(record.ReadyKey(tx)))
}

func TestALife(t *testing.T) {
	k := newKeys()
	k.life()
	got := k.n.Take()
	amounts := resource.Vector{resource.CPU: 2000, resource.GPU: 2000}
	want := history.Batch{
		Upto: k.at, At: at(65),
		Units: []history.Unit{{
			UID: "u1", Namespace: "ns", Name: "train", Tenant: "t", User: "ada", Queue: "default", Priority: 5, QOSClass: "Burstable", Members: 1, Requests: amounts,
			State: "Cancelled", Reason: "deleted", Created: at(0), Scheduled: at(5), Started: at(6), Ended: at(65), TTL: time.Hour, TimeLimited: true, Expires: at(3606), Revision: 7,
		}},
		Grants: []history.Grant{{
			Tx: tx, Unit: "u1", Namespace: "ns", Tenant: "t", State: "RELEASED", Committed: at(5), Ready: at(6), Ending: at(60), Ended: at(65), Reason: "deleted",
			Members: []history.Member{{Node: "n1", Devices: []string{"GPU-a", "GPU-b"}, Requested: amounts, Allocated: amounts}}, Revision: 7,
		}},
		Waits: []history.Wait{{
			Unit: "u1", Namespace: "ns", Tenant: "t", Queue: "default", Priority: 5, Since: at(1), Until: at(5), Code: "WaitingForResources", Message: "no place", Revision: 4,
		}},
		Audit: []history.Audit{{
			ID: "946684800000-1", At: at(0), Actor: []byte(`{"id":"946684800000-1","person":"ada","requestId":"r1"}`), User: "ada", Verb: "create", Kind: "allocations",
			Namespace: "ns", Name: "train", RequestID: "r1", Result: "Done", Revision: 2,
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if faults := k.n.Faults(); len(faults) > 0 {
		t.Errorf("faults %v", faults)
	}
	if rest := k.n.Take(); k.n.Rows() != 0 || rest.After != k.at || rest.Upto != k.at {
		t.Errorf("after everything was taken: %+v", rest)
	}
}

// TestAnEviction: the victim's row names the preemptor, and its outcome moves on.
func TestAnEviction(t *testing.T) {
	for name, c := range map[string]struct {
		phase    string // of the victim behind its end
		again    bool   // a second run
		released bool   // by the owner, during the notice
		want     string
	}{
		"the victim ends":                {phase: "Preempted", want: "Ended"},
		"the victim waits":               {phase: "Pending", want: "Evicted"},
		"the victim runs again":          {phase: "Pending", again: true, want: "Rescheduled"},
		"the owner does not wait for it": {phase: "Cancelled", released: true, want: "Released"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKeys()
			u, rec := unit(), committed(0)
			other := unit()
			other.UID, other.Name, other.Priority, other.Tenant = "u2", "urgent", 100, "b"
			u.Phase, u.TxID = "Running", tx
			k.write(record.MustPutRecord(u.Path().Key(), u), record.MustPutRecord(record.TxKey(tx), rec), record.MustPutRecord(other.Path().Key(), other))
			rec.State, rec.Evicted, rec.By, rec.EndingMillis, rec.GraceSeconds = grant.RecordEvicting, true, "u2.2.2.00000000000000000000000000000001", began+10_000, 30
			k.write(record.MustPutRecord(record.TxKey(tx), rec))
			if c.released {
				rec.State, rec.Evicted, rec.EndingMillis = grant.RecordReleasing, false, began+11_000
				k.write(record.MustPutRecord(record.TxKey(tx), rec))
			}
			rec.State, rec.EndedMillis = grant.RecordReleased, began+20_000
			u.Phase, u.TxID = c.phase, ""
			k.write(record.MustPutRecord(u.Path().Key(), u), record.MustPutRecord(record.TxKey(tx), rec))
			if c.again {
				next := committed(30)
				k.write(record.MustPutRecord(record.TxKey("u1.2.3.00000000000000000000000000000001"), next))
			}
			got := k.n.Take().Preemptions
			if len(got) != 1 {
				t.Fatalf("%d rows: %+v", len(got), got)
			}
			p := got[0]
			if p.Outcome != c.want || p.Victim != "u1" || p.Preemptor != "u2" || p.PreemptorTenant != "b" || p.PreemptorPriority != 100 || !p.Initiated.Equal(at(10)) ||
				p.Evicted.IsZero() || p.Freed[resource.GPU] != 2000 || p.Grace != 30*time.Second || c.again != p.Rescheduled.Equal(at(30)) {
				t.Errorf("%+v, want the outcome %s", p, c.want)
			}
		})
	}
}

// TestAnEvictionNamesItsPerson: a person evicts or drains, a rule and a preemptor do not.
func TestAnEvictionNamesItsPerson(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		by     resource.TxID
		want   string
	}{
		"a person evicts":     {record.AskedFor("room", "ada"), "", "ada"},
		"a person drains":     {record.DrainedFor("a fan", "bob"), "", "bob"},
		"a rule":              {"DeviceLost: GPU-a of node n1 is lost", "", "rule"},
		"another unit":        {"gives way to u2 (of ada)", "u2.2.2.00000000000000000000000000000001", "preemptor"},
		"an unsigned request": {"room", "", "rule"},
	} {
		k := newKeys()
		u, rec := unit(), committed(0)
		u.Phase, u.TxID = "Running", tx
		k.write(record.MustPutRecord(u.Path().Key(), u), record.MustPutRecord(record.TxKey(tx), rec))
		rec.State, rec.Evicted, rec.By, rec.Reason, rec.EndingMillis = grant.RecordEvicting, true, c.by, c.reason, began+10_000
		k.write(record.MustPutRecord(record.TxKey(tx), rec))
		if got := k.n.Take().Preemptions; len(got) != 1 || got[0].InitiatedBy != c.want {
			t.Errorf("%s: %+v, want a row that is initiated by %s", name, got, c.want)
		}
	}
}

// TestLimitsOfAQuota: each change ends the limits before it.
func TestLimitsOfAQuota(t *testing.T) {
	k := newKeys()
	key := record.QuotaKey{Kind: record.QuotaResources, Namespace: "ns", Name: "q"}.Key()
	put := func(changed int64, spec string) {
		k.write(record.MustPutRecord(key, record.Quota{UID: "q1", Namespace: "ns", Name: "q", Document: []byte(`{"spec":` + spec + `}`), Created: "2000-01-01T00:00:00Z", ChangedMillis: changed}))
	}
	put(began, `{"hard":{"cpu":"4"},"soft":{"cpu":"2"}}`)
	put(began+9000, `{"hard":{"cpu":"8"}}`)
	k.write(record.MustPutRecord(record.AuditPrefix+"2000-01-01T00/a1", record.Audit{Actor: record.Actor{ID: "a1", Person: "ada"}, AtMillis: began + 20_000, Verb: "delete", Kind: "resourcequotas"}), record.Delete(key))
	row := history.Quota{Namespace: "ns", Name: "q", Tenant: "ns", Slot: resource.CPU}
	first, second := row, row
	first.Hard, first.Soft, first.From, first.To, first.Revision = 4000, 2000, at(0), at(9), 3
	second.Hard, second.Soft, second.From, second.To, second.Revision = 8000, resource.Unlimited, at(9), at(20), 4
	if diff := cmp.Diff([]history.Quota{first, second}, k.n.Take().Quotas); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAKeyThatCannotBeRead is a fault, and the others go on.
func TestAKeyThatCannotBeRead(t *testing.T) {
	k := newKeys()
	k.write(record.Put(record.TxKey("u9.1.1.00000000000000000000000000000001"), []byte(`{"v":2}`)), record.Put(record.UnitsPrefix+"a/b", nil))
	k.life()
	if b := k.n.Take(); len(b.Units) != 1 || len(b.Grants) != 1 {
		t.Errorf("%d units and %d grants, want 1 of each", len(b.Units), len(b.Grants))
	}
	if faults := k.n.Faults(); len(faults) != 2 {
		t.Errorf("faults %v, want 2", faults)
	}
}

// BenchmarkLives is the cost of a life: 7 revisions, about 1.5 KB each way.
func BenchmarkLives(b *testing.B) {
	for b.Loop() {
		k := newKeys()
		k.life()
		k.n.Take()
	}
}

// TestAFullReadHasTheConditions: a history that begins, or goes on after a gap, states the
// conditions that nodes have, as one that has followed each change does.
func TestAFullReadHasTheConditions(t *testing.T) {
	ops := []record.Op{
		record.MustPutRecord(record.NodeSpecKey("n1"), record.NodeSpec{Hostname: "h", Created: "2000-01-01T00:00:00Z"}),
		record.MustPutRecord(record.NodeStatusKey("n1"), record.NodeStatus{Conditions: []record.Condition{{Type: "DiskPressure", Status: "True", LastTransition: "2000-01-01T00:00:09Z"}}}),
	}
	k := newKeys()
	for _, o := range ops {
		k.write(o)
	}
	followed := history.NewestConditions(k.n.Take().Conditions)
	whole := narrate.New("prod")
	var kvs []record.KV
	for i, o := range ops {
		kvs = append(kvs, record.KV{Key: o.Key, Value: o.Value, CreateRev: resource.Revision(i + 2), ModRev: resource.Revision(i + 2)})
	}
	whole.LoadAll(kvs, 9)
	read := history.NewestConditions(whole.Take().Conditions)
	status := func(list []history.Condition) map[string]string {
		all := map[string]string{}
		for _, c := range list {
			all[c.Type] = c.New
		}
		return all
	}
	if d := cmp.Diff(status(followed), status(read)); d != "" || status(read)["DiskPressure"] != "True" {
		t.Errorf("(-followed +read)\n%s", d)
	}
}
