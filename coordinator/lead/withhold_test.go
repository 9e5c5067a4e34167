package lead

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// eightGPUs is a node of a DGX.
func eightGPUs() (*node, error) {
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		return nil, err
	}
	n := newNode("n1", &cluster.State{}, &occupancyNews{})
	h := grant.Host{Hostname: "h", Topology: profile.Topology(), Inventory: profile.Inventory("n1")}
	host, err := fit.NewHost(h.Topology, h.Inventory, fit.Reserved{})
	if err == nil {
		n.setHost(h, host, quiet())
	}
	return n, err
}

// setLimit is an operator's limit of GPUs; "none" ends it.
func (n *node) setLimit(gpus string) {
	spec := n.spec
	spec.Lowered = nil
	if most, err := strconv.Atoi(gpus); err == nil {
		spec.Lowered = resource.Vector{resource.GPU: int64(most) * int64(resource.WholeDevice)}
	}
	n.setSpec(spec, n.specRev+1)
}

// hold has a transaction hold a part of some devices, as its agent reports.
func (n *node) hold(tx resource.TxID, milli resource.Milli, held ...int) {
	a := resource.Assignment{}
	for _, i := range held {
		a.GPUs = append(a.GPUs, resource.GPUGrant{UUID: n.host.Inventory.Devices[i].UUID, Index: i, Milli: milli})
	}
	n.confirm(tx, []grant.Member{{Assignment: a}}, nil, false, quiet())
}

// pool gives exactly these devices to the host's kubelet, as its agent reports.
func (n *node) pool(pooled ...int) {
	n.drop("pool")
	o := grant.Occupancy{}
	if len(pooled) > 0 {
		n.hold("pool", resource.WholeDevice, pooled...)
		a := resource.Assignment{}
		for _, i := range pooled {
			a.GPUs = append(a.GPUs, resource.GPUGrant{UUID: n.host.Inventory.Devices[i].UUID, Index: i, Milli: resource.WholeDevice})
		}
		o.Grants = []grant.Grant{{Tx: "pool", Origin: grant.OriginKubelet, State: grant.Held, Members: []grant.Member{{Assignment: a}}}}
	}
	n.setGrants(o)
}

// sicken makes devices unhealthy, and all others healthy.
func (n *node) sicken(sick ...int) {
	health := map[int]grant.DeviceHealth{}
	for _, i := range sick {
		health[i] = grant.DeviceHealth{Health: devices.Tainted, Reason: "XID 79"}
	}
	n.setHealth(health, false, false)
	n.applyHealth()
}

// withheldGPUs lists the withheld devices: "6,7".
func (n *node) withheldGPUs() string {
	var list []string
	for i := range n.host.Inventory.Devices {
		if n.withheld&(1<<i) != 0 {
			list = append(list, strconv.Itoa(i))
		}
	}
	return strings.Join(list, ",")
}

func TestALimitWithholdsTheLeastUsefulFreeDevices(t *testing.T) {
	type step = func(n *node)
	for name, c := range map[string]struct {
		steps []step
		want  string
		free  int64 // whole GPUs that may still be handed out
	}{
		"an empty node without a limit":             {nil, "", 8},
		"an empty node":                             {[]step{func(n *node) { n.setLimit("6") }}, "6,7", 6},
		"a limit of none":                           {[]step{func(n *node) { n.setLimit("0") }}, "0,1,2,3,4,5,6,7", 0},
		"a limit as found":                          {[]step{func(n *node) { n.setLimit("8") }}, "", 8},
		"a limit that ends":                         {[]step{func(n *node) { n.setLimit("6") }, func(n *node) { n.setLimit("none") }}, "", 8},
		"a limit that grows":                        {[]step{func(n *node) { n.setLimit("4") }, func(n *node) { n.setLimit("7") }}, "7", 7},
		"a sick device is withheld first":           {[]step{func(n *node) { n.sicken(2) }, func(n *node) { n.setLimit("7") }}, "2", 7},
		"free devices before used ones":             {[]step{func(n *node) { n.hold("a", 1000, 4, 5, 6, 7) }, func(n *node) { n.setLimit("6") }}, "2,3", 2},
		"a limit below the devices in use":          {[]step{func(n *node) { n.hold("a", 1000, 0, 1, 2, 3, 4, 5, 6) }, func(n *node) { n.setLimit("6") }}, "6,7", 0},
		"a device that becomes free is withheld":    {[]step{func(n *node) { n.hold("a", 1000, 0, 1, 2, 3, 4, 5, 6); n.hold("b", 1000, 7) }, func(n *node) { n.setLimit("7") }, func(n *node) { n.drop("b") }}, "7", 0},
		"any device that becomes free is withheld":  {[]step{func(n *node) { n.hold("a", 1000, 0); n.hold("b", 1000, 1, 2, 3, 4, 5, 6, 7) }, func(n *node) { n.setLimit("7") }, func(n *node) { n.drop("a") }}, "0", 0},
		"no more than the limit asks for":           {[]step{func(n *node) { n.hold("a", 1000, 0, 1, 2, 3, 4, 5, 6, 7) }, func(n *node) { n.setLimit("6") }, func(n *node) { n.drop("a") }}, "6,7", 6},
		"a shared device takes no further shares":   {[]step{func(n *node) { n.hold("a", 1000, 0, 1, 2, 3, 4, 5, 6); n.hold("b", 300, 7) }, func(n *node) { n.setLimit("7") }}, "7", 0},
		"a free withheld device stays withheld":     {[]step{func(n *node) { n.hold("a", 1000, 4, 5, 6, 7) }, func(n *node) { n.setLimit("7") }, func(n *node) { n.drop("a") }}, "3", 7},
		"another host of fewer devices needs none":  {[]step{func(n *node) { n.setLimit("8") }, func(n *node) { n.rebuild(quiet()) }}, "", 8},
		"devices of the kubelet's pool come first":  {[]step{func(n *node) { n.pool(2, 3) }, func(n *node) { n.setLimit("5") }}, "2,3,7", 5},
		"also where the pool comes later":           {[]step{func(n *node) { n.setLimit("6") }, func(n *node) { n.pool(2, 3) }}, "2,3", 6},
		"a device that leaves the pool stays":       {[]step{func(n *node) { n.pool(2) }, func(n *node) { n.setLimit("7") }, func(n *node) { n.pool() }}, "2", 7},
		"a registration does not change the choice": {[]step{func(n *node) { n.setLimit("6") }, func(n *node) { n.rebuild(quiet()) }}, "6,7", 6},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := eightGPUs()
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range c.steps {
				s(n)
			}
			if got := n.withheldGPUs(); got != c.want {
				t.Errorf("withheld are %q, want %q", got, c.want)
			}
			if got := n.view.Host.FreeVector(n.view.Free)[resource.GPU]; got != c.free*1000 {
				t.Errorf("%d thousandths of devices are free, want %d devices", got, c.free)
			}
		})
	}
}

