package agent

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/agent/assignment"
	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/gossip/digest"
	"github.com/musterd/muster/resource"
)

// isolated is the view of a ledger that has seen its store go back.
func isolated(t *testing.T) *ledger.View {
	t.Helper()
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		t.Fatal(err)
	}
	host, err := fit.NewHost(profile.Topology(), profile.Inventory("n1"), fit.Reserved{})
	if err != nil {
		t.Fatal(err)
	}
	l := ledger.New(host)
	for _, e := range []ledger.Event{
		ledger.Started{Incarnation: resource.Incarnation{JournalID: "j", BootID: "b"}},
		ledger.Enrolled{Revision: 5, Store: 40},
		ledger.Quarantined{Heard: 40, Store: 12},
	} {
		if err := l.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	return l.Snapshot()
}

func TestTheRingsAreToldOfAQuarantine(t *testing.T) {
	a := &Agent{config: Config{Node: "n1"}, deps: Deps{Now: time.Now}}
	a.contact = &contactState{now: time.Now}
	a.owner = &owner{assignments: assignment.New("n1", nil, nil, assignment.Listener{})}
	v := isolated(t)
	if d := a.digestOf(v, "cell", 1); d.Flags != digest.Quarantined {
		t.Errorf("flags of the digest: %b", d.Flags)
	}
	answer := a.healthAnswer(v)
	for _, want := range []string{`"heard":40`, `"store":12`, `"reason":"StoreWentBack"`, "muster reconcile"} {
		if !bytes.Contains(answer, []byte(want)) {
			t.Errorf("%s is not in the answer to the query health: %s", want, answer)
		}
	}
}

func TestARegistrationTellsTheLowestRevisionThatItSaw(t *testing.T) {
	const heard = 50
	for name, c := range map[string]struct {
		store, read resource.Revision
		want        ledger.Registered
	}{
		"all is well":                             {60, 61, ledger.Registered{Revision: 7, Store: 60, Heard: 60}},
		"it had gone back before":                 {40, 41, ledger.Registered{Revision: 7, Store: 40, Heard: heard}},
		"it went back between":                    {60, 41, ledger.Registered{Revision: 7, Store: 41, Heard: 60}},
		"a coordinator that tells only the read":  {0, 41, ledger.Registered{Revision: 7, Store: 41, Heard: heard}},
		"a coordinator that tells none of it all": {0, 0, ledger.Registered{Revision: 7, Store: 0, Heard: heard}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, registration(rpc.Registered{Revision: 7, Store: c.store}, c.read, heard, nil)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
