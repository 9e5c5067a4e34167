package cluster

import (
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
)

// quiet is a state in which u1 runs as t1 with g1 on n1.
func quiet() *state {
	r := recordIn(grant.RecordCommitted, 1, "u1", "g1")
	return &state{
		records: map[resource.TxID]record.Tx{"t1": r},
		units:   map[string]record.Unit{"ns/alloc/u1/0": {UID: "u1", Phase: string(api.Running), TxID: "t1"}},
		order:   map[resource.UnitUID]bool{},
		grants: map[string]*schedulerv1.ResourceSnapshot{"n1": {Allocations: []*schedulerv1.AllocationSnapshot{
			{Transaction: "t1", State: "HELD", GpuUuids: []string{"g1"}},
		}}},
	}
}

func TestTheAuditFindsWhatIsLeftBehind(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *state)
		want   string
	}{
		"nothing is":                 {func(*state) {}, ""},
		"a release under way":        {func(s *state) { s.records["t2"] = recordIn(grant.RecordReleasing, 1, "u2", "g2") }, "t2 (ns/alloc/u2/0) is RELEASING"},
		"an agent without its grant": {func(s *state) { s.grants["n1"].Allocations = nil }, "member 0 of t1 does not hold g1 on n1"},
		"a grant with other devices": {func(s *state) { s.grants["n1"].Allocations[0].GpuUuids[0] = "g7" }, "n1 holds g7 for t1"},
		"a grant without a record":   {func(s *state) { delete(s.records, "t1"); delete(s.units, "ns/alloc/u1/0") }, `n1 holds g1 for t1, which is "absent"`},
		"a promise":                  {func(s *state) { s.grants["n1"].Allocations[0].State = "RESERVED" }, "t1 has RESERVED on n1"},
		"a unit that runs nowhere": {func(s *state) {
			s.units["ns/alloc/u2/0"] = record.Unit{UID: "u2", Phase: string(api.Running), TxID: "t9"}
		}, "unit ns/alloc/u2/0 is Running"},
		"a unit that waits in no order": {func(s *state) {
			s.units["ns/alloc/u2/0"] = record.Unit{UID: "u2", Phase: string(api.Pending)}
		}, "in the order: false"},
	} {
		t.Run(name, func(t *testing.T) {
			s := quiet()
			c.change(s)
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
