package preempt

import (
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
)

// Greedy is Find for a gang, however few candidates there are. One member is
// searched as a gang too.
func Greedy(state *cluster.State, u place.Unit, priority int32, holders []Holder) ([]string, bool) {
	s := indexFor(state, &u, holders).search(&u, priority)
	chosen, ok := s.gang(s.ranks())
	if !ok {
		return nil, false
	}
	return s.names(s.reduce(chosen)), true
}

// Exhausted is Find when its steps are used up before it begins.
func Exhausted(state *cluster.State, u place.Unit, priority int32, holders []Holder) ([]string, bool) {
	s := indexFor(state, &u, holders).search(&u, priority)
	s.steps = maxSteps + 1
	if s.base() >= u.Members {
		return nil, true
	}
	if u.Members == 1 {
		chosen, ok := s.single()
		return s.names(chosen), ok
	}
	chosen, ok := s.gang(s.ranks())
	if !ok {
		return nil, false
	}
	return s.names(s.reduce(chosen)), true
}

func (s *search) names(ranks []int) []string {
	var list []string
	for _, rank := range ranks {
		list = append(list, s.holders[rank].Unit)
	}
	return list
}
