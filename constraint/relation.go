package constraint

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// RelationSpec is one unit's rules about other units of its namespace, as its
// client states them. A rule compares domains: the nodes that have one value of
// the label TopologyKey.
type RelationSpec struct {
	// Affinity: each member runs in domains where units run that all these rules
	// select. AntiAffinity: no member shares a domain with a unit that the rule
	// selects, nor does a unit that starts later.
	Affinity, AntiAffinity []Near
	// Preferred adds its weight to the points of a node in a domain with a unit that
	// the rule selects. The weight of a preferred anti-affinity is negative.
	Preferred []WeightedNear
	Spread    []Spread
}

// Near names domains by units that run there.
type Near struct {
	TopologyKey string
	Selector    Selector
}

// WeightedNear is a preference.
type WeightedNear struct {
	Weight int32
	Near   Near
}

// Spread bounds how unevenly the selected units fill domains.
type Spread struct {
	MaxSkew     int32 // 1 or more
	TopologyKey string
	Selector    Selector
	// Required: a member that would exceed the skew has no place (DoNotSchedule).
	// Otherwise the nodes with less skew are the better ones (ScheduleAnyway).
	Required bool
}

// Relations is a compiled RelationSpec. nil has no rules. Immutable.
type Relations struct {
	key          string
	affinity     []NearRule
	antiAffinity []NearRule
	preferred    []WeightedNearRule
	spread       []SpreadRule
	most         int64
	grouped      bool // a rule selects the members of the unit's own group
}

// NearRule is a compiled Near.
type NearRule struct {
	TopologyKey string
	Selection   Selection
}

// WeightedNearRule is a compiled WeightedNear.
type WeightedNearRule struct {
	NearRule
	Weight int64
}

// SpreadRule is a compiled Spread.
type SpreadRule struct {
	NearRule
	MaxSkew  int32
	Required bool
}

// CompileRelations makes the rules of a spec, nil where it has none. They are in a
// canonical order and without repetition.
func CompileRelations(spec RelationSpec) *Relations {
	r := &Relations{affinity: compileNear(spec.Affinity), antiAffinity: compileNear(spec.AntiAffinity), preferred: compileWeighted(spec.Preferred)}
	for _, s := range spec.Spread {
		r.spread = append(r.spread, SpreadRule{compileOne(Near{s.TopologyKey, s.Selector}), s.MaxSkew, s.Required})
	}
	slices.SortFunc(r.spread, func(a, b SpreadRule) int {
		return cmp.Or(compareNear(a.NearRule, b.NearRule), compareBool(a.Required, b.Required), cmp.Compare(a.MaxSkew, b.MaxSkew))
	})
	if len(r.affinity)+len(r.antiAffinity)+len(r.preferred)+len(r.spread) == 0 {
		return nil
	}
	for _, p := range r.preferred {
		r.most += max(0, p.Weight)
	}
	r.key = r.text()
	for n := range r.all() {
		r.grouped = r.grouped || n.Selection.ownGroup
	}
	return r
}

// all yields each rule as the domains and the units that it compares.
func (r *Relations) all() iter.Seq[*NearRule] {
	return func(yield func(*NearRule) bool) {
		for i := range r.affinity {
			if !yield(&r.affinity[i]) {
				return
			}
		}
		for i := range r.antiAffinity {
			if !yield(&r.antiAffinity[i]) {
				return
			}
		}
		for i := range r.preferred {
			if !yield(&r.preferred[i].NearRule) {
				return
			}
		}
		for i := range r.spread {
			if !yield(&r.spread[i].NearRule) {
				return
			}
		}
	}
}

func compileOne(n Near) NearRule { return NearRule{n.TopologyKey, compileSelector(n.Selector)} }

func compileNear(terms []Near) []NearRule {
	made := make([]NearRule, 0, len(terms))
	for _, n := range terms {
		made = append(made, compileOne(n))
	}
	slices.SortFunc(made, compareNear)
	return slices.Clip(slices.CompactFunc(made, func(a, b NearRule) bool { return compareNear(a, b) == 0 }))
}

