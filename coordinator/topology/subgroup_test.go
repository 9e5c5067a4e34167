package topology_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/topology"
)

// The cases are those of TestJoins for a member of a subgroup; own are the mates, by their
// positions among mates, that are of its subgroup.
func TestJoinsASubgroup(t *testing.T) {
	for name, c := range map[string]struct {
		rules   *topology.Rules
		blocks  [][][]int
		mates   []int
		own     []int
		missing int
		want    int // -1 for none
	}{
		"the rack of its subgroup, not that of the last member":              {rules(true, false, 2), [][][]int{{{0, 1}, {0, 5}}}, []int{2, 0}, []int{1}, 1, 1},
		"the rack of its subgroup is full, and another one is not":           {rules(true, false, 2), [][][]int{{{0}, {5}}}, []int{0}, []int{0}, 1, -1},
		"a new subgroup: a rack that the gang has and that has room for all": {rules(true, false, 2), [][][]int{{{0, 2}, {5}}}, []int{0}, nil, 2, 1},
		"a new subgroup: not a rack with room for a part of it":              {rules(true, false, 2), [][][]int{{{0, 1}, {2}}}, []int{0}, nil, 2, 2},
		"a new subgroup of which one member is missing":                      {rules(true, false, 2), [][][]int{{{0, 1}, {2}}}, []int{0}, nil, 1, 1},
		"no rack has room for the new subgroup: the most room":               {rules(true, false, 4), [][][]int{{{1}, {2}, {1}}}, []int{0}, nil, 4, 1},
		"a new subgroup stays in the block":                                  {rules(true, false, 2), [][][]int{{{0, 1}}, {{5}}}, []int{0}, nil, 2, 1},
		"the block is full":                                                  {rules(true, false, 2), [][][]int{{{0}}, {{5}}}, []int{0}, nil, 2, -1},
		"no block is required: another block":                                {rules(false, false, 2), [][][]int{{{0}}, {{5}}}, []int{0}, nil, 2, 1},
		"nobody has a place":                                                 {rules(true, false, 2), [][][]int{{{1}, {2}}}, nil, nil, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			hosts := hostsOf(c.blocks...)
			mates := topology.Mates{All: matesOn(hosts, c.mates...), Near: max(0, len(c.mates)-1), Missing: c.missing}
			for _, at := range c.own {
				mates.Own = append(mates.Own, mates.All[at])
			}
			got, ok := c.rules.Join(hosts, mates)
			if got != c.want || ok != (c.want >= 0) {
				t.Errorf("host %d, %t; want %d", got, ok, c.want)
			}
		})
	}
}

// A mate of the subgroup whose node has lost the label of the subgroup's level leaves the
// choice to the others.
func TestASubgroupWithoutALabel(t *testing.T) {
	hosts := []topology.Host{{Domains: []int32{1, 1}, Room: 1}, {Domains: []int32{1, 2}, Room: 1}}
	r := rules(true, false, 2)
	lost, kept := topology.Mate{Domains: []int32{1, 0}, Host: -1}, topology.Mate{Domains: []int32{1, 2}, Host: -1}
	for name, c := range map[string]struct {
		own  []topology.Mate
		want int
	}{
		"all have lost it": {[]topology.Mate{lost}, 0},
		"one has it":       {[]topology.Mate{lost, kept}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := r.Join(hosts, topology.Mates{All: c.own, Own: c.own, Missing: 1}); got != c.want || !ok {
				t.Errorf("host %d, %t; want %d", got, ok, c.want)
			}
		})
	}
}

