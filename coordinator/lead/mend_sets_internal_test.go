package lead

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/resource"
)

// gangOfSets has a gang run whose members have these GPUs, one set for each member. more
// are fields of the template.
func (x *scene) gangOfSets(gpus []int, more string) *work.Unit {
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
	if u.Phase() != api.Running || u.Attempt.Ready.AtMillis == 0 {
		x.t.Fatalf("%s is %s", u.Path, u.Phase())
	}
	return u
}

func nodeNumber(i int) resource.NodeID { return resource.NodeID(fmt.Sprint("n", i)) }

// chargedFor are the GPUs and the CPUs, in thousandths, for which the limits charge a unit.
func (x *scene) chargedFor(u *work.Unit) string {
	c, _ := x.quotas.Limits().Charged(u.Attempt.Machine.ID())
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
		r := u.Job.Replacements()[0]
		x.holdsAll(r)
		if r.Phase() != api.Running || r.Demand.Request.GPUs != gpus[member] || r.Demand.Sets != nil {
			t.Fatalf("member %d: its replacement is %s and asks for %+v", member, r.Phase(), r.Demand.Request)
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
		if got, want := u.GPUs(), resource.Milli(1000*(19-gpus[member])); got != want {
			t.Errorf("member %d: the gang has %d thousandths of a GPU, want %d", member, got, want)
		}
		if got := x.Figures().Allocated["default"].GPU; got != 19000 {
			t.Errorf("member %d: the figures have %d thousandths of a GPU, want 19000", member, got)
		}
		shown := x.showJob(u.Job)
		if s := shown.Show().Status; len(s.Allocations) != 3 || s.Allocations[member].Node != "n7" {
			t.Errorf("member %d: shown as %+v", member, s.Allocations)
		}
		x.check()
	}
}

// checkCharges checks a gang and its replacements against the GPUs of its members.
func (x *scene) checkCharges(seed uint64, u *work.Unit, gpus []int) {
	x.t.Helper()
	held := func(i int) bool { return !slices.Contains(u.Record.Lost, i) }
	if got, want := x.chargedFor(u), wantCharge(gpus, held); got != want {
		x.t.Errorf("seed %d: without %v the gang of %v GPUs is charged %s, want %s", seed, u.Record.Lost, gpus, got, want)
	}
	if got := x.tx(u.Attempt.Machine.ID()).Charges[0].Request; got[resource.GPU] != int64(u.GPUs()) {
		x.t.Errorf("seed %d: without %v the record of %v GPUs is charged %v", seed, u.Record.Lost, gpus, got)
	}
	if got, want := len(u.Job.Replacements()), len(u.Record.Lost); got != want {
		x.t.Errorf("seed %d: %d replacements for %d members", seed, got, want)
	}
	for _, r := range u.Job.Replacements() {
		if got := r.Demand.Request; got.GPUs != gpus[r.Rank()] || got.CPU != resource.Millicores(1000*(1+r.Rank())) {
			x.t.Errorf("seed %d: of %v GPUs member %d is replaced by %+v", seed, gpus, r.Rank(), got)
		}
		if r.Phase() != api.Running {
			continue
		}
		if got, want := x.chargedFor(r), wantCharge(gpus, func(i int) bool { return i == r.Rank() }); got != want {
			x.t.Errorf("seed %d: of %v GPUs the replacement of member %d is charged %s, want %s", seed, gpus, r.Rank(), got, want)
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
			nodes := u.Attempt.Machine.Nodes()
			for _, r := range u.Job.Replacements() {
				if r.Attempt != nil {
					nodes = append(nodes, r.Attempt.Machine.Nodes()...)
				}
			}
			at := nodes[rng.IntN(len(nodes))]
			if u.Attempt.Machine.Has(at) && len(u.Attempt.Machine.Nodes()) == 1 {
				break // nothing would be left
			}
			if vote, _ := u.Attempt.Machine.Vote(at); len(vote.Members) > 1 {
				shared++
			}
			losses++
			x.dies(at)
			x.answers()
			if rng.IntN(3) > 0 {
				last++
				x.connect(nodeNumber(last))
				x.answers()
				for _, r := range u.Job.Replacements() {
					if r.Attempt != nil && r.Phase() == api.Pending {
						x.holdsAll(r)
					}
				}
			}
			x.checkCharges(seed, u, gpus)
			next := x.succeeded()
			next.checkCharges(seed, next.work.Units[u.Path], gpus)
		}
	}
	if losses < 40 || shared == 0 {
		t.Errorf("%d nodes died, %d of them with several members: want more", losses, shared)
	}
}
