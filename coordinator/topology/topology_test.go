package topology_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/topology"
)

// hostsOf makes hosts from blocks of racks of rooms.
func hostsOf(blocks ...[][]int) (hosts []topology.Host) {
	rack := int32(0)
	for b, racks := range blocks {
		for _, rooms := range racks {
			rack++
			for _, room := range rooms {
				hosts = append(hosts, topology.Host{Domains: []int32{int32(b + 1), rack}, Room: room})
			}
		}
	}
	return hosts
}

func rules(block, rack bool, subgroup int) *topology.Rules {
	return &topology.Rules{Levels: []topology.Level{{Key: "block", Required: block}, {Key: "rack", Required: rack}}, Subgroup: subgroup, SubgroupLevel: 1}
}

// Each block is a list of racks, each rack a list of the rooms of its hosts; hosts are
// numbered from 0. The plan is host:members.
func TestPlans(t *testing.T) {
	two := [][]int{{2, 2}, {2, 2}} // a block of two racks
	for name, c := range map[string]struct {
		rules   *topology.Rules
		blocks  [][][]int
		members int
		want    string // "" for none
	}{
		"one rack has room: the one with the least":                  {rules(true, false, 0), [][][]int{{{4, 4}, {2, 2}}, {{3, 2}}}, 4, "2:2 3:2"},
		"no rack has room: the block with the fewest racks":          {rules(true, false, 0), [][][]int{{{2}, {2}, {2}}, {{4}, {2}}}, 6, "3:4 4:2"},
		"the fewest racks, though three have the least room":         {rules(true, false, 0), [][][]int{{{2}, {2}, {2}}, {{4}, {4}}}, 6, "3:4 4:2"},
		"equal racks: the block with the least room":                 {rules(true, false, 0), [][][]int{{{4}, {4}}, {{4}, {3}}}, 6, "2:4 3:2"},
		"the last rack is the one with the least room that suffices": {rules(true, false, 0), [][][]int{{{2, 2}, {3}, {1}}}, 5, "0:2 1:2 3:1"},
		"no block has room, and one is required":                     {rules(true, false, 0), [][][]int{two, two}, 9, ""},
		"no block has room, and none is required: the fewest blocks": {rules(false, false, 0), [][][]int{two, two}, 9, "0:2 1:2 2:2 3:2 4:1"},
		"a rack is required, and none has room":                      {rules(true, true, 0), [][][]int{two}, 5, ""},
		"subgroups of 2 leave the third place of each rack":          {rules(true, false, 2), [][][]int{{{3}, {3}}}, 6, ""},
		"subgroups of 2, two to a rack":                              {rules(true, false, 2), [][][]int{{{5}, {3}}}, 6, "0:4 1:2"},
		"a subgroup is never split":                                  {rules(true, false, 4), [][][]int{{{1, 2, 1}, {3, 3}}}, 8, "0:1 1:2 2:1 3:3 4:1"},
		"a block with room in members alone is passed over":          {rules(true, false, 4), [][][]int{{{3}, {3}, {3}}, {{4}, {4}}}, 8, "3:4 4:4"},
		"the last subgroup may be smaller, and has room for a whole": {rules(true, false, 4), [][][]int{{{4}, {4}}}, 6, "0:4 1:2"},
		"hosts without room count for nothing":                       {rules(true, false, 0), [][][]int{{{0, 0}, {0, 1}}}, 1, "3:1"},
		"nothing at all":                                             {rules(true, false, 0), nil, 1, ""},
		"one host that holds all is better than two":                 {rules(true, true, 0), [][][]int{{{1, 3, 2}}}, 2, "2:2"},
	} {
		t.Run(name, func(t *testing.T) {
			plan, ok := c.rules.Plan(hostsOf(c.blocks...), c.members)
			got := ""
			for i, s := range plan {
				if i > 0 {
					got += " "
				}
				got += fmt.Sprintf("%d:%d", s.Host, s.Members)
			}
			if got != c.want || ok != (c.want != "") {
				t.Errorf("%q, %t; want %q", got, ok, c.want)
			}
		})
	}
}

