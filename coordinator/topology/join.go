package topology

import "slices"

// Mate is a member of a gang that has a place.
type Mate struct {
	Domains []int32 // of its host, as those of Host
	Host    int     // position among the hosts, -1 where its host is not among them
}

// Mates are the members of a gang that have places, as a member that joins them sees them.
type Mates struct {
	All  []Mate // in the order of their ranks
	Near int    // position of the one whose rank is next to the member's; 0 where there is none
	// Own are those of the member's subgroup, a part of All, and Missing is the number of
	// the members that the subgroup lacks. Of rules without subgroups both play no part.
	Own     []Mate
	Missing int
}

// Join chooses the host of one more member of a gang; false where there is none.
//
// The member goes to the domain of the mates at each required level, and to the domain of
// its subgroup. Of the hosts there the best has the most in common with a member of its
// subgroup: the narrowest domain, the host itself last of all; then with a mate; then with
// the mate next to it. Of the domains that are equal in this the one with the most room is
// taken, so that later members find room there, too; of its hosts the one with the least
// room, then the first.
//
// A subgroup none of whose members has a place takes a domain with room for the members
// that it lacks, else the one with the most room. Of the domains with room for them all the
// rules above choose.
func (r *Rules) Join(hosts []Host, mates Mates) (host int, ok bool) {
	var own []Mate
	if r.Subgroup > 0 {
		own = r.placed(mates.Own, r.SubgroupLevel)
	}
	taken, ofOwn, bound := r.taken(mates.All), r.taken(own), len(r.placed(mates.All, r.NarrowestRequired())) > 0
	// depths are the levels that a host has in common with mates; not may: they forbid the host.
	depths := func(h *Host) (withOwn, withAll int, may bool) {
		if h.Room <= 0 || r.misses(h) {
			return 0, 0, false
		}
		if len(own) > 0 {
			withOwn = r.depth(ofOwn, h.Domains)
		}
		withAll = r.depth(taken, h.Domains)
		return withOwn, withAll, (!bound || withAll > r.NarrowestRequired()) && (len(own) == 0 || withOwn > r.SubgroupLevel)
	}
	var rooms map[path]int
	if r.Subgroup > 0 && len(own) == 0 {
		rooms = map[path]int{}
		for i := range hosts {
			if _, _, may := depths(&hosts[i]); may {
				rooms[pathOf(hosts[i].Domains, r.SubgroupLevel)] += hosts[i].Room
			}
		}
	}
	var best [4]int
	var list []int
	for i := range hosts {
		h := &hosts[i]
		withOwn, withAll, may := depths(h)
		if !may {
			continue
		}
		key := [4]int{0, r.withHost(withOwn, own, i), r.withHost(withAll, mates.All, i), 0}
		if rooms != nil {
			key[0] = min(rooms[pathOf(h.Domains, r.SubgroupLevel)], mates.Missing)
		}
		if len(mates.All) > 0 {
			key[3] = common(mates.All[mates.Near].Domains, h.Domains)
			if mates.All[mates.Near].Host == i {
				key[3]++
			}
		}
		switch order := slices.Compare(key[:], best[:]); {
		case order > 0 || list == nil:
			best, list = key, append(list[:0], i)
		case order == 0:
			list = append(list, i)
		}
	}
	if len(list) == 0 {
		return -1, false
	}
	for level := range r.Levels {
		list = widest(hosts, list, level)
	}
	return slices.MinFunc(list, func(a, b int) int { return hosts[a].Room - hosts[b].Room }), true
}

// withHost is a depth with one more for the hosts of the mates.
func (r *Rules) withHost(depth int, mates []Mate, at int) int {
	if depth == len(r.Levels) && slices.ContainsFunc(mates, func(m Mate) bool { return m.Host == at }) {
		depth++
	}
	return depth
}

// path is a domain: the values of the labels down to its level.
type path [MaxLevels + 1]int32

// pathOf is a domain with its level, by which domains of two levels differ.
func pathOf(domains []int32, level int) path {
	p := path{MaxLevels: int32(level)}
	copy(p[:MaxLevels], domains[:level+1])
	return p
}

// taken are the domains of the mates at all levels.
func (r *Rules) taken(mates []Mate) map[path]bool {
	taken := map[path]bool{}
	for _, m := range mates {
		for level := len(r.Levels) - 1; level >= 0; level-- {
			p := pathOf(m.Domains, level)
			if taken[p] {
				break
			}
			taken[p] = true
		}
	}
	return taken
}

// depth is the number of levels at which a host is in a domain of the mates.
func (r *Rules) depth(taken map[path]bool, domains []int32) int {
	for level := range r.Levels {
		if !taken[pathOf(domains, level)] {
			return level
		}
	}
	return len(r.Levels)
}

// placed are the mates whose hosts have the labels that the rules need, down to a level. The
// others have lost a label, and say nothing about the domain.
func (r *Rules) placed(mates []Mate, level int) []Mate {
	lacks := func(m Mate) bool {
		for i := range level + 1 {
			if m.Domains[i] == 0 && r.Needs(i) {
				return true
			}
		}
		return false
	}
	if !slices.ContainsFunc(mates, lacks) {
		return mates
	}
	return slices.DeleteFunc(slices.Clone(mates), lacks)
}

// common is the number of levels at which two hosts are in one domain.
func common(a, b []int32) int {
	for level := range a {
		if a[level] != b[level] {
			return level
		}
	}
	return len(a)
}

// widest are those of the hosts, which are in one domain of the level above, that are in
// the domain of a level with the most room; the first of equal domains.
func widest(hosts []Host, list []int, level int) []int {
	room := map[int32]int{}
	for _, i := range list {
		room[hosts[i].Domains[level]] += hosts[i].Room
	}
	best := hosts[list[0]].Domains[level]
	for _, i := range list {
		if d := hosts[i].Domains[level]; room[d] > room[best] {
			best = d
		}
	}
	var rest []int
	for _, i := range list {
		if hosts[i].Domains[level] == best {
			rest = append(rest, i)
		}
	}
	return rest
}