// compileWeighted adds up the weights of equal rules.
func compileWeighted(terms []WeightedNear) []WeightedNearRule {
	var made []WeightedNearRule
	for _, w := range terms {
		n := compileOne(w.Near)
		at, found := slices.BinarySearchFunc(made, n, func(w WeightedNearRule, n NearRule) int { return compareNear(w.NearRule, n) })
		if !found {
			made = slices.Insert(made, at, WeightedNearRule{NearRule: n})
		}
		made[at].Weight += int64(w.Weight)
	}
	return slices.DeleteFunc(made, func(w WeightedNearRule) bool { return w.Weight == 0 })
}

func compareNear(a, b NearRule) int {
	return cmp.Or(strings.Compare(a.TopologyKey, b.TopologyKey), strings.Compare(a.Selection.key, b.Selection.key))
}

func (r *Relations) text() string {
	var b strings.Builder
	for _, n := range r.affinity {
		fmt.Fprintf(&b, "near %q %s ", n.TopologyKey, n.Selection.key)
	}
	for _, n := range r.antiAffinity {
		fmt.Fprintf(&b, "apart %q %s ", n.TopologyKey, n.Selection.key)
	}
	for _, n := range r.preferred {
		fmt.Fprintf(&b, "prefer %d %q %s ", n.Weight, n.TopologyKey, n.Selection.key)
	}
	for _, s := range r.spread {
		fmt.Fprintf(&b, "spread %t %d %q %s ", s.Required, s.MaxSkew, s.TopologyKey, s.Selection.key)
	}
	return b.String()
}

// Key returns a text that is equal for equal rules, "" for none.
func (r *Relations) Key() string {
	if r == nil {
		return ""
	}
	return r.key
}

// Affinity are the required rules of affinity. The caller must not change them.
func (r *Relations) Affinity() []NearRule {
	if r == nil {
		return nil
	}
	return r.affinity
}

// AntiAffinity are the required rules of anti-affinity. The caller must not change
// them.
func (r *Relations) AntiAffinity() []NearRule {
	if r == nil {
		return nil
	}
	return r.antiAffinity
}

// Preferred are the preferences. The caller must not change them.
func (r *Relations) Preferred() []WeightedNearRule {
	if r == nil {
		return nil
	}
	return r.preferred
}

// Spread are the rules of spread. The caller must not change them.
func (r *Relations) Spread() []SpreadRule {
	if r == nil {
		return nil
	}
	return r.spread
}

// MostPoints returns a number that the points of no node exceed.
func (r *Relations) MostPoints() int64 {
	if r == nil {
		return 0
	}
	return r.most
}

// Concerns reports whether a rule of owner about other units selects a unit.
func (r *Relations) Concerns(owner, unit *Subject) bool {
	if r == nil {
		return false
	}
	selects := func(n *NearRule) bool { return n.Selection.Selects(owner, unit) }
	for i := range r.affinity {
		if selects(&r.affinity[i]) {
			return true
		}
	}
	for i := range r.spread {
		if r.spread[i].Required && selects(&r.spread[i].NearRule) {
			return true
		}
	}
	return r.KeepsApart(owner, unit)
}

// KeepsApart reports whether a required rule of anti-affinity of owner selects a
// unit.
func (r *Relations) KeepsApart(owner, unit *Subject) bool {
	if r == nil {
		return false
	}
	for i := range r.antiAffinity {
		if r.antiAffinity[i].Selection.Selects(owner, unit) {
			return true
		}
	}
	return false
}

// Key returns a text that is equal for units of one namespace that all rules of
// theirs, and of others about them, treat alike. labelled: others have rules of
// anti-affinity, for which the labels matter, and the group where it is a MixedGroup.
func (s *Subject) Key(labelled bool) string {
	if s == nil || s.Relations == nil && !labelled {
		return ""
	}
	key := s.Relations.Key() + "labels " + s.Labels.Text()
	if strings.HasPrefix(s.Group, MixedGroup) || s.Relations != nil && s.Relations.grouped {
		key += "group " + s.Group
	}
	return key
}

// Compare orders rules by their labels, then by their selections.
func (n *NearRule) Compare(o *NearRule) int { return compareNear(*n, *o) }