// A host without a required label is in no domain; one without a preferred label is in
// the domain of those without.
func TestAHostWithoutALabel(t *testing.T) {
	hosts := []topology.Host{{Domains: []int32{0, 1}, Room: 4}, {Domains: []int32{1, 0}, Room: 4}}
	for required, want := range map[bool]int{true: 1, false: 0} {
		plan, ok := rules(required, false, 0).Plan(hosts, 4)
		if !ok || len(plan) != 1 || plan[0].Host != want {
			t.Errorf("required %t: %v, want all on host %d", required, plan, want)
		}
	}
	if plan, ok := rules(true, false, 2).Plan(hosts, 4); ok {
		t.Errorf("subgroups go to %v, which has no rack", plan)
	}
}

// layout is a small cluster, and a gang.
type layout struct {
	hosts   []topology.Host
	rules   *topology.Rules
	members int
}

func layouts(t *rapid.T) layout {
	l := layout{members: rapid.IntRange(1, 7).Draw(t, "members")}
	for range rapid.IntRange(1, 6).Draw(t, "hosts") {
		l.hosts = append(l.hosts, topology.Host{
			Domains: []int32{rapid.Int32Range(0, 2).Draw(t, "block"), rapid.Int32Range(0, 2).Draw(t, "rack")}, Room: rapid.IntRange(0, 3).Draw(t, "room"),
		})
	}
	l.rules = rules(rapid.Bool().Draw(t, "block required"), rapid.Bool().Draw(t, "rack required"), rapid.SampledFrom([]int{0, 0, 1, 2, 3}).Draw(t, "subgroup"))
	l.rules.SubgroupLevel = rapid.IntRange(0, 1).Draw(t, "subgroup's level")
	if s := l.rules.Subgroup; s > 0 {
		l.members = max(1, l.members/s) * s
	}
	return l
}

// grade is the domains that a way uses, the narrowest level that holds all first: fewer
// is better.
func (l *layout) grade(counts []int) (rackwise, blockwise int) {
	racks, blocks := map[[2]int32]bool{}, map[int32]bool{}
	for i, n := range counts {
		if n > 0 {
			racks[[2]int32(l.hosts[i].Domains)], blocks[l.hosts[i].Domains[0]] = true, true
		}
	}
	return len(racks), len(blocks)
}

// allowed is the rules, as the documentation has them, on the members of each host.
func (l *layout) allowed(counts []int) bool {
	racks, blocks := l.grade(counts)
	if l.rules.Levels[1].Required && racks > 1 || l.rules.Levels[0].Required && blocks > 1 {
		return false
	}
	inDomain := map[[2]int32]int{}
	for i, n := range counts {
		d := l.hosts[i].Domains
		if n == 0 {
			continue
		}
		if d[0] == 0 && l.rules.Needs(0) || d[1] == 0 && l.rules.Needs(1) {
			return false
		}
		if l.rules.SubgroupLevel == 0 {
			inDomain[[2]int32{d[0]}] += n
		} else {
			inDomain[[2]int32(d)] += n
		}
	}
	for _, n := range inDomain {
		if s := l.rules.Subgroup; s > 0 && n%s != 0 {
			return false
		}
	}
	return true
}

// oracle tries every way to share the members out. It returns the fewest racks of a way
// within the fewest blocks, 0 for no way.
func (l *layout) oracle() (racks, blocks int) {
	counts := make([]int, len(l.hosts))
	var from func(i, left int)
	from = func(i, left int) {
		if i == len(l.hosts) {
			if left == 0 && l.allowed(counts) {
				r, b := l.grade(counts)
				if racks == 0 || b < blocks || b == blocks && r < racks {
					racks, blocks = r, b
				}
			}
			return
		}
		for n := 0; n <= min(left, l.hosts[i].Room); n++ {
			counts[i] = n
			from(i+1, left-n)
		}
		counts[i] = 0
	}
	from(0, l.members)
	return racks, blocks
}

