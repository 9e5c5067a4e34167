package constraint_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/musterd/muster/constraint"
)

func TestEqualLabelsAreOneValue(t *testing.T) {
	var table constraint.Table
	taint := constraint.Taint{Key: "a", Effect: constraint.NoSchedule}
	prefer := constraint.Taint{Key: "a", Effect: constraint.PreferNoSchedule}
	none := table.Intern(nil, nil)
	for name, c := range map[string]struct {
		a, b *constraint.Labels
		same bool
	}{
		"nil and empty":             {none, table.Intern(map[string]string{}, []constraint.Taint{}), true},
		"equal maps":                {table.Intern(map[string]string{"a": "b", "c": "d"}, nil), table.Intern(map[string]string{"c": "d", "a": "b"}, nil), true},
		"a quote in a value":        {table.Intern(map[string]string{"a": `b" "c"="d`}, nil), table.Intern(map[string]string{"a": "b", "c": "d"}, nil), false},
		"equal taints":              {table.Intern(nil, []constraint.Taint{taint}), table.Intern(nil, []constraint.Taint{taint}), true},
		"a taint":                   {none, table.Intern(nil, []constraint.Taint{taint}), false},
		"another effect":            {table.Intern(nil, []constraint.Taint{prefer}), table.Intern(nil, []constraint.Taint{taint}), false},
		"a taint that only prefers": {none, table.Intern(nil, []constraint.Taint{prefer}), false},
		"taints in another order":   {table.Intern(nil, []constraint.Taint{taint, prefer}), table.Intern(nil, []constraint.Taint{prefer, taint}), false},
	} {
		if same := c.a == c.b; same != c.same {
			t.Errorf("%s: one value %t, want %t", name, same, c.same)
		}
	}
}

func TestEqualTaintsAreOneValue(t *testing.T) {
	var table constraint.Table
	taint := constraint.Taint{Key: "a", Effect: constraint.NoSchedule}
	prefer := constraint.Taint{Key: "a", Effect: constraint.PreferNoSchedule}
	a := table.Intern(map[string]string{"zone": "a"}, []constraint.Taint{taint})
	b := table.Intern(map[string]string{"zone": "b"}, []constraint.Taint{taint})
	if a.Taints() == nil || a.Taints() != b.Taints() {
		t.Errorf("equal taints are %p and %p", a.Taints(), b.Taints())
	}
	var nobody *constraint.Set
	if l := table.Intern(nil, []constraint.Taint{prefer}); !nobody.Allows(l) || nobody.SoftTaints(l.Taints()) != 1 {
		t.Error("a taint that only prefers keeps units away, or is not counted")
	}
	if l := table.Intern(nil, []constraint.Taint{prefer, taint}); l.Taints() == a.Taints() {
		t.Error("a taint that only prefers makes no difference")
	}
	of := a.Taints()
	table.Release(a)
	if c := table.Intern(nil, []constraint.Taint{taint}); c.Taints() != of {
		t.Error("taints that somebody holds were forgotten")
	}
}

// TestTheTableHoldsHeldLabelsAlone: nodes that change their labels for ever leave
// no more entries than there are nodes.
func TestTheTableHoldsHeldLabelsAlone(t *testing.T) {
	var table constraint.Table
	rng := rand.New(rand.NewPCG(5, 6))
	held := make([]*constraint.Labels, 8)
	values := make([]map[string]string, len(held))
	for range 20_000 {
		i := rng.IntN(len(held))
		before := held[i]
		values[i] = map[string]string{"k": fmt.Sprint(rng.IntN(12))}
		given := map[string]string{"k": values[i]["k"]}
		held[i] = table.Intern(given, nil)
		table.Release(before)
		given["k"] = "changed by the caller later"

		different := map[*constraint.Labels]bool{}
		for j, l := range held {
			if l == nil {
				continue
			}
			different[l] = true
			if !reflect.DeepEqual(l.Values(), values[j]) {
				t.Fatalf("node %d has %v, want %v", j, l.Values(), values[j])
			}
			if same := l == held[i]; same != (values[j]["k"] == values[i]["k"]) {
				t.Fatalf("nodes %d and %d with %v and %v: one value %t", i, j, values[i], values[j], same)
			}
		}
		if table.Len() != len(different) {
			t.Fatalf("the table has %d entries for %d different labels", table.Len(), len(different))
		}
	}
}

func TestLabelsThatNobodyHoldsCannotBeReleased(t *testing.T) {
	var table constraint.Table
	table.Release(nil)
	l := table.Intern(map[string]string{"a": "b"}, nil)
	table.Release(l)
	defer func() {
		if recover() == nil {
			t.Error("labels were released twice")
		}
	}()
	table.Release(l)
}
