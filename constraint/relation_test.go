package constraint_test

import (
	"testing"

	"github.com/musterd/muster/constraint"
)

// neighbours are units of one namespace: jobs, whose units have equal rules, and allocations of
// two groups with several rules each.
func neighbours() (units []*constraint.Subject) {
	web := constraint.Term{{Key: "app", Operator: constraint.In, Values: []string{"web"}}}
	own, labelled := constraint.Near{TopologyKey: "rack", Selector: constraint.Selector{OwnGroup: true}}, constraint.Near{TopologyKey: "rack", Selector: constraint.Selector{Match: web}}
	rules := map[string]*constraint.Relations{
		"none":       nil,
		"own group":  constraint.CompileRelations(constraint.RelationSpec{AntiAffinity: []constraint.Near{own}}),
		"labels":     constraint.CompileRelations(constraint.RelationSpec{AntiAffinity: []constraint.Near{labelled}}),
		"affinity":   constraint.CompileRelations(constraint.RelationSpec{Affinity: []constraint.Near{labelled}}),
		"own domain": constraint.CompileRelations(constraint.RelationSpec{Affinity: []constraint.Near{own}}),
	}
	for _, labels := range []map[string]string{nil, {"app": "web"}} {
		for name, r := range rules {
			u := constraint.Subject{Namespace: "ns", Labels: constraint.LabelsOf(labels), Relations: r}
			for _, group := range []string{"job/a " + name, "job/b " + name, constraint.MixedGroup + "a", constraint.MixedGroup + "b"} {
				of := u
				of.Group = group
				units = append(units, &of)
			}
		}
	}
	return units
}

// TestUnitsWithEqualKeysAreTreatedAlike by the rules of each other unit, and their own rules
// treat each other unit alike.
func TestUnitsWithEqualKeysAreTreatedAlike(t *testing.T) {
	units := neighbours()
	for _, a := range units {
		for _, b := range units {
			if a.Key(true) != b.Key(true) {
				continue
			}
			for _, o := range units {
				if o.Relations.KeepsApart(o, a) != o.Relations.KeepsApart(o, b) {
					t.Errorf("the rules of a unit of %s tell %s and %s apart, and both have the key %q", o.Group, a.Group, b.Group, a.Key(true))
				}
				if a.Relations.Concerns(a, o) != b.Relations.Concerns(b, o) {
					t.Errorf("the rules of %s and %s differ about %s, and both have the key %q", a.Group, b.Group, o.Group, a.Key(true))
				}
			}
		}
	}
}

// TestUnitsShareAKey, because each key is a class of its own for the scheduler.
func TestUnitsShareAKey(t *testing.T) {
	const none, rules = false, true
	for name, c := range map[string]struct {
		a, b     constraint.Subject
		labelled bool
		same     bool
	}{
		"jobs":                         {constraint.Subject{Group: "job/a"}, constraint.Subject{Group: "job/b"}, rules, true},
		"an allocation and a job":      {constraint.Subject{Group: "allocation/a"}, constraint.Subject{Group: "job/a"}, rules, true},
		"allocations of a group":       {constraint.Subject{Group: constraint.MixedGroup + "a"}, constraint.Subject{Group: constraint.MixedGroup + "a"}, rules, true},
		"allocations of two groups":    {constraint.Subject{Group: constraint.MixedGroup + "a"}, constraint.Subject{Group: constraint.MixedGroup + "b"}, rules, false},
		"two groups without any rules": {constraint.Subject{Group: constraint.MixedGroup + "a"}, constraint.Subject{Group: constraint.MixedGroup + "b"}, none, true},
	} {
		if same := c.a.Key(c.labelled) == c.b.Key(c.labelled); same != c.same {
			t.Errorf("%s: equal keys: %t, want %t", name, same, c.same)
		}
	}
}
