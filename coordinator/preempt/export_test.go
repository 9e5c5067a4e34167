package preempt

import (
	"fmt"

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

// Bounds compares the bound of each offer with the offer itself, in the first round of a gang
// and after one eviction on each node in turn.
func Bounds(state *cluster.State, u place.Unit, priority int32, holders []Holder) error {
	s := indexFor(state, &u, holders).search(&u, priority)
	rounds := [][]int{nil}
	for i := range s.fields {
		if here := s.fields[i].here; len(here) > 0 {
			rounds = append(rounds, []int{here[len(here)-1].rank})
		}
	}
	for _, evicted := range rounds {
		have, missing := make([]int, len(s.fields)), u.Members
		for i := range s.fields {
			have[i] = s.room(&s.fields[i], evicted, u.Members)
			missing -= have[i]
		}
		if missing <= 0 {
			continue
		}
		for i := range s.fields {
			var bound, made offer
			s.bound(i, &bound, evicted, have[i])
			s.complete(i, &made, evicted, have, missing)
			if made.set == nil {
				continue
			}
			if bound.known || bound.floor != nil && s.cheaper(bound.floor, min(bound.most, missing), made.set, min(made.gain, missing)) > 0 {
				return fmt.Errorf("without %v, node %d: the offer %v gains %d, its bound %v gains %d (none: %t)", evicted, i, made.set, made.gain, bound.floor, bound.most, bound.known)
			}
		}
	}
	return nil
}
