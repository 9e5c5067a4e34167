package lead

import (
	"fmt"
	"testing"

	"github.com/musterd/muster/coordinator/rendezvous"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

func TestAUnitAvoidsThePortsOfLiveUnitsOnItsHost(t *testing.T) {
	x := newWorkScene(t)
	u := x.submitWork("train", 2, gangOfTwo)
	x.says(u, grant.Reserved)
	tx := u.Attempt.Machine.ID()
	host := x.addressOf(u.Attempt.FirstNode())
	port := rendezvous.Default.Preferred(tx)
	if !x.isPortTaken(port, host) {
		t.Errorf("port %d of %s is free beside the unit that has it", port, host)
	}
	if x.isPortTaken(port, host+"-other") {
		t.Errorf("port %d is taken on another host", port)
	}
	// Another live unit that prefers the same port gets the next one.
	got, ok := rendezvous.Default.Choose(tx, func(p int) bool { return x.isPortTaken(p, host) })
	if !ok || got == port {
		t.Errorf("port %d, ok %v: want another one than %d", got, ok, port)
	}
	x.answers()
	if got := x.tx(tx).Port; got != port || u.Attempt.Port != port {
		t.Errorf("port %d in the record, %d in the attempt, want the preferred %d", got, u.Attempt.Port, port)
	}
	x.check()
}

func TestEndedUnitsLeaveTheListOfAPort(t *testing.T) {
	x := newWorkScene(t)
	u := x.submitWork("train", 2, gangOfTwo)
	x.holdsAll(u)
	port, host := u.Attempt.Port, x.addressOf(u.Attempt.FirstNode())
	for n := range 100 {
		x.ports.add(port, resource.TxID(fmt.Sprintf("ended-%d", n)))
	}
	if !x.isPortTaken(port, host) || len(x.ports.by[port]) != 1 {
		t.Errorf("%d holders of port %d, want the live one", len(x.ports.by[port]), port)
	}
}

func TestARestoredAttemptKeepsItsPort(t *testing.T) {
	x := newWorkScene(t)
	u := x.submitWork("train", 2, gangOfTwo)
	x.holdsAll(u)
	a := u.Attempt
	for name, c := range map[string]struct{ stored, want int }{
		"of the record":         {21234, 21234},
		"of an older version's": {0, rendezvous.Default.Preferred(a.Machine.ID())},
	} {
		x.restorePort(a, c.stored)
		if a.Port != c.want || !x.isPortTaken(c.want, x.addressOf(a.FirstNode())) {
			t.Errorf("%s: port %d, want %d, and taken", name, a.Port, c.want)
		}
	}
	if got := x.recordOf(a, grant.RecordCommitted).Port; got != a.Port {
		t.Errorf("the next state of the record has port %d, want %d", got, a.Port)
	}
}
