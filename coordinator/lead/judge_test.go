package lead

import (
	"strings"
	"testing"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// voter is a node of 8 GPUs and an attempt that has asked it for member 2 with
// two of them; the answer that it gives is right.
func voter(t *testing.T) (*node, *work.Attempt, grant.Replied) {
	t.Helper()
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		t.Fatal(err)
	}
	n := newNode("n1", &cluster.State{}, &occupancyNews{})
	equip(t, n, grant.Host{Hostname: "h", Topology: profile.Topology(), Inventory: profile.Inventory("n1")})
	n.stream, n.incarnation = 1, resource.Incarnation{JournalID: "j", BootID: "b"}
	tx := resource.NewTxID("unit", 7, 1, resource.Nonce{})
	request := resource.Request{GPUs: 2, CPU: 2000}
	a := &work.Attempt{Unit: &work.Unit{}, Requests: map[resource.NodeID][]grant.MemberRequest{"n1": {{Index: 2, Request: request}}}, Asked: map[resource.NodeID]uint64{"n1": 1}}
	a.Machine, _ = txn.New(tx, []resource.NodeID{"n1", "n2"})
	return n, a, grant.Replied{
		Node: "n1", Tx: tx, State: grant.Reserved, Incarnation: n.incarnation, Revision: 5,
		Members: []grant.Member{{Index: 2, Assignment: fitted(t, n, request)}},
	}
}

func TestJudgeReply(t *testing.T) {
	foreign := func(_ *node, _ *work.Attempt, e *grant.Replied) {
		e.Members[0].Assignment.GPUs[0].UUID = "GPU-of-before"
	}
	cases := map[string]struct {
		change func(*node, *work.Attempt, *grant.Replied)
		want   string // "": it counts
		doubt  bool
	}{
		"what was asked": {func(*node, *work.Attempt, *grant.Replied) {}, "", false},
		"the same for a Waiting of a preemption": {
			func(_ *node, a *work.Attempt, e *grant.Replied) {
				a.Victims, e.State = []*work.Attempt{{}}, grant.Waiting
			}, "", false,
		},
		"a Waiting for nobody":     {func(_ *node, _ *work.Attempt, e *grant.Replied) { e.State = grant.Waiting }, "nothing was named", false},
		"a No says nothing":        {func(_ *node, _ *work.Attempt, e *grant.Replied) { e.State, e.Members = grant.No, nil }, "", false},
		"a device of another host": {foreign, "GPU-of-before", false},
		"the same from a node that was asked before its hardware changed": {
			func(n *node, a *work.Attempt, e *grant.Replied) { foreign(n, a, e); n.stream++ }, "GPU-of-before", true,
		},
		"the same from a node that another leader has asked": {
			func(n *node, a *work.Attempt, e *grant.Replied) { foreign(n, a, e); a.Asked = nil }, "GPU-of-before", true,
		},
		"a device less, whatever the hardware": {
			func(n *node, _ *work.Attempt, e *grant.Replied) {
				n.stream++
				e.Members[0].Assignment.GPUs = e.Members[0].Assignment.GPUs[1:]
			}, "1 devices, want 2", false,
		},
		"devices without the link asked for": {
			func(_ *node, a *work.Attempt, e *grant.Replied) {
				a.Requests["n1"][0].Request.NUMA = resource.NUMASingleNode
				cpus := e.Members[0].Assignment.CPUs
				cpus[len(cpus)-1].ID = 255
			}, "NUMA nodes, want 1", true,
		},
		"another member":      {func(_ *node, _ *work.Attempt, e *grant.Replied) { e.Members[0].Index = 0 }, "asked for member 2", false},
		"no member":           {func(_ *node, _ *work.Attempt, e *grant.Replied) { e.Members = nil }, "asked for 1", false},
		"another incarnation": {func(_ *node, _ *work.Attempt, e *grant.Replied) { e.Incarnation.BootID = "other" }, "incarnation", true},
		"no incarnation":      {func(_ *node, _ *work.Attempt, e *grant.Replied) { e.Incarnation = resource.Incarnation{} }, "incarnation", false},
		"a node not asked":    {func(n *node, _ *work.Attempt, _ *grant.Replied) { n.view.ID = "n3" }, "nothing was asked of it", false},
		"a Waiting of a node not asked": {
			func(n *node, _ *work.Attempt, e *grant.Replied) { n.view.ID, e.State = "n3", grant.Waiting }, "nothing was asked of it", false,
		},
		"other pinned devices of a node that was asked before its hardware changed": {
			func(n *node, a *work.Attempt, _ *grant.Replied) {
				n.stream++
				a.Requests["n1"][0].PinnedGPUs = []int{6, 7}
			}, "asked for [6 7]", true,
		},
		"other pinned devices": {func(_ *node, a *work.Attempt, _ *grant.Replied) { a.Requests["n1"][0].PinnedGPUs = []int{6, 7} }, "asked for [6 7]", false},
		"a promise of HELD for less": {
			func(_ *node, _ *work.Attempt, e *grant.Replied) {
				e.State, e.Members[0].Assignment.CPUs = grant.Held, nil
			}, "millicores", false,
		},
		"one device for two members": {
			func(_ *node, a *work.Attempt, e *grant.Replied) {
				a.Requests["n1"] = append(a.Requests["n1"], grant.MemberRequest{Index: 3, Request: a.Requests["n1"][0].Request})
				e.Members = append(e.Members, grant.Member{Index: 3, Assignment: e.Members[0].Assignment})
			}, "given to several members", false,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			n, a, e := voter(t)
			c.change(n, a, &e)
			bad := (&Leader{}).judgeReply(n, a, &e)
			switch {
			case bad == nil && c.want == "":
			case bad == nil || c.want == "" || !strings.Contains(bad.detail, c.want) || bad.doubt != c.doubt:
				t.Errorf("judged %+v, want %q with doubt %t", bad, c.want, c.doubt)
			}
		})
	}
}

