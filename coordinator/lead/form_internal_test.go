package lead

import (
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// elsewhere is a request that no node of a scene meets, with an alternative for three
// GPUs of any node.
const elsewhere = `"scheduling":{"nodeSelector":{"zone":"none"}},"alternatives":[{"resources":{"requests":{"nvidia.com/gpu":"4"}}},{"resources":{"requests":{"nvidia.com/gpu":"3"}},"nodeSelector":{"kubernetes.io/hostname":"n1"}}],`

// A preemption has no record, so its successor finds the alternative by the amounts
// that the agents keep, and charges for them.
func TestAPreemptionWithAnAlternativeIsTakenOver(t *testing.T) {
	x := newScene(t)
	x.running("victim", 8, "")
	b := x.accepted("b", 8, preempting+elsewhere)
	x.settles(b, grant.Waiting)
	if b.Attempt == nil || b.Number != 2 || b.Charge.Request[resource.GPU] != 3000 {
		t.Fatalf("it has alternative %d and is charged %v, want alternative 2 with 3 GPUs", b.Number, b.Charge.Request)
	}
	tx, members := b.Attempt.Machine.ID(), x.nodes["n1"].reservations[b.Attempt.Machine.ID()].members

	next := x.succeeded()
	next.give(ResumeWork{})
	next.clear()
	next.hear(next.hosts["n1"])
	next.tellsOf(grant.Grant{Tx: tx, Epoch: x.post.Epoch(), State: grant.Waiting, Members: members})
	u := next.work.Units[b.Path]
	if u.Attempt == nil || u.Number != 2 || u.Attempt.Charges[0].Request[resource.GPU] != 3000 {
		t.Fatalf("the next leader has alternative %d, want 2 with 3 GPUs", u.Number)
	}
	if c := u.Attempt.Charges[0]; c.Tree != quota.Tree {
		t.Errorf("the first charge is to %s", c.Tree)
	}
}

// A new leader knows the alternative of a unit that runs from the record, and its amounts.
func TestATakeoverKeepsTheAlternative(t *testing.T) {
	x := newScene(t)
	x.running("a", 8, elsewhere)
	u := x.succeeded().work.Units["default/alloc/a/0"]
	if u == nil || u.Attempt == nil || u.Number != 1 && u.Number != 2 {
		t.Fatalf("the next leader has %+v", u)
	}
	want := map[int]int64{1: 4000, 2: 3000}[u.Number]
	if u.Demand.Request.GPUMilli() != resource.Milli(want) || u.Charge.Request[resource.GPU] != want {
		t.Errorf("alternative %d asks for %+v and is charged %v, want %d", u.Number, u.Demand.Request, u.Charge.Request, want)
	}
}

// The members of a group have one request each.
func TestAMemberOfAGroupHasNoAlternatives(t *testing.T) {
	for gang, want := range map[string]string{
		`{"groupId":"g","minMembers":2}`: "spec.alternatives: 1 entries: the members of a group start together with one request each; leave out alternatives, or submit a Job",
		`{"groupId":"g"}`:                "",
	} {
		x := newScene(t)
		document := []byte(`{"metadata":{"name":"a"},"spec":{"resources":{"requests":{"cpu":"1"}},"gangScheduling":` + gang + `,"alternatives":[{"resources":{"requests":{"cpu":"2"}}}]}}`)
		doc, status := api.DecodeAllocation(document)
		if status != nil {
			t.Fatal(status)
		}
		_, status = x.submissionOfAllocation(Submitted{Namespace: "default", Document: document}, doc)
		if got := messageOf(status); got != want {
			t.Errorf("%s: %q, want %q", gang, got, want)
		}
	}
}

func messageOf(status *api.Status) string {
	if status == nil {
		return ""
	}
	return status.Message
}

// A record that names an alternative which its unit does not have is damaged.
func TestARecordNamesAnAlternativeOfItsUnit(t *testing.T) {
	x := newScene(t)
	u := x.submit("a", 1, `"alternatives":[{"resources":{"requests":{"nvidia.com/gpu":"2"}}}],`)
	for number, good := range map[int]bool{0: true, 1: true, 2: false, -1: false} {
		if err := u.RestoreForm(number); (err == nil) != good {
			t.Errorf("alternative %d: %v", number, err)
		}
	}
	rec := record.Tx{Alternative: -1, State: grant.RecordCommitted, Epoch: 1, Unit: u.Record.Path(), UnitUID: "u", Members: []record.Placement{{Node: "n1"}}}
	if _, err := record.Encode(rec); err == nil {
		t.Error("a record with alternative -1 is written")
	}
}
