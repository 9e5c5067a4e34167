package cluster

import (
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/invariant"
)

// quiet is a state in which u1 runs as t1 with g1 on n1, and more if so.
func quiet(more ...invariant.Change) *state {
	b := invariant.Batch{Revision: 1, Changes: append(runs("t1", recordOf(grant.RecordCommitted, 1, "u1", "g1")), more...)}
	s := newState(b)
	s.grants["n1"] = &schedulerv1.ResourceSnapshot{Allocations: []*schedulerv1.AllocationSnapshot{
		{Transaction: "t1", State: "HELD", GpuUuids: []string{"g1"}},
	}}
	return s
}

// runs are a record with its unit and its place in the node's index.
func runs(tx resource.TxID, r record.Tx) []invariant.Change {
	phase := map[grant.RecordState]api.Phase{grant.RecordCommitted: api.Running, grant.RecordReleasing: api.Terminating}[r.State]
	return []invariant.Change{invariant.Record{Tx: tx, New: &r}, unit(r.Unit, record.Unit{Phase: string(phase), TxID: tx}), invariant.Index{Node: "n1", Tx: tx}}
}

func unit(path record.UnitPath, u record.Unit) invariant.Change {
	u.UID = resource.UnitUID(path.Name)
	return invariant.Unit{Path: path, New: &u}
}

func TestTheAuditFindsWhatIsLeftBehind(t *testing.T) {
	u2 := record.UnitPath{Namespace: "ns", Kind: record.AllocUnit, Name: "u2"}
	for name, c := range map[string]struct {
		more   []invariant.Change
		change func(a *schedulerv1.ResourceSnapshot)
		want   string
	}{
		"nothing is":                 {},
		"a release under way":        {more: runs("t2", recordOf(grant.RecordReleasing, 1, "u2", "g2")), want: "t2 (ns/alloc/u2/0) is still RELEASING"},
		"an agent without its grant": {change: func(a *schedulerv1.ResourceSnapshot) { a.Allocations = nil }, want: "member 0 of t1 is COMMITTED and not held on n1"},
		"a grant with other devices": {change: func(a *schedulerv1.ResourceSnapshot) { a.Allocations[0].GpuUuids[0] = "g7" }, want: "n1 holds [g7] for member 0 of t1"},
		"a grant without a record": {change: func(a *schedulerv1.ResourceSnapshot) {
			a.Allocations = append(a.Allocations, &schedulerv1.AllocationSnapshot{Transaction: "t3", State: "HELD", GpuUuids: []string{"g3"}})
		}, want: `n1 holds [g3] for member 0 of t3, which is "absent"`},
		"a promise":                     {change: func(a *schedulerv1.ResourceSnapshot) { a.Allocations[0].State = "RESERVED" }, want: "n1 has t1 in RESERVED"},
		"a unit that runs nowhere":      {more: []invariant.Change{unit(u2, record.Unit{Phase: string(api.Running), TxID: "t9"})}, want: "unit ns/alloc/u2/0 is Running"},
		"a unit that waits in no order": {more: []invariant.Change{unit(u2, record.Unit{Phase: string(api.Pending)})}, want: "in the order: false"},
	} {
		t.Run(name, func(t *testing.T) {
			s := quiet(c.more...)
			if c.change != nil {
				c.change(s.grants["n1"])
			}
			found := strings.Join(s.unsettled(), "\n")
			if c.want == "" && found != "" || !strings.Contains(found, c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

func TestTheAuditFindsWhatClientsWereToldWrongly(t *testing.T) {
	created := func(name string, o Operation) Operation {
		o.Kind, o.Namespace, o.Name = CreateAllocation, "ns", name
		return o
	}
	asked := func(kind Kind, o Operation) Operation {
		o.Kind, o.Namespace, o.Name = kind, "ns", "u1"
		return o
	}
	running := Operation{Outcome: Done, Phase: api.Running, Transaction: "t1", Devices: []string{"n1 g1"}}
	for name, c := range map[string]struct {
		operations []Operation
		want       string
	}{
		"it runs":                                {[]Operation{created("u1", running)}, ""},
		"nobody knows":                           {[]Operation{created("u1", Operation{Outcome: Unknown})}, ""},
		"one that waited is gone":                {[]Operation{created("u2", Operation{Outcome: Unknown}), created("u1", running)}, ""},
		"lost":                                   {[]Operation{created("u2", running)}, "I4"},
		"lost, as its owner found":               {[]Operation{created("u2", running), {Kind: Delete, Namespace: "ns", Name: "u2", Outcome: Refused, Code: 404}}, "I4"},
		"a repeated deletion finds none":         {[]Operation{created("u2", running), {Kind: Delete, Namespace: "ns", Name: "u2", Outcome: Refused, Code: 404, Repeats: 1}}, ""},
		"refused, and yet it runs":               {[]Operation{created("u1", Operation{Outcome: Refused, Code: 403})}, "refused with 403"},
		"refused, and an earlier try came later": {[]Operation{created("u1", Operation{Outcome: Refused, Code: 403, Repeats: 1})}, ""},
		"not found, and then created": {[]Operation{
			created("u1", Operation{Outcome: Unknown}), asked(Delete, Operation{Outcome: Refused, Code: 404}),
		}, ""},
		"deleted, and yet it runs": {[]Operation{created("u1", running), asked(Delete, Operation{Outcome: Done})}, "deleted, and yet"},
		"it has moved": {[]Operation{created("u1", Operation{
			Outcome: Done, Phase: api.Running, Transaction: "t1", Devices: []string{"n1 g2"},
		})}, "I4"},
		"a read did not find it": {[]Operation{created("u1", running), asked(Get, Operation{Outcome: Refused, Code: 404})}, "a read was refused"},
		"a read found another":   {[]Operation{created("u1", running), asked(Get, Operation{Outcome: Done, Phase: api.Running, Transaction: "t2"})}, "read as t2"},
	} {
		t.Run(name, func(t *testing.T) {
			found := strings.Join(quiet().judge(c.operations), "\n")
			if c.want == "" && found != "" || !strings.Contains(found, c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}
