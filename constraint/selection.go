package constraint

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Subject is a unit as rules about other units see it. Immutable. nil is a unit
// that no rule selects, and that has no rules.
type Subject struct {
	Namespace string
	// Group names the job or the group of the unit, or the unit itself. It is unique
	// within the namespace.
	Group  string
	Labels *Labels
	// Relations are the unit's own rules about other units, nil for none.
	Relations *Relations
}

// MixedGroup begins the Group of units whose rules may differ within the group.
const MixedGroup = "group/"

// LabelsOf interns nothing: it makes the labels of a unit, for selections.
func LabelsOf(labels map[string]string) *Labels {
	if len(labels) == 0 {
		return nil
	}
	return &Labels{pairs: makePairs(slices.Sorted(maps.Keys(labels)), labels)}
}

// Text returns a text that no other labels have, "" for none.
func (l *Labels) Text() string {
	var b strings.Builder
	for p := range l.All() {
		b.WriteString(p.Key + "=" + p.Value + " ") // keys and values have no space
	}
	return b.String()
}

// Selector selects units of one namespace.
type Selector struct {
	// OwnGroup selects the members of the unit's own job or group, and Match is
	// empty then.
	OwnGroup bool
	// Match selects the units whose labels all expressions hold for; empty selects
	// every unit of the namespace.
	Match Term
}

// Selection is a compiled Selector. Selections with equal keys, of rules of one
// namespace and one group, select the same units.
type Selection struct {
	key      string
	ownGroup bool
	never    bool
	term     term
}

func compileSelector(s Selector) Selection {
	if s.OwnGroup {
		return Selection{key: "group", ownGroup: true}
	}
	t, possible := compileTerm(s.Match)
	if !possible {
		return Selection{key: "none", never: true}
	}
	return Selection{key: strings.TrimSpace(string(t.appendText(nil))), term: t}
}

// Key is equal for selections that select the same units for rules of the same
// unit.
func (s *Selection) Key() string { return s.key }

// In returns a key that is unique in the cluster: owner is the unit whose rule has
// the selection.
func (s *Selection) In(owner *Subject) string {
	if s.ownGroup {
		return strconv.Quote(owner.Namespace) + " group " + owner.Group
	}
	return strconv.Quote(owner.Namespace) + " " + s.key
}

// Selects reports whether the rule of owner selects a unit.
func (s *Selection) Selects(owner, unit *Subject) bool {
	switch {
	case unit == nil || s.never || owner.Namespace != unit.Namespace:
		return false
	case s.ownGroup:
		return owner.Group == unit.Group
	}
	return s.term.matches(unit.Labels)
}

// OwnGroup reports whether the selection is of the owner's own job or group.
func (s *Selection) OwnGroup() bool { return s.ownGroup }

// String returns the selection in words, e.g. "units with app In (web)".
func (s *Selection) String() string {
	switch {
	case s.ownGroup:
		return "members of its own job or group"
	case s.never:
		return "units that no selector matches"
	case len(s.term) == 0:
		return "units of the namespace"
	}
	parts := make([]string, len(s.term))
	for i := range s.term {
		r := &s.term[i]
		if parts[i] = r.String(); r.operator == In && len(r.values) == 1 {
			parts[i] = r.key + "=" + r.values[0]
		}
	}
	return "units with " + strings.Join(parts, ", ")
}

// Selector returns a Selector that compiles to this selection.
func (s *Selection) Selector() Selector {
	switch {
	case s.ownGroup:
		return Selector{OwnGroup: true}
	case s.never:
		return Selector{Match: Term{{Operator: In}}}
	}
	return Selector{Match: s.term.expressions()}
}
