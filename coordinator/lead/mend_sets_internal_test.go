package lead

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// gangOfSets has a gang run whose members have these GPUs, one set for each member. more
// are fields of the template.
func (x *scene) gangOfSets(gpus []int, more string) *unit {
	x.t.Helper()
	sets := make([]string, len(gpus))
	for i, n := range gpus {
		own := ""
		if more != "" {
			own = fmt.Sprintf(`,"command":["run-%d"],"env":[{"name":"PART","value":"%d"}]`, i, i)
		}
		sets[i] = fmt.Sprintf(`{"name":"s%d","count":1,"resources":{"requests":{"nvidia.com/gpu":"%d","cpu":"%d"}}%s}`, i, n, 1+i, own)
	}
	for i := len(x.hosts); i < len(gpus); i++ {
		x.connect(nodeNumber(i + 1))
	}
	u := x.submitDocument(fmt.Appendf(nil, `{"metadata":{"name":"train"},"spec":{%s"members":[%s],"template":{"spec":{%s"resources":{"requests":{"cpu":"1"}}}}}}`,
		replace, strings.Join(sets, ","), more))
	x.holdsAll(u)
	if u.phase() != api.Running || u.attempt.ready.AtMillis == 0 {
		x.t.Fatalf("%s is %s", u.path, u.phase())
	}
	return u
}

func nodeNumber(i int) resource.NodeID { return resource.NodeID(fmt.Sprint("n", i)) }

// chargedFor are the GPUs and the CPUs, in thousandths, for which the limits charge a unit.
func (x *scene) chargedFor(u *unit) string {
	c, _ := x.quotas.Limits().Charged(u.attempt.machine.ID())
	return fmt.Sprintf("%d GPUs, %d CPUs, %d members", c.Request[resource.GPU], c.Request[resource.CPU], c.Members)
}

// wantCharge is chargedFor of members with these GPUs, of which some are held.
func wantCharge(gpus []int, held func(int) bool) string {
	var g, c, n int
	for i := range gpus {
		if held(i) {
			g, c, n = g+1000*gpus[i], c+1000*(1+i), n+1
		}
	}
	return fmt.Sprintf("%d GPUs, %d CPUs, %d members", g, c, n)
}

// The replacement of a member asks for the amounts of that member, starts its command with
// its variables, and has its rank.
func TestAReplacementIsLikeItsMember(t *testing.T) {
	gpus := []int{6, 8, 5}
	for member := range gpus {
		x := newWorkScene(t)
		u := x.gangOfSets(gpus, `"command":["train"],`)
		x.dies(x.memberNode(u, member))
		x.answers()
		x.connect("n7")
		x.answers()
		x.clear()
		r := u.job.replacements()[0]
		x.holdsAll(r)
		if r.phase() != api.Running || r.Demand.Request.GPUs != gpus[member] || r.Demand.Sets != nil {
			t.Fatalf("member %d: its replacement is %s and asks for %+v", member, r.phase(), r.Demand.Request)
		}
		starts := x.startsOf(r)
		if len(starts) != 1 {
			t.Fatalf("member %d: %d starts, want one", member, len(starts))
		}
		s, part := starts[0], fmt.Sprint(member)
		if s.Rank != member || s.First != member || !slices.Equal(s.Args, []string{"run-" + part}) || !slices.Equal(s.Env, []string{"PART=" + part, "MUSTER_SET=s" + part}) || len(s.Members) != 1 {
			t.Errorf("member %d: starts %+v", member, s)
		}
		if got, want := x.chargedFor(u), wantCharge(gpus, func(i int) bool { return i != member }); got != want {
			t.Errorf("member %d: the gang is charged %s, want %s", member, got, want)
		}
		if got, want := u.gpus(), resource.Milli(1000*(19-gpus[member])); got != want {
			t.Errorf("member %d: the gang has %d thousandths of a GPU, want %d", member, got, want)
		}
		if got := x.Figures().Allocated["default"].GPU; got != 19000 {
			t.Errorf("member %d: the figures have %d thousandths of a GPU, want 19000", member, got)
		}
		shown := x.showJob(u.job)
		if s := shown.Show().Status; len(s.Allocations) != 3 || s.Allocations[member].Node != "n7" {
			t.Errorf("member %d: shown as %+v", member, s.Allocations)
		}
		x.check()
	}
}

// checkCharges checks a gang and its replacements against the GPUs of its members.
func (x *scene) checkCharges(seed uint64, u *unit, gpus []int) {
	x.t.Helper()
	held := func(i int) bool { return !slices.Contains(u.record.Lost, i) }
	if got, want := x.chargedFor(u), wantCharge(gpus, held); got != want {
		x.t.Errorf("seed %d: without %v the gang of %v GPUs is charged %s, want %s", seed, u.record.Lost, gpus, got, want)
	}
	if got := x.tx(u.attempt.machine.ID()).Charges[0].Request; got[resource.GPU] != int64(u.gpus()) {
		x.t.Errorf("seed %d: without %v the record of %v GPUs is charged %v", seed, u.record.Lost, gpus, got)
	}
	if got, want := len(u.job.replacements()), len(u.record.Lost); got != want {
		x.t.Errorf("seed %d: %d replacements for %d members", seed, got, want)
	}
	for _, r := range u.job.replacements() {
		if got := r.Demand.Request; got.GPUs != gpus[r.rank()] || got.CPU != resource.Millicores(1000*(1+r.rank())) {
			x.t.Errorf("seed %d: of %v GPUs member %d is replaced by %+v", seed, gpus, r.rank(), got)
		}
		if r.phase() != api.Running {
			continue
		}
		if got, want := x.chargedFor(r), wantCharge(gpus, func(i int) bool { return i == r.rank() }); got != want {
			x.t.Errorf("seed %d: of %v GPUs the replacement of member %d is charged %s, want %s", seed, gpus, r.rank(), got, want)
		}
	}
	x.check()
}

// Whatever nodes die, in any order: a gang is charged for the members that it has, each
// replacement for its own, and the next leader charges all the same.
func TestLossesOfMembersThatDiffer(t *testing.T) {
	losses, shared := 0, 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 0x6865616c))
		gpus := make([]int, 2+rng.IntN(4))
		for i := range gpus {
			gpus[i] = rng.IntN(9)
		}
		x := newScene(t)
		u := x.gangOfSets(gpus, "")
		last := len(x.hosts)
		for range 4 {
			nodes := u.attempt.machine.Nodes()
			for _, r := range u.job.replacements() {
				if r.attempt != nil {
					nodes = append(nodes, r.attempt.machine.Nodes()...)
				}
			}
			at := nodes[rng.IntN(len(nodes))]
			if u.attempt.machine.Has(at) && len(u.attempt.machine.Nodes()) == 1 {
				break // nothing would be left
			}
			if vote, _ := u.attempt.machine.Vote(at); len(vote.Members) > 1 {
				shared++
			}
			losses++
			x.dies(at)
			x.answers()
			if rng.IntN(3) > 0 {
				last++
				x.connect(nodeNumber(last))
				x.answers()
				for _, r := range u.job.replacements() {
					if r.attempt != nil && r.phase() == api.Pending {
						x.holdsAll(r)
					}
				}
			}
			x.checkCharges(seed, u, gpus)
			next := x.succeeded()
			next.checkCharges(seed, next.work.units[u.path], gpus)
		}
	}
	if losses < 40 || shared == 0 {
		t.Errorf("%d nodes died, %d of them with several members: want more", losses, shared)
	}
}
