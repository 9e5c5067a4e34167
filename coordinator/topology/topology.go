// Package topology chooses how many members of a gang go to each host, by domains at
// several levels: the rack, the block, the zone. It decides on counts; which amounts a
// member has, and on which devices, is decided elsewhere.
//
// Pure: no clock, no I/O, no result depends on map order.
package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Level is one level of domains: all hosts with the same value of a label, within one
// domain of the level before it.
type Level struct {
	Key      string // of the label
	Required bool   // all members go to one domain of the level
}

// MaxLevels is the most levels that rules have.
const MaxLevels = 4

// Rules are the rules of a gang about domains. They do not change.
type Rules struct {
	Levels []Level // the widest first, at most MaxLevels
	// Subgroup is the number of members, in order of their ranks, that go to one domain
	// of the level SubgroupLevel; 0 for none.
	Subgroup, SubgroupLevel int
	// Name is the subgroup of a unit of a group: all units of the name go to one domain of
	// SubgroupLevel, and Subgroup is 1. "" for units that are gangs by themselves.
	Name string
}

// Key is equal for rules that decide alike; "" for nil.
func (r *Rules) Key() string {
	if r == nil {
		return ""
	}
	var b strings.Builder
	for _, l := range r.Levels {
		fmt.Fprintf(&b, "%q %t ", l.Key, l.Required)
	}
	fmt.Fprintf(&b, "%d by %d", r.Subgroup, r.SubgroupLevel)
	if r.Name != "" {
		fmt.Fprintf(&b, " of %q", r.Name)
	}
	return b.String()
}

// Whole are the rules for several members of one named subgroup by themselves: they go to
// one domain of its level. Rules without a name stay as they are.
func (r *Rules) Whole() *Rules {
	if r == nil || r.Name == "" {
		return r
	}
	whole := *r
	whole.Levels = slices.Clone(r.Levels)
	whole.Levels[r.SubgroupLevel].Required, whole.Subgroup = true, 0
	return &whole
}

// NarrowestRequired is the last level that is required, -1 for none.
func (r *Rules) NarrowestRequired() int {
	for i := len(r.Levels) - 1; i >= 0; i-- {
		if r.Levels[i].Required {
			return i
		}
	}
	return -1
}

// Needs reports whether a host needs the label of a level: the members of a subgroup, or
// all members, go to one domain of the level, and a host without the label is in none.
func (r *Rules) Needs(level int) bool {
	return r.Levels[level].Required || r.Subgroup > 0 && r.SubgroupLevel == level
}

// Host is a host with room.
type Host struct {
	// Domains has the value of each level's label as a number, 0 where the host does not
	// have the label.
	Domains []int32
	Room    int // members that it can hold
}

// Share is the members of one host.
type Share struct {
	Host    int // position among the hosts
	Members int
}

// Plan shares members out among hosts; false where there is no way. The shares are in the
// order of the ranks: members of one domain, at each level, are neighbours.
//
// All members go to one domain of the narrowest level at which a domain has room for all.
// Of such domains the best has members in the fewest domains of the next level, then of
// the one after it; then the least room is left; then it comes first among the hosts.
// Where members go to several domains of a level, these are as few as can be, and the
// last of them is the one with the least room that suffices. The same holds for the hosts
// of a domain.
func (r *Rules) Plan(hosts []Host, members int) ([]Share, bool) {
	t := r.grow(hosts)
	for level := len(r.Levels) - 1; level >= -1; level-- {
		if best, ok := t.best(level, members); ok {
			return best, true
		}
		if level >= 0 && r.Levels[level].Required {
			return nil, false
		}
	}
	return nil, false
}

// Room returns the most members that one domain of the narrowest required level can hold,
// of all hosts where no level is required, and a host of the domain; -1 for none.
func (r *Rules) Room(hosts []Host) (most, host int) {
	t := r.grow(hosts)
	host = -1
	for i := range t.nodes {
		n := &t.nodes[i]
		if room := t.members(n); n.level == r.NarrowestRequired() && room > most {
			most, host = room, t.anyHost(n)
		}
	}
	return most, host
}

// anyHost is a host of a domain.
func (t *tree) anyHost(n *node) int {
	for len(n.hosts) == 0 {
		n = &t.nodes[n.children[0]]
	}
	return n.hosts[0]
}

// node is a domain; the root has the level -1.
type node struct {
	level    int
	first    int // the first of its hosts
	children []int
	hosts    []int // of a domain of the last level
	room     int   // members
	groups   int   // whole subgroups, above the subgroup's level and at it
}

type tree struct {
	*Rules
	all   []Host
	nodes []node // a domain comes before those in it
}