// A gang with subgroups that grows and loses members: a member joins the domain of its
// subgroup and the required domains of all wherever these have a place; a subgroup without
// members takes a domain with room for all its members, where there is one.
func TestSubgroupsStayTogether(t *testing.T) {
	joined, anew, refused := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		l := layouts(t)
		l.rules.Subgroup = rapid.IntRange(1, 3).Draw(t, "size")
		l.members = max(1, l.members/l.rules.Subgroup) * l.rules.Subgroup
		on := map[int]int{} // rank: host
		rank := 0
		if plan, ok := l.rules.Plan(l.hosts, l.members); ok {
			for _, s := range plan {
				for range s.Members {
					on[rank] = s.Host
					rank++
				}
			}
		}
		most := max(rank, l.members) + 2*l.rules.Subgroup
		for range rapid.IntRange(0, 16).Draw(t, "steps") {
			rank := rapid.IntRange(0, most-1).Draw(t, "rank")
			if _, runs := on[rank]; runs {
				delete(on, rank)
				continue
			}
			left, at, ok := l.joinOf(on, rank)
			own := ranksOf(on, func(r int) bool { return r/l.rules.Subgroup == rank/l.rules.Subgroup })
			rooms := map[[2]int32]int{} // of allowed hosts, by the domain of a subgroup
			for i := range left {
				if l.mayJoin(left, on, own, i) {
					rooms[l.subgroupAt(i)] += left[i].Room
				}
			}
			if ok != (len(rooms) > 0) {
				t.Fatalf("rank %d beside %v: placed %t, and the domains have room for %v", rank, on, ok, rooms)
			}
			if !ok {
				refused++
				continue
			}
			if !l.mayJoin(left, on, own, at) {
				t.Fatalf("rank %d beside %v goes to host %d", rank, on, at)
			}
			if missing := l.rules.Subgroup; len(own) == 0 {
				anew++
				for d, room := range rooms {
					if room >= missing && rooms[l.subgroupAt(at)] < missing {
						t.Fatalf("rank %d goes to host %d, whose domain has room for %d; %v has room for %d", rank, at, rooms[l.subgroupAt(at)], d, room)
					}
				}
			} else {
				joined++
			}
			on[rank] = at
		}
	})
	if joined == 0 || anew == 0 || refused == 0 {
		t.Errorf("%d joined, %d began a subgroup, %d refused: want all", joined, anew, refused)
	}
}

// ranksOf are some of the ranks that have a host, ascending.
func ranksOf(on map[int]int, of func(rank int) bool) (ranks []int) {
	for r := range on {
		if of(r) {
			ranks = append(ranks, r)
		}
	}
	slices.Sort(ranks)
	return ranks
}

// joinOf joins a rank to those that have hosts. left are the hosts with the room that is
// left.
func (l *layout) joinOf(on map[int]int, rank int) (left []topology.Host, at int, ok bool) {
	left = slices.Clone(l.hosts)
	var mates topology.Mates
	mates.Missing = l.rules.Subgroup
	for _, r := range ranksOf(on, func(int) bool { return true }) {
		left[on[r]].Room--
		if r < rank {
			mates.Near = len(mates.All)
		}
		m := topology.Mate{Host: on[r], Domains: l.hosts[on[r]].Domains}
		if mates.All = append(mates.All, m); r/l.rules.Subgroup == rank/l.rules.Subgroup {
			mates.Own, mates.Missing = append(mates.Own, m), mates.Missing-1
		}
	}
	at, ok = l.rules.Join(left, mates)
	return left, at, ok
}

// subgroupAt is the domain of a host at the level of subgroups.
func (l *layout) subgroupAt(host int) [2]int32 {
	d := [2]int32(l.hosts[host].Domains)
	if l.rules.SubgroupLevel == 0 {
		d[1] = 0
	}
	return d
}

// mayJoin reports whether the rules, as the documentation has them, leave a host to a member
// beside those that have hosts, of which own are of its subgroup.
func (l *layout) mayJoin(left []topology.Host, on map[int]int, own []int, host int) bool {
	d := l.hosts[host].Domains
	if left[host].Room < 1 || d[0] == 0 && l.rules.Needs(0) || d[1] == 0 && l.rules.Needs(1) {
		return false
	}
	if len(own) > 0 && !slices.ContainsFunc(own, func(r int) bool { return l.subgroupAt(on[r]) == l.subgroupAt(host) }) {
		return false
	}
	for _, at := range on {
		o := l.hosts[at].Domains
		if l.rules.Levels[0].Required && o[0] != d[0] || l.rules.Levels[1].Required && (o[0] != d[0] || o[1] != d[1]) {
			return false
		}
	}
	return true
}