// A plan exists where there is a way, keeps the rules, and uses the fewest blocks; within
// one block also the fewest racks.
func TestAPlanIsAsGoodAsTheBestWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := layouts(t)
		plan, ok := l.rules.Plan(l.hosts, l.members)
		racks, blocks := l.oracle()
		if ok != (blocks > 0) {
			t.Fatalf("a plan %t, a way in %d blocks", ok, blocks)
		}
		if !ok {
			return
		}
		counts, sum := make([]int, len(l.hosts)), 0
		for _, s := range plan {
			if counts[s.Host] > 0 || s.Members < 1 || s.Members > l.hosts[s.Host].Room {
				t.Fatalf("%v is no plan", plan)
			}
			counts[s.Host], sum = s.Members, sum+s.Members
		}
		if sum != l.members || !l.allowed(counts) {
			t.Fatalf("%v breaks the rules, or has %d members", plan, sum)
		}
		r, b := l.grade(counts)
		if b != blocks || blocks == 1 && r != racks {
			t.Fatalf("%v uses %d racks of %d blocks, the best way %d of %d", plan, r, b, racks, blocks)
		}
	})
}

// The ranks of one domain, and of one subgroup, are neighbours.
func TestRanksFollowTheDomains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := layouts(t)
		plan, ok := l.rules.Plan(l.hosts, l.members)
		if !ok {
			return
		}
		var ranks [][2]int32
		for _, s := range plan {
			for range s.Members {
				ranks = append(ranks, [2]int32(l.hosts[s.Host].Domains))
			}
		}
		blocks := make([]int32, len(ranks))
		for i, d := range ranks {
			blocks[i] = d[0]
		}
		if !contiguous(ranks) || !contiguous(blocks) {
			t.Fatalf("the ranks are in %v", ranks)
		}
		for s := l.rules.Subgroup; s > 0 && len(ranks) > 0; ranks = ranks[s:] {
			for _, d := range ranks[:s] {
				if d[0] != ranks[0][0] || l.rules.SubgroupLevel == 1 && d[1] != ranks[0][1] {
					t.Fatalf("a subgroup is in %v", ranks[:s])
				}
			}
		}
	})
}

// contiguous reports whether equal values are neighbours.
func contiguous[V comparable](list []V) bool {
	seen := map[V]bool{}
	for i, v := range list {
		if i > 0 && list[i-1] == v {
			continue
		}
		if seen[v] {
			return false
		}
		seen[v] = true
	}
	return true
}

// The room of the best domain is the size of the largest gang that has a plan.
func TestRoomIsTheLargestGang(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := layouts(t)
		most, host := l.rules.Room(l.hosts)
		if (host >= 0) != (most > 0) {
			t.Fatalf("room for %d on host %d", most, host)
		}
		step := max(1, l.rules.Subgroup)
		if _, ok := l.rules.Plan(l.hosts, most+step); ok {
			t.Fatalf("room for %d, and %d have a plan", most, most+step)
		}
		if most > 0 {
			if _, ok := l.rules.Plan(l.hosts, most); !ok {
				t.Fatalf("room for %d, and these have no plan", most)
			}
		}
	})
}

func TestKeysTellRulesApart(t *testing.T) {
	var keys []string
	for _, r := range []*topology.Rules{nil, rules(true, false, 0), rules(false, true, 0), rules(true, false, 8), {Levels: []topology.Level{{Key: "rack", Required: true}}}} {
		keys = append(keys, r.Key())
	}
	slices.Sort(keys)
	if distinct := slices.Compact(slices.Clone(keys)); len(distinct) != len(keys) {
		t.Errorf("keys %q", keys)
	}
}

func Example() {
	rules := topology.Rules{Levels: []topology.Level{{Key: "block", Required: true}, {Key: "rack"}}, Subgroup: 2, SubgroupLevel: 1}
	plan, ok := rules.Plan(hostsOf([][]int{{1, 1}, {1}}, [][]int{{1, 1, 1}, {2}}), 4)
	fmt.Println(plan, ok)
	// Output: [{3 1} {4 1} {6 2}] true
}
