package lead

import (
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// TestWhichNodesStay: a node is deleted only if nothing rests on it.
func TestWhichNodesStay(t *testing.T) {
	tx := transaction(1)
	unheard := func(x *scene, _ *nodeKeys) { x.retired.unheard[tx] = map[resource.NodeID]bool{"n1": true} }
	for name, c := range map[string]struct {
		of    func(*scene, *nodeKeys)
		stays bool
	}{
		"nothing rests on it": {func(*scene, *nodeKeys) {}, false},
		"it has a lease":      {func(_ *scene, k *nodeKeys) { k.lease.Key = "lease" }, true},
		"it is connected":     {func(x *scene, _ *nodeKeys) { x.nodes["n1"].connected = true }, true},
		"a reconciliation":    {func(x *scene, _ *nodeKeys) { x.reconciling = true }, true},
		"an attempt":          {func(x *scene, _ *nodeKeys) { x.submit("b", 8, "") }, true},
		"a pointer":           {func(_ *scene, k *nodeKeys) { k.pointers = 1 }, true},
		"it has to tell":      {unheard, true},
		"it has to tell, and is dead": {
			func(x *scene, k *nodeKeys) { unheard(x, k); k.who.ConfirmedDead = true }, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			var found nodeKeys
			c.of(x, &found)
			if name != "it is connected" {
				x.nodes["n1"].connected = false
			}
			if status := x.refuseDeletion(x.nodes["n1"], found); status != nil != c.stays || status != nil && status.Code != 409 {
				t.Errorf("%v", status)
			}
		})
	}
}

// TestADeletedNodeThatIsBackStays: it has registered before the leader has heard
// that its deletion landed.
func TestADeletedNodeThatIsBackStays(t *testing.T) {
	for name, c := range map[string]struct {
		spec      resource.Revision
		connected bool
		stays     bool
	}{
		"it is as it was":         {spec: 5},
		"it registered with that": {spec: 6},
		"it has registered since": {spec: 7, stays: true},
		"it is connected":         {spec: 5, connected: true, stays: true},
	} {
		x := newScene(t)
		n := x.nodes["n1"]
		n.specRev, n.connected = c.spec, c.connected
		if x.do(func() { x.deleted(n, 6) }); x.Knows("n1") != c.stays {
			t.Errorf("%s: known %t", name, x.Knows("n1"))
		}
	}
}

// TestACertificateEndsOnce: that of a deleted node; one that has ended keeps when.
func TestACertificateEndsOnce(t *testing.T) {
	kv := func(r record.Enrolled) record.KV {
		return record.KV{Key: "certificate", Value: record.MustEncode(r), ModRev: 3}
	}
	for name, c := range map[string]struct {
		kv         record.KV
		ends       bool
		unreadable bool
	}{
		"there is none":     {},
		"it counts":         {kv: kv(record.Enrolled{Keys: []string{"k"}}), ends: true},
		"it has ended long": {kv: kv(record.Enrolled{Ended: "2026-11-22T12:00:00Z"})},
		"torn":              {kv: record.KV{Key: "certificate", Value: []byte(`{"v":`), ModRev: 3}, unreadable: true},
	} {
		var d post.Decision
		if err := endCertificate(&d, c.kv, time.Unix(1, 0)); (err != nil) != c.unreadable || len(d.Ops) > 0 != c.ends {
			t.Errorf("%s: %d writes, %v", name, len(d.Ops), err)
		}
	}
}