func TestPropertyALimitNeverTouchesGrantsAndWithholdsFreeDevicesFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, err := eightGPUs()
		if err != nil {
			t.Fatal(err)
		}
		held := map[resource.TxID][]int{}
		inUse := func(i int) bool { return n.view.Free.GPU[i] != resource.WholeDevice }
		sick := uint64(0)
		for step := range rapid.IntRange(1, 30).Draw(t, "steps") {
			before := n.withheld
			kept := false // neither the limit nor the health has changed
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				n.setLimit(strconv.Itoa(rapid.IntRange(0, 9).Draw(t, "limit")))
			case 1:
				var ill []int
				sick = 0
				for i := range 8 {
					if rapid.IntRange(0, 4).Draw(t, "ill") == 0 {
						ill, sick = append(ill, i), sick|1<<i
					}
				}
				n.sicken(ill...)
			case 2:
				kept = true
				var free []int
				for i := range 8 {
					if !inUse(i) && n.view.Free.Unhealthy&(1<<i) == 0 && rapid.Bool().Draw(t, "take") {
						free = append(free, i)
					}
				}
				if tx := resource.TxID(fmt.Sprint("tx", step)); len(free) > 0 {
					n.hold(tx, 1000, free...)
					held[tx] = free
				}
			case 3:
				kept = true
				for tx := range held {
					n.drop(tx)
					delete(held, tx)
					break
				}
			}
			taken := uint64(0)
			for _, list := range held {
				for _, i := range list {
					taken |= 1 << i
				}
			}
			want := 0
			if most, limited := n.spec.Lowered[resource.GPU]; limited {
				want = max(0, 8-int(most/1000))
			}
			if got := bits.OnesCount64(n.withheld); got != want {
				t.Fatalf("%d devices are withheld, want %d", got, want)
			}
			for i := range 8 {
				if got := inUse(i); got != (taken&(1<<i) != 0) {
					t.Fatalf("device %d is in use: %t; the transactions hold %08b", i, got, taken)
				}
			}
			if n.view.Free.Unhealthy != n.withheld|sick {
				t.Fatalf("%08b take no new work, want %08b withheld and %08b sick", n.view.Free.Unhealthy, n.withheld, sick)
			}
			if used := n.withheld & taken &^ sick; used != 0 && ^(n.withheld|taken|sick)&0xff != 0 {
				t.Fatalf("%08b are withheld and in use, while of %08b some are free", used, ^taken&0xff)
			}
			if lost := before &^ n.withheld &^ taken; kept && lost != 0 {
				t.Fatalf("%08b were withheld and free, and are handed out again", lost)
			}
		}
	})
}

// TestANodeOfOtherDevicesTakesNoNewWork while no model of the node is approved.
func TestANodeOfOtherDevicesTakesNoNewWork(t *testing.T) {
	x := newScene(t)
	n := x.nodes["n1"]
	spec := n.spec
	for models, takes := range map[string]bool{spec.Topology.GPUModels[0]: true, "another": false} {
		spec.Approved = &record.Capacity{Amounts: spec.Capacity, Models: map[string]int{models: 8}}
		x.give(NodeRegistered{Node: "n1", Spec: spec, Revision: n.specRev + 1})
		if n.offers() != takes || !n.view.Ready {
			t.Errorf("8 devices of model %s approved: takes new work %t, ready %t", models, n.offers(), n.view.Ready)
		}
	}
}
