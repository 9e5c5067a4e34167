package preempt

import "slices"

// mostSets is the most sets of candidates of which a search looks at all that are better than
// the set that it has gathered.
const mostSets = 1 << 9

// sets counts the sets of the candidates, as far as mostSets.
func (r *relatedSearch) sets() int {
	if n := len(r.candidates); 1<<min(n, 30) <= mostSets {
		return 1 << n
	}
	return mostSets + 1
}

// ranked are the ranks of a set of candidates, ascending: the most valuable first.
func (r *relatedSearch) ranked(set []Holder) []int {
	list := make([]int, 0, len(set))
	for i := range r.candidates {
		if h := &r.candidates[i]; slices.ContainsFunc(set, func(v Holder) bool { return v.Unit == h.Unit }) {
			list = append(list, r.ranks[i])
		}
	}
	return list
}

// better returns the best set that makes room and is better than a bound; false where there
// is none. It looks at all sets of the candidates.
func (r *relatedSearch) better(bound []int) ([]Holder, bool) {
	type option struct {
		set    []Holder
		ranked []int
	}
	var options []option
	for mask := range 1 << len(r.candidates) {
		var o option
		for i := range r.candidates {
			if mask>>i&1 == 1 {
				o.set, o.ranked = append(o.set, r.candidates[i]), append(o.ranked, r.ranks[i])
			}
		}
		if compareSets(r.all, o.ranked, bound) < 0 {
			options = append(options, o)
		}
	}
	slices.SortFunc(options, func(a, b option) int { return compareSets(r.all, a.ranked, b.ranked) })
	for _, o := range options {
		if r.makesRoom(o.set) {
			return o.set, true
		}
	}
	return nil, false
}
