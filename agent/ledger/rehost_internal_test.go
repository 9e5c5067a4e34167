package ledger

import (
	"strings"
	"testing"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// No ledger that came about by Apply refuses a host, so the contradiction is
// made by hand.
func TestRefusedRehostLeavesTheLedgerAsItWas(t *testing.T) {
	host, err := fit.NewHost(&numa.Topology{
		Nodes: []numa.Node{{ID: 0, CPUs: bitset.Of(0), Memory: 1 << 30}},
		CPUs:  []numa.CPU{{ID: 0, Online: true, Siblings: bitset.Of(0)}},
	}, &devices.Inventory{Devices: []devices.Device{{UUID: "GPU-a"}}, Links: [][]devices.Link{{devices.LinkNone}}}, fit.Reserved{})
	if err != nil {
		t.Fatal(err)
	}
	l := New(host)
	members := []Holding{{Assignment: resource.Assignment{GPUs: []resource.GPUGrant{{UUID: "GPU-a", Milli: 1000}}}}}
	if err := l.Apply(Granted{Grant{Tx: "a", State: grant.Held, Members: members}}); err != nil {
		t.Fatal(err)
	}
	l.grants["b"] = &entry{Grant: Grant{Tx: "b", State: grant.Held, Members: members}}
	places, hash, free := l.places, l.hash, l.own.free
	err = l.Rehost(host)
	if err == nil || !strings.Contains(err.Error(), "rehost: HELD b, member 0: take GPU 0") {
		t.Errorf("got %v", err)
	}
	if l.places != places || l.hash != hash || l.own.free != free {
		t.Error("the ledger was changed")
	}
	delete(l.grants, "b")
	if err := l.Check(); err != nil {
		t.Error(err)
	}
}
