package constraint

import (
	"fmt"
	"slices"

	"github.com/musterd/muster/resource"
)

// Set is a compiled Spec. nil allows every node without a taint that keeps units
// away. Immutable; its methods allocate nothing but the words of a refusal.
//
// A Set remembers no verdicts: the hosts' own names are labels, so nearly every
// node has labels of its own, and a look-up costs as much as the evaluation.
//
// Invariant: key is the text of the spec's fields, and these are canonical, see
// Compile. needs are the labels without which no node is allowed; most is the
// greatest Preference.
type Set struct {
	key         string
	nodesKey    string // see NodesKey
	selector    []selected
	required    []term // alternatives
	requires    bool   // one of required has to match
	preferred   []weighted
	tolerations []Toleration

	needs []Label
	most  int64
}

// selected is one label that a node has to have.
type selected struct{ key, value string }

// weighted is a preferred term.
type weighted struct {
	weight int64
	term   term
}

// term is a compiled Term. None is empty except among preferred terms.
type term []requirement

// requirement is a compiled Expression. Its operator is In, NotIn, Exists,
// DoesNotExist, Gte or Lte.
type requirement struct {
	key      string
	operator Operator
	values   []string // of In and NotIn, ascending
	number   int64    // of Gte and Lte
}

// Key returns a text that is equal for sets that allow and prefer the same nodes
// by construction: in another order, with repetitions, or with the same numbers
// written otherwise. Sets with equal keys agree on every node. "" is nil's.
func (s *Set) Key() string {
	if s == nil {
		return ""
	}
	return s.key
}

// NodesKey is equal for sets for which Matches is equal on every node. "" is that of
// a set that matches all nodes.
func (s *Set) NodesKey() string {
	if s == nil {
		return ""
	}
	return s.nodesKey
}

// Allows reports whether members may run on a node with these labels, as far as
// labels and taints go.
func (s *Set) Allows(l *Labels) bool {
	if s == nil {
		return l == nil || l.taints.keepNobody()
	}
	return s.allows(l)
}

// allows is Allows apart, so that Allows is inlined into the search.
func (s *Set) allows(l *Labels) bool {
	return s.Tolerates(l.Taints()) && s.Matches(l)
}

// Tolerates reports whether none of the taints keeps the members away.
func (s *Set) Tolerates(t *Taints) bool {
	_, refused := s.untolerated(t)
	return !refused
}

// Matches reports whether the labels of a node are those that members ask for:
// Allows without the taints.
func (s *Set) Matches(l *Labels) bool {
	if s == nil {
		return true
	}
	_, refused := s.unselected(l)
	return !refused && s.meets(l)
}

// Refusal returns the reason why Allows is false, or nil.
func (s *Set) Refusal(l *Labels) *resource.Reason {
	if s.Allows(l) {
		return nil
	}
	if t, refused := s.untolerated(l.Taints()); refused {
		return &resource.Reason{Code: resource.ReasonTaint, Detail: fmt.Sprintf("taint %s is not tolerated", t)}
	}
	if want, refused := s.unselected(l); refused {
		return &resource.Reason{Code: resource.ReasonNodeSelector, Detail: fmt.Sprintf("%s, want %s", l.describe(want.key), quoteEmpty(want.value))}
	}
	return &resource.Reason{Code: resource.ReasonNodeAffinity, Detail: s.unmet(l)}
}

// Prefers reports whether the set prefers some nodes to others.
func (s *Set) Prefers() bool { return s != nil && len(s.preferred) > 0 }

// MostPreference returns a number that no Preference exceeds.
func (s *Set) MostPreference() int64 {
	if s == nil {
		return 0
	}
	return s.most
}

// Needs returns labels that each node has that Allows lets in. The caller must not
// change them.
func (s *Set) Needs() []Label {
	if s == nil {
		return nil
	}
	return s.needs
}

// Preference returns the sum of the weights of the preferred terms that match.
func (s *Set) Preference(l *Labels) int64 {
	if s == nil {
		return 0
	}
	var sum int64
	for i := range s.preferred {
		if s.preferred[i].term.matches(l) {
			sum += s.preferred[i].weight
		}
	}
	return sum
}

// SoftTaints counts the taints of the effect PreferNoSchedule that the members do not
// tolerate.
func (s *Set) SoftTaints(t *Taints) (count int64) {
	if t == nil {
		return 0
	}
	for i := range t.soft {
		if !s.tolerates(t.soft[i]) {
			count++
		}
	}
	return count
}

// Untolerated returns the first taint of these that keeps the members away, false
// where none does.
func (s *Set) Untolerated(t *Taints) (Taint, bool) { return s.untolerated(t) }

// untolerated finds the first taint that keeps the members away.
func (s *Set) untolerated(taints *Taints) (Taint, bool) {
	if taints == nil {
		return Taint{}, false
	}
	for _, t := range taints.list {
		if !s.tolerates(t) {
			return t, true
		}
	}
	return Taint{}, false
}

func (s *Set) tolerates(t Taint) bool {
	if s == nil {
		return false
	}
	for i := range s.tolerations {
		if s.tolerations[i].covers(t) {
			return true
		}
	}
	return false
}

// unselected finds the first label of the node selector that the node lacks.
func (s *Set) unselected(l *Labels) (selected, bool) {
	if s == nil {
		return selected{}, false
	}
	for _, want := range s.selector {
		if have := l.find(want.key); have == nil || have.Value != want.value {
			return want, true
		}
	}
	return selected{}, false
}

// meets reports whether one of the required terms matches, if there are any.
func (s *Set) meets(l *Labels) bool {
	for _, t := range s.required {
		if t.matches(l) {
			return true
		}
	}
	return !s.requires
}

func (t term) matches(l *Labels) bool {
	for i := range t {
		if !t[i].holds(l) {
			return false
		}
	}
	return true
}

func (r *requirement) holds(l *Labels) bool {
	have := l.find(r.key)
	switch r.operator {
	case In:
		return have != nil && slices.Contains(r.values, have.Value)
	case NotIn:
		return have == nil || !slices.Contains(r.values, have.Value)
	case Exists:
		return have != nil
	case Gte:
		return have != nil && have.numeric && have.number >= r.number
	case Lte:
		return have != nil && have.numeric && have.number <= r.number
	}
	return have == nil // DoesNotExist
}
