package lead

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/charges"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// reclaiming is a scene with a tree whose four GPUs belong to the group owners;
// the group sharers has borrowed them all: s0 and s2 of one GPU, s1 of two. The
// owner o asks for as many as said, has victims, and these have left: the leader
// may commit it.
func reclaiming(t *testing.T, gpus int) (x *scene, o *work.Unit, victims []*work.Unit) {
	t.Helper()
	x = newScene(t)
	object := api.QuotaTree{Metadata: api.ObjectMeta{Name: "Org"}, Spec: []byte(fmt.Sprintf(
		`{"resourceNames":[%q],"nodes":{"all":{"quota":{%q:4}},"sharers":{"parent":"all","quota":{}},"owners":{"parent":"all","quota":{%q:4}}}}`,
		resource.GPU, resource.GPU, resource.GPU))}
	spec, status := charges.SpecOf(object)
	if status != nil {
		t.Fatal(status)
	}
	if _, err := x.quotas.SetTree(object, 1, spec, nil); err != nil {
		t.Fatal(err)
	}
	for i, gpus := range []int{1, 2, 1} {
		x.pass(time.Second)
		x.running(fmt.Sprint("s", i), gpus, `"quota":{"groups":{"Org":"sharers"}},`)
	}
	o = x.submit("o", gpus, `"quota":{"groups":{"Org":"owners"}},`)
	if x.answers(); o.Attempt == nil || !o.Attempt.Claims {
		t.Fatalf("the owner claims nothing: %v %s", x.quotas.Reasons(x.evidenceOf(o).Short), x.whyNoVictims(o))
	}
	x.settles(o, grant.Waiting)
	for _, v := range slices.Clone(o.Attempt.Victims) {
		victims = append(victims, v.Unit)
		x.says(v.Unit, grant.Tombstone)
	}
	return x, o, victims
}

func (x *scene) trees() string { return string(x.quotas.Trees().AppendState(nil)) }

// nodeOf is the node on which a unit is charged.
func (x *scene) nodeOf(u *work.Unit) string {
	x.t.Helper()
	view, err := x.quotas.Trees().Consumer(u.Path)
	if err != nil {
		x.t.Fatal(err)
	}
	return view.Placements[0].Node
}

// TestTheQuestionOfAClaimMovesNobody: whether the commit of a claim may be sent is
// asked of the trees, and leaves all places, and the times since which they are
// held, as they were.
func TestTheQuestionOfAClaimMovesNobody(t *testing.T) {
	another := func(x *scene) {
		must(x.quotas.Trees().AddConsumer(quota.ConsumerSpec{ID: "other", Demands: []quota.Demand{{Tree: "Org", Group: "owners", Request: resource.Vector{resource.GPU: 3000}}}}))
		_, err := x.quotas.Trees().Restore("Org", "other")
		must(err)
	}
	back := func(u *work.Unit) { u.Attempt.Machine.Step(txn.Returned{Node: u.Attempt.Machine.Nodes()[0]}) }
	for name, c := range map[string]struct {
		before func(x *scene, victims []*work.Unit)
		may    bool
	}{
		"it fits":                          {func(*scene, []*work.Unit) {}, true},
		"the first victim's node is back":  {func(x *scene, v []*work.Unit) { back(v[0]) }, false},
		"the second victim's node is back": {func(x *scene, v []*work.Unit) { back(v[1]) }, false},
		"its charge was made anew, and another owner came": {func(x *scene, _ []*work.Unit) {
			o := x.work.Units["default/alloc/o/0"]
			o.Attempt.SetMischarged()
			x.rechargeUnits("Org", []string{o.Path})
			another(x)
		}, false},
		"another owner came meanwhile": {func(x *scene, _ []*work.Unit) { another(x) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			x, o, victims := reclaiming(t, 2)
			if len(victims) != 2 {
				t.Fatalf("%d victims, want s0 and s1", len(victims))
			}
			c.before(x, victims)
			before := x.trees()
			var may bool
			if x.do(func() { may = x.mayDisplace(o.Attempt) }); may != c.may {
				t.Errorf("the commit may be sent: %t, want %t\n%s", may, c.may, before)
			}
			if diff := cmp.Diff(before, x.trees()); diff != "" {
				t.Errorf("the question changes the trees (-before +after):\n%s", diff)
			}
		})
	}
}

