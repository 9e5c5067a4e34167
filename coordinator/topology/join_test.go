package topology_test

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/topology"
)

// matesOn are members on hosts, in the order of their ranks.
func matesOn(hosts []topology.Host, on ...int) (mates []topology.Mate) {
	for _, i := range on {
		mates = append(mates, topology.Mate{Domains: hosts[i].Domains, Host: i})
	}
	return mates
}

// The cases are those of TestPlans; mates are the hosts of the members that have a place,
// in the order of their ranks, and the member that joins is the next one.
func TestJoins(t *testing.T) {
	for name, c := range map[string]struct {
		rules  *topology.Rules
		blocks [][][]int
		mates  []int
		want   int // -1 for none
	}{
		"the rack of the last member":                             {rules(true, true, 0), [][][]int{{{1, 1}, {0, 1}}, {{9}}}, []int{2}, 3},
		"that rack is full, and is required":                      {rules(true, true, 0), [][][]int{{{0, 0}, {1, 1}}}, []int{0}, -1},
		"that rack is full: another rack of the block":            {rules(true, false, 0), [][][]int{{{0, 0}, {1}}, {{9}}}, []int{0}, 2},
		"of further racks the one with the most room":             {rules(true, false, 0), [][][]int{{{0}, {1}, {1, 1}}}, []int{0}, 2},
		"a rack that the gang has comes before a further one":     {rules(true, false, 0), [][][]int{{{1}, {0}, {5}}}, []int{0, 1}, 0},
		"of its racks that of the last member":                    {rules(true, false, 0), [][][]int{{{5, 5}, {1, 1}}}, []int{0, 2}, 2},
		"the host of the last member, then one with little room":  {rules(true, true, 0), [][][]int{{{0, 4, 2}}}, []int{0}, 2},
		"the block is full, and is required":                      {rules(true, false, 0), [][][]int{{{0}, {0}}, {{9}}}, []int{0}, -1},
		"the block is full: another block":                        {rules(false, false, 0), [][][]int{{{0}, {0}}, {{1}, {2}}}, []int{0}, 3},
		"a block is preferred to one in which no member runs":     {rules(false, false, 0), [][][]int{{{0}, {1}}, {{5}}}, []int{0}, 1},
		"the rack 1 of another block is another rack":             {rules(false, false, 0), [][][]int{{{0}}, {{1}}}, []int{0}, 1},
		"required racks of members in two racks: each of the two": {rules(false, true, 0), [][][]int{{{0}, {1}, {5}}}, []int{0, 1}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			hosts := hostsOf(c.blocks...)
			got, ok := c.rules.Join(hosts, topology.Mates{All: matesOn(hosts, c.mates...), Near: len(c.mates) - 1})
			if got != c.want || ok != (c.want >= 0) {
				t.Errorf("host %d, %t; want %d", got, ok, c.want)
			}
		})
	}
}

// A mate whose node has lost a label says nothing about the domain; where all have, any
// domain will do.
func TestAMateWithoutALabel(t *testing.T) {
	hosts := []topology.Host{{Domains: []int32{1, 1}}, {Domains: []int32{1, 2}, Room: 1}, {Domains: []int32{2, 3}, Room: 1}}
	r := rules(true, true, 0)
	lost, kept := topology.Mate{Domains: []int32{1, 0}, Host: -1}, topology.Mate{Domains: []int32{2, 3}, Host: -1}
	for name, c := range map[string]struct {
		mates []topology.Mate
		want  int
	}{
		"all have lost it": {[]topology.Mate{lost}, 1},
		"one has it":       {[]topology.Mate{lost, kept}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := r.Join(hosts, topology.Mates{All: c.mates}); got != c.want || !ok {
				t.Errorf("host %d, %t; want %d", got, ok, c.want)
			}
		})
	}
}

// growth is a gang that has grown as far as it could, member by member.
func growth(t *rapid.T) (l layout, counts []int, order []int, first int) {
	l = layouts(t)
	l.rules.Subgroup = 0
	plan, ok := l.rules.Plan(l.hosts, l.members)
	if !ok {
		return l, nil, nil, 0
	}
	counts = make([]int, len(l.hosts))
	for _, s := range plan {
		for range s.Members {
			order = append(order, s.Host)
		}
		counts[s.Host] = s.Members
	}
	first = len(order)
	for range rapid.IntRange(0, 12).Draw(t, "growth") {
		left := slices.Clone(l.hosts)
		for i := range left {
			left[i].Room -= counts[i]
		}
		at, ok := l.rules.Join(left, topology.Mates{All: matesOn(l.hosts, order...), Near: len(order) - 1})
		if !ok {
			if room := l.roomBeside(left, order); room > 0 {
				t.Fatalf("no place beside %v, and the domains have room for %d", order, room)
			}
			break
		}
		if left[at].Room < 1 {
			t.Fatalf("host %d has no room", at)
		}
		counts[at]++
		order = append(order, at)
	}
	return l, counts, order, first
}