// grow makes the domains of the hosts that have room.
func (r *Rules) grow(hosts []Host) *tree {
	t := &tree{Rules: r, all: hosts, nodes: make([]node, 1, 64)}
	t.nodes[0].level = -1
	known := map[[2]int32]int{}
	for i := range hosts {
		if hosts[i].Room <= 0 || r.misses(&hosts[i]) {
			continue
		}
		at := 0
		for level := range r.Levels {
			key := [2]int32{int32(at), hosts[i].Domains[level]}
			child, found := known[key]
			if !found {
				child = len(t.nodes)
				known[key] = child
				t.nodes = append(t.nodes, node{level: level, first: i})
				t.nodes[at].children = append(t.nodes[at].children, child)
			}
			at = child
		}
		t.nodes[at].hosts = append(t.nodes[at].hosts, i)
		t.nodes[at].room += hosts[i].Room
	}
	for i := len(t.nodes) - 1; i >= 0; i-- {
		t.sum(&t.nodes[i])
	}
	return t
}

// misses reports whether a host lacks a label that the rules need.
func (r *Rules) misses(h *Host) bool {
	for level := range r.Levels {
		if h.Domains[level] == 0 && r.Needs(level) {
			return true
		}
	}
	return false
}

// sum counts the room of a domain from the domains in it.
func (t *tree) sum(n *node) {
	for _, c := range n.children {
		n.room += t.nodes[c].room
		n.groups += t.nodes[c].groups
	}
	if t.Subgroup > 0 && n.level == t.SubgroupLevel {
		n.groups = n.room / t.Subgroup
	}
}

// inGroups reports whether the domains in n take whole subgroups.
func (t *tree) inGroups(n *node) bool { return t.Subgroup > 0 && n.level < t.SubgroupLevel }

// members is the room of a domain in members, of whole subgroups where there are any.
func (t *tree) members(n *node) int {
	switch {
	case t.Subgroup == 0:
		return n.room
	case n.level <= t.SubgroupLevel:
		return n.groups * t.Subgroup
	}
	return n.room / t.Subgroup * t.Subgroup
}

// rounded is a number of members as whole subgroups.
func (t *tree) rounded(members int) int {
	if t.Subgroup == 0 {
		return members
	}
	return (members + t.Subgroup - 1) / t.Subgroup * t.Subgroup
}

// trial is a way to place the members in one domain.
type trial struct {
	shares []Share
	used   []int // domains by level
	left   int   // room in the domain
}

func (a *trial) compare(b *trial) int {
	return cmp.Or(slices.Compare(a.used, b.used), cmp.Compare(a.left, b.left))
}

// best places all members in one domain of a level.
func (t *tree) best(level, members int) ([]Share, bool) {
	var best *trial
	for i := range t.nodes {
		n := &t.nodes[i]
		if n.level != level || t.members(n) < t.rounded(members) {
			continue
		}
		one := &trial{used: make([]int, len(t.Levels)-level-1), left: t.members(n) - members}
		if best != nil && len(one.used) == 0 && one.left >= best.left {
			continue
		}
		if t.place(one, n, members, level); best == nil || one.compare(best) < 0 {
			best = one
		}
	}
	if best == nil {
		return nil, false
	}
	return best.shares, true
}

// place shares members out among the domains in a domain that has room for them.
func (t *tree) place(to *trial, n *node, members, top int) {
	parts := n.children
	if n.level == len(t.Levels)-1 {
		parts = n.hosts
	}
	rooms, size := make([]int, len(parts)), 1
	for i, part := range parts {
		switch {
		case n.level == len(t.Levels)-1:
			rooms[i] = t.all[part].Room
		case t.inGroups(n):
			rooms[i], size = t.nodes[part].groups, t.Subgroup
		default:
			rooms[i] = t.nodes[part].room
		}
	}
	for _, c := range choose(rooms, (members+size-1)/size) {
		share := min(members, c.count*size)
		members -= share
		if part := parts[c.at]; n.level == len(t.Levels)-1 {
			to.shares = append(to.shares, Share{part, share})
		} else {
			to.used[n.level-top]++
			t.place(to, &t.nodes[part], share, top)
		}
	}
}

// chosen is a part of a domain, and the count that goes there.
type chosen struct{ at, count int }

// choose takes the fewest parts whose rooms together suffice: the greatest first, and last
// the least that has room for the rest. The result is in the order of the parts.
func choose(rooms []int, need int) []chosen {
	order := make([]int, len(rooms))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(rooms[b], rooms[a]), cmp.Compare(a, b))
	})
	var list []chosen
	for next := 0; need > 0; next++ {
		greatest := order[next]
		if rooms[greatest] < need {
			list = append(list, chosen{greatest, rooms[greatest]})
			need -= rooms[greatest]
			continue
		}
		enough, _ := slices.BinarySearchFunc(order[next:], need, func(at, need int) int {
			if rooms[at] >= need {
				return -1
			}
			return 1
		})
		least := rooms[order[next+enough-1]] // of equal rooms the first part
		at := next + slices.IndexFunc(order[next:], func(i int) bool { return rooms[i] == least })
		list = append(list, chosen{order[at], need})
		need = 0
	}
	slices.SortFunc(list, func(a, b chosen) int {
		return cmp.Compare(a.at, b.at)
	})
	return list
}
