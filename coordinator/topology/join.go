package topology

import "slices"

// Mate is a member of a gang that has a place.
type Mate struct {
	Domains []int32 // of its host, as those of Host
	Host    int     // position among the hosts, -1 where its host is not among them
}

// Join chooses the host of one more member of a gang whose members have places; false
// where there is none. mates are in the order of their ranks, and near is the position of
// the one whose rank is next to the member's. Subgroups play no part.
//
// The member goes to the domain of the mates at each required level. Of the hosts there
// the best has the most in common with a mate: the narrowest domain, the host itself last
// of all; then with the mate next to it. Of the domains that are equal in this the one with
// the most room is taken, so that later members find room there, too; of its hosts the one
// with the least room, then the first.
func (r *Rules) Join(hosts []Host, mates []Mate, near int) (host int, ok bool) {
	taken, astray := r.taken(mates), r.isAstray(mates)
	best, list := [2]int{-1, -1}, []int(nil)
	for i := range hosts {
		h := &hosts[i]
		if h.Room <= 0 || r.misses(h) {
			continue
		}
		depth := r.depth(taken, h.Domains)
		if depth <= r.NarrowestRequired() && !astray {
			continue
		}
		if depth == len(r.Levels) && slices.ContainsFunc(mates, func(m Mate) bool { return m.Host == i }) {
			depth++
		}
		beside := common(mates[near].Domains, h.Domains)
		if mates[near].Host == i {
			beside++
		}
		switch key := [2]int{depth, beside}; slices.Compare(key[:], best[:]) {
		case 1:
			best, list = key, append(list[:0], i)
		case 0:
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

// isAstray reports whether no mate is in a domain of each required level, since its node
// has lost a label: then the mates say nothing about the domain.
func (r *Rules) isAstray(mates []Mate) bool {
	return !slices.ContainsFunc(mates, func(m Mate) bool { return !r.misses(&Host{Domains: m.Domains}) })
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