// roomBeside is the room of all hosts that share each required domain with the members.
func (l *layout) roomBeside(left []topology.Host, order []int) (room int) {
	for i := range left {
		counts := make([]int, len(left))
		counts[i] = 1
		for _, at := range order {
			counts[at]++
		}
		if l.allowed(counts) {
			room += left[i].Room
		}
	}
	return room
}

// A gang that grows member by member stays in its required domains, as long as these have
// room. In each block it enters a further rack only when those that it has are full, and
// with as few further racks as can be.
func TestGrowthStaysInTheDomains(t *testing.T) {
	grown := 0
	rapid.Check(t, func(t *rapid.T) {
		l, counts, order, first := growth(t)
		if len(order) == first {
			return
		}
		grown++
		if !l.allowed(counts) {
			t.Fatalf("members on %v break the rules", counts)
		}
		start := make([]int, len(counts))
		for _, at := range order[:first] {
			start[at]++
		}
		racks, blocks := l.grade(counts)
		before, blocksBefore := l.grade(start)
		if blocks != blocksBefore || blocks != 1 {
			return
		}
		if fewest := l.fewestRacks(start, len(order)-first); racks != before+fewest {
			t.Fatalf("%v has grown to %v, in %d further racks: want %d", start, counts, racks-before, fewest)
		}
	})
	if grown == 0 {
		t.Error("no gang has grown")
	}
}

// fewestRacks is the least number of further racks of its only block for more members.
func (l *layout) fewestRacks(start []int, more int) int {
	room, taken, block := map[[2]int32]int{}, map[[2]int32]bool{}, int32(0)
	for i, h := range l.hosts {
		if d := [2]int32(h.Domains); start[i] > 0 {
			taken[d], block = true, d[0]
		}
	}
	for i, h := range l.hosts {
		if !l.rules.Needs(0) || h.Domains[0] != 0 {
			if h.Domains[0] == block {
				room[[2]int32(h.Domains)] += h.Room - start[i]
			}
		}
	}
	var further []int
	for d, r := range room {
		if taken[d] {
			more -= r
		} else {
			further = append(further, r)
		}
	}
	slices.SortFunc(further, func(a, b int) int { return cmp.Compare(b, a) })
	racks := 0
	for more > 0 {
		more -= further[racks]
		racks++
	}
	return racks
}

// Of the hosts that a member may join none has more in common with the mates, nor, of
// those with as much, with the mate next to it.
func TestNoHostIsNearerThanTheJoined(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := layouts(t)
		l.rules.Subgroup = 0
		var on []int
		for range rapid.IntRange(1, 4).Draw(t, "mates") {
			on = append(on, rapid.IntRange(0, len(l.hosts)-1).Draw(t, "mate"))
		}
		near := rapid.IntRange(0, len(on)-1).Draw(t, "near")
		got, ok := l.rules.Join(l.hosts, topology.Mates{All: matesOn(l.hosts, on...), Near: near})
		nearness := func(host, mate int) (n int) {
			a, b := l.hosts[host].Domains, l.hosts[mate].Domains
			switch {
			case host == mate:
				return 3
			case a[0] == b[0] && a[1] == b[1]:
				return 2
			case a[0] == b[0]:
				return 1
			}
			return 0
		}
		key := func(host int) [2]int {
			most := 0
			for _, m := range on {
				most = max(most, nearness(host, m))
			}
			return [2]int{most, nearness(host, on[near])}
		}
		lacks := func(host int) bool {
			d := l.hosts[host].Domains
			return d[0] == 0 && l.rules.Levels[0].Required || d[1] == 0 && l.rules.Levels[1].Required
		}
		known := slices.ContainsFunc(on, func(m int) bool { return !lacks(m) })
		may := func(host int) bool {
			if l.hosts[host].Room == 0 || lacks(host) {
				return false
			}
			if !known {
				return true
			}
			return slices.ContainsFunc(on, func(m int) bool {
				a, b := l.hosts[host].Domains, l.hosts[m].Domains
				return (!l.rules.Levels[0].Required || a[0] == b[0]) && (!l.rules.Levels[1].Required || a[0] == b[0] && a[1] == b[1])
			})
		}
		if ok && !may(got) {
			t.Fatalf("host %d beside %v is not allowed", got, on)
		}
		for i := range l.hosts {
			if !may(i) {
				continue
			}
			if !ok {
				t.Fatalf("no host beside %v, and %d is allowed", on, i)
			}
			a, b := key(i), key(got)
			if slices.Compare(a[:], b[:]) > 0 {
				t.Fatalf("host %d beside %v near %d, and %d is nearer", got, on, on[near], i)
			}
		}
	})
}