// TestAClaimTakesItsPlaceWithItsCommit: the owner is charged beside its victims
// above its group, and on its group once they have ended. The sharer that stays
// has its place from the beginning.
func TestAClaimTakesItsPlaceWithItsCommit(t *testing.T) {
	x, o, _ := reclaiming(t, 2)
	if at := x.nodeOf(o); at != "all" {
		t.Errorf("beside its victims the owner is charged on %s, want all", at)
	}
	x.says(o, grant.Reserved)
	if x.answers(); o.Phase() != api.Running {
		t.Fatalf("the owner is %s", o.Phase())
	}
	if at := x.nodeOf(o); at != "owners" {
		t.Errorf("after its commit the owner is charged on %s, want owners", at)
	}
	nodes, err := x.quotas.Trees().Nodes("Org")
	must(err)
	if diff := cmp.Diff([]string{"default/alloc/s2/0"}, nodes[0].Consumers); diff != "" {
		t.Errorf("sharers (-want +got):\n%s", diff)
	}
	must(x.quotas.Trees().Check())
}

// TestANominationHoldsNothingOfItsVictims: a preemptor that gives up leaves the
// devices that are free beside its victims, and its victims run on where they have
// no notice yet. A claim makes it give up only where that is enough.
func TestANominationHoldsNothingOfItsVictims(t *testing.T) {
	for name, c := range map[string]struct {
		gpus    int
		more    string
		noticed bool
		yields  bool
	}{
		"the free devices are enough":             {gpus: 6, yields: true},
		"a device of the victim is missing":       {gpus: 7},
		"the victim is leaving":                   {gpus: 8, noticed: true, yields: true},
		"the victim has to give way to the claim": {gpus: 8, more: `"preemptionPolicy":"PreemptLowerPriority",`, yields: true},
	} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			x.running("other", 8, `"priority":9,`)
			x.running("victim", 2, "")
			p := x.accepted("preemptor", 8, preempting)
			if c.noticed {
				x.settles(p, grant.Waiting)
			}
			claimant := x.accepted("claimant", c.gpus, `"priority":6,`+c.more)
			if len(p.Attempt.Victims) != 1 || claimant.Attempt != nil {
				t.Fatalf("%d victims, want one, and a claimant that waits", len(p.Attempt.Victims))
			}
			d := sched.Decision{Evidence: &sched.Evidence{Short: &sched.Shortage{Victims: []string{p.Path}}}}
			x.do(func() { x.world().Claim(claimant.Wanted(), &d) })
			if yields := d.Yields == p.Path; yields != c.yields {
				t.Errorf("the preemptor gives up: %t (%s), want %t", yields, d.Evidence.NoVictims, c.yields)
			}
			must(x.checkOccupants())
		})
	}
}

// TestAUnitGivesWayOnAHostThatNumbersItsDevicesAnew: the devices of a victim are
// found by their identity, not by the numbers that they had at its commit.
func TestAUnitGivesWayOnAHostThatNumbersItsDevicesAnew(t *testing.T) {
	x := newScene(t)
	a := x.running("a", 1, "")
	x.running("c", 8, `"priority":9,`)
	id := a.Attempt.Machine.Nodes()[0]
	h := x.hosts[id]
	list := slices.Clone(h.Host.Inventory.Devices)
	slices.Reverse(list)
	for i := range list {
		list[i].Index = i
	}
	h.Host.Inventory.Devices = list
	fits, err := fit.NewHost(h.Host.Topology, h.Host.Inventory, fit.Reserved{})
	if err != nil {
		t.Fatal(err)
	}
	h.Fit = fits
	x.hear(grant.Disconnected{Node: id})
	x.hear(h)

	b := x.submit("b", 8, preempting)
	if x.answers(); b.Attempt == nil || len(b.Attempt.Victims) != 1 {
		t.Errorf("nobody gives way for b: %s", x.whyNoVictims(b))
	}
	must(x.checkOccupants())
}