func TestJudgeReplyBoundsWhatIsKept(t *testing.T) {
	n, _, e := voter(t)
	if bad := (&Leader{}).judgeReply(n, nil, &e); bad != nil {
		t.Errorf("a promise to a transaction that has ended: %+v", bad)
	}
	e.Tx = "nonsense"
	if bad := (&Leader{}).judgeReply(n, nil, &e); bad == nil || !bad.doubt {
		t.Errorf("a transaction that no leader names: %+v", bad)
	}
	for i := range maxHolds {
		n.reservations[resource.NewTxID("u", 1, uint64(i), resource.Nonce{})] = &reservation{}
	}
	e.Tx = resource.NewTxID("u", 2, 1, resource.Nonce{})
	if bad := (&Leader{}).judgeReply(n, nil, &e); bad == nil || bad.reason != violationTooMany {
		t.Errorf("beyond what is kept: %+v", bad)
	}
}

func TestJudgeOccupancy(t *testing.T) {
	tx := func(i uint64) resource.TxID { return resource.NewTxID("u", 1, i, resource.Nonce{}) }
	held := func(tx resource.TxID, members ...int) grant.Grant {
		g := grant.Grant{Tx: tx, State: grant.Held}
		for _, i := range members {
			g.Members = append(g.Members, grant.Member{Index: i})
		}
		return g
	}
	of := func(members int, g grant.Grant) grant.Grant { g.UnitMembers = members; return g }
	most := make([]grant.Grant, maxHolds)
	for i := range most {
		most[i] = held(tx(uint64(i)), 0)
	}
	cases := map[string]struct {
		grants []grant.Grant
		want   string
	}{
		"as many as are taken":            {most, ""},
		"an orphan of any name":           {[]grant.Grant{{Tx: "orphan", Origin: "orphan", State: grant.Held}}, ""},
		"nothing":                         {nil, ""},
		"two grants and an orphan":        {[]grant.Grant{held(tx(1), 0, 3), held(tx(2), 1), {Tx: "orphan:GPU-1", Origin: "orphan", State: grant.Held}}, ""},
		"a grant twice":                   {[]grant.Grant{held(tx(1), 0), held(tx(1), 1)}, "listed twice"},
		"a transaction that nobody names": {[]grant.Grant{held("x", 0)}, "transaction id"},
		"the last members of a unit":      {[]grant.Grant{of(4, held(tx(1), 2, 3)), of(1, grant.Grant{Tx: tx(2), State: grant.Tombstone})}, ""},
		"a member beyond its unit":        {[]grant.Grant{of(3, held(tx(1), 2, 3))}, "member 3 of a unit of 3"},
		"a member twice":                  {[]grant.Grant{held(tx(1), 2, 2)}, "ascending"},
		"too many":                        {make([]grant.Grant, maxHolds+1), "at most"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			bad := judgeOccupancy(&grant.Occupancy{Grants: c.grants})
			if bad == nil != (c.want == "") || bad != nil && !strings.Contains(bad.detail, c.want) {
				t.Errorf("judged %+v, want %q", bad, c.want)
			}
		})
	}
}

// What an agent says of a decided transaction is not what it was asked for, but
// what its record has.
func TestJudgeReplyOfWhatIsDecided(t *testing.T) {
	x := newScene(t)
	a := x.running("a", 2, "")
	e := x.reply(a, grant.Held)
	if bad := x.judgeReply(x.nodes[e.Node], a.Attempt, &e); bad != nil {
		t.Errorf("what its record has: %+v", bad)
	}
	e.Members = nil
	if bad := x.judgeReply(x.nodes[e.Node], a.Attempt, &e); bad == nil || !bad.doubt {
		t.Errorf("fewer members: %+v, want a doubt", bad)
	}
}

func TestOfARefusalAFewReasonsAreKept(t *testing.T) {
	for n, want := range map[int]int{0: 0, mostReasons: mostReasons, mostReasons + 1: mostReasons} {
		if got := len(clipReasons(make([]resource.Reason, n))); got != want {
			t.Errorf("of %d reasons %d are kept, want %d", n, got, want)
		}
	}
}

// A hardware change meets a tombstone that ends a transaction: what that held is
// given back to the host as it is now.
func TestAnotherHostForgetsTheAmountsOfTheOneBefore(t *testing.T) {
	n, _, _ := voter(t)
	tx := resource.NewTxID("u", 1, 1, resource.Nonce{})
	n.confirm(tx, []grant.Member{{Assignment: fitted(t, n, resource.Request{GPUs: 8, CPU: 8000})}}, nil, false, quiet())
	profile, err := fake.Lookup("gpu2")
	if err != nil {
		t.Fatal(err)
	}
	equip(t, n, grant.Host{Hostname: "h", Topology: profile.Topology(), Inventory: profile.Inventory("n1")})
	n.drop(tx) // before the occupancy that came with it is taken over
	if !n.view.Free.Equal(n.view.Host.NewFree()) {
		t.Errorf("free %+v", n.view.Free)
	}
}
