package preempt

import "slices"

// mostSets is the most sets of candidates of which a search looks at all that are better than
// the set that it has gathered.
const mostSets = 1 << 9

// sets counts the sets of the candidates, as far as mostSets.
func (r *relatedSearch) sets() int {
	if n := len(r.ranks); 1<<min(n, 30) <= mostSets {
		return 1 << n
	}
	return mostSets + 1
}

// better returns the best set that makes room and whose ranks are better than a bound; false
// where there is none. It looks at all sets of the candidates.
func (r *relatedSearch) better(bound []int) ([]int, bool) {
	type option struct{ set, ranks []int }
	var options []option
	for mask := range 1 << len(r.ranks) {
		var o option
		for i := range r.ranks {
			if mask>>i&1 == 1 {
				o.set = append(o.set, i)
			}
		}
		if o.ranks = r.ranksOf(o.set); compareSets(r.holders, o.ranks, bound) < 0 {
			options = append(options, o)
		}
	}
	slices.SortFunc(options, func(a, b option) int { return compareSets(r.holders, a.ranks, b.ranks) })
	for _, o := range options {
		if !r.stock.lacks(o.set) && r.makesRoom(r.holdersOf(o.set)) {
			return o.set, true
		}
	}
	return nil, false
}
