package cost_test

import (
	"strings"
	"testing"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/test/ratchet"
)

var sink *[40]byte

// refused fails a test unless counted figures get a sentence with these words beside the
// rows of a list.
func refused(t *testing.T, rows, counted []ratchet.Figure, group, want string) {
	t.Helper()
	faults, _ := ratchet.Compare(ratchet.List{Rows: rows}, group, lower, counted)
	if all := strings.Join(faults, "\n"); !strings.Contains(all, want) {
		t.Errorf("the sentences are\n%s\nwant %q", all, want)
	}
}

// A planted allocation in each call of the leader is found in the steps.
func TestAnAllocationMoreIsFound(t *testing.T) {
	m := newMeter(t)
	m.settle(t)
	count := func(planted func()) []ratchet.Figure {
		l := newLeader(t, m, 1)
		l.planted = planted
		return l.leastSteps(10)["vote"].figures("leader/vote", "an agent's Yes")
	}
	before := count(nil)
	after := count(func() { sink = new([40]byte) })
	refused(t, before, after, "leader", "leader/vote-allocations has risen from ")
	refused(t, before, after, "leader", "leader/vote-bytes has risen from ")
	if more := after[0].Value - before[0].Value; more != 1 || after[1].Value-before[1].Value != 48 {
		t.Errorf("one object of 48 bytes counts as %d with %d bytes", more, after[1].Value-before[1].Value)
	}
	refused(t, after, before, "leader", "write the lower figure down in the same commit, `go test ./test/cost -args -lower` does")
}

// A planted key in each Txn without a deletion is found in the traffic.
func TestAKeyMoreIsFound(t *testing.T) {
	before := trafficOfALife(t, nil)
	after := trafficOfALife(t, func(x *record.Txn) {
		for _, op := range x.Then {
			if op.Delete {
				return
			}
		}
		x.Then = append(x.Then[:len(x.Then):len(x.Then)], record.Put(record.ReadyPrefix+"planted", nil))
	})
	refused(t, before, after, "life", "life/keys has risen from ")
	refused(t, before, after, "life", "life/written has risen from ")
}

// No commit has raised a figure, but with an ADR and alone. The page is printed from the
// list.
func TestFiguresWereNotRaisedByHand(t *testing.T) {
	ratchet.HoldHistory(t, "../..", "test/cost/"+list, "docs/benchmarks.md")
}
