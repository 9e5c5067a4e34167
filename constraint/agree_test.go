package constraint_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/resource"
)

// draw makes random constraints and nodes of few names, so that they meet.
type draw struct{ *rand.Rand }

func (d draw) of(list ...string) string { return list[d.IntN(len(list))] }

func (d draw) key() string { return d.of("a", "b", "c", "") }

func (d draw) value() string {
	return d.of("", "x", "y", "7", "8", "08", "+8", "-3", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "1_0")
}

func (d draw) effect() string {
	return d.of("NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule", "", "Other")
}

func (d draw) term() naiveTerm {
	var t naiveTerm
	for range d.IntN(3) {
		e := naiveExpression{key: d.key(), operator: d.of("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte", "", "Unknown")}
		for range d.of("", "x", "x", "x", "xx", "xxx") {
			e.values = append(e.values, d.value())
		}
		t = append(t, e)
	}
	return t
}

func (d draw) constraints() *naive {
	c := &naive{}
	for range d.IntN(3) * d.IntN(2) {
		if c.nodeSelector == nil {
			c.nodeSelector = map[string]string{}
		}
		c.nodeSelector[d.key()] = d.value()
	}
	for range d.IntN(3) {
		c.required = append(c.required, d.term())
	}
	for range d.IntN(3) {
		c.preferred = append(c.preferred, naivePreference{int32(d.IntN(5) - 1), d.term()})
	}
	for range d.IntN(3) {
		c.tolerations = append(c.tolerations, naiveToleration{d.key(), d.of("Exists", "Equal", ""), d.of("", "x", "7"), d.effect()})
	}
	return c
}

func (d draw) node() naiveNode {
	n := naiveNode{labels: map[string]string{}}
	for range d.IntN(4) {
		n.labels[d.key()] = d.value()
	}
	for i := range 12 * d.IntN(2) { // so many that a look-up halves them
		n.labels[fmt.Sprintf("b%d", i)] = d.value()
	}
	for range d.IntN(3) * d.IntN(2) {
		n.taints = append(n.taints, naiveTaint{d.key(), d.of("", "x", "7"), d.effect()})
	}
	return n
}

// shuffled writes the same constraints in another way.
func (d draw) shuffled(c *naive) *naive {
	o := &naive{nodeSelector: c.nodeSelector, preferred: slices.Clone(c.preferred)}
	for _, t := range c.required {
		t = slices.Clone(t)
		for i, e := range t {
			if e.values = slices.Clone(e.values); e.operator == "In" || e.operator == "NotIn" {
				d.Shuffle(len(e.values), func(i, j int) { e.values[i], e.values[j] = e.values[j], e.values[i] })
			}
			t[i] = e
		}
		d.Shuffle(len(t), func(i, j int) { t[i], t[j] = t[j], t[i] })
		if o.required = append(o.required, t); d.IntN(2) == 0 {
			o.required = append(o.required, t)
		}
	}
	o.tolerations = slices.Concat(c.tolerations, c.tolerations)
	d.Shuffle(len(o.required), func(i, j int) { o.required[i], o.required[j] = o.required[j], o.required[i] })
	d.Shuffle(len(o.preferred), func(i, j int) { o.preferred[i], o.preferred[j] = o.preferred[j], o.preferred[i] })
	d.Shuffle(len(o.tolerations), func(i, j int) { o.tolerations[i], o.tolerations[j] = o.tolerations[j], o.tolerations[i] })
	return o
}

// TestSetsAgreeWithTheOracle judges 100,000 pairs of constraints and nodes.
func TestSetsAgreeWithTheOracle(t *testing.T) {
	d := draw{rand.New(rand.NewPCG(1, 2))}
	var table constraint.Table
	allowed, total := 0, 0
	for range 20_000 {
		c := d.constraints()
		set := constraint.Compile(c.spec())
		for range 5 {
			n := d.node()
			l := n.intern(&table)
			want := c.refuses(n)
			if got := set.Refusal(l); (got == nil) != (want == nil) || got != nil && !sameRefusal(*got, *want) {
				t.Fatalf("refusal: got %v, want %v\nof %+v\nfor %+v\nkey %s", got, want, *c, n, set.Key())
			}
			if got := set.Allows(l); got != (want == nil) {
				t.Fatalf("allows: got %t, and the refusal is %v\nof %+v\nfor %+v\nkey %s", got, want, *c, n, set.Key())
			}
			if got := set.Tolerates(l.Taints()) && set.Matches(l); got != (want == nil) {
				t.Fatalf("tolerates and matches: got %t, and the refusal is %v\nof %+v\nfor %+v\nkey %s", got, want, *c, n, set.Key())
			}
			for _, need := range set.Needs() {
				if value, ok := n.labels[need.Key]; want == nil && (!ok || value != need.Value) {
					t.Fatalf("needs: %v, which %+v has not, and it is allowed\nof %+v\nkey %s", need, n, *c, set.Key())
				}
			}
			if got, want := set.Preference(l), c.preference(n); got != want || got > set.MostPreference() {
				t.Fatalf("preference: got %d of %d, want %d\nof %+v\nfor %+v\nkey %s", got, set.MostPreference(), want, *c, n, set.Key())
			}
			if total++; want == nil {
				allowed++
			}
			table.Release(l)
		}
	}
	if allowed < total/10 || allowed > total*9/10 {
		t.Errorf("%d of %d pairs are allowed: the draw tests one side alone", allowed, total)
	}
	if table.Len() != 0 {
		t.Errorf("the table holds %d labels that nobody holds", table.Len())
	}
}

// TestKeysAreEqualForTheSameConstraints: written in another order and with
// repetitions, constraints have the same key; and sets of one key agree on every
// node.
func TestKeysAreEqualForTheSameConstraints(t *testing.T) {
	d := draw{rand.New(rand.NewPCG(3, 4))}
	var table constraint.Table
	var nodes []*constraint.Labels
	for range 40 {
		nodes = append(nodes, d.node().intern(&table))
	}
	type verdict struct {
		Allowed    bool
		Preference int64
	}
	of := func(s *constraint.Set) []verdict {
		list := make([]verdict, len(nodes))
		for i, l := range nodes {
			list[i] = verdict{s.Allows(l), s.Preference(l)}
		}
		return list
	}
	first, shared := map[string][]verdict{}, 0
	for range 5000 {
		c := d.constraints()
		set := constraint.Compile(c.spec())
		if other := constraint.Compile(d.shuffled(c).spec()); other.Key() != set.Key() {
			t.Fatalf("the key depends on the order:\n%s\n%s\nof %+v", set.Key(), other.Key(), *c)
		}
		if set.Key() == "" && set != nil {
			t.Fatalf("%+v has the key of no constraints", *c)
		}
		verdicts := of(set)
		seen, known := first[set.Key()]
		if !known {
			first[set.Key()] = verdicts
			continue
		}
		shared++
		if diff := cmp.Diff(seen, verdicts); diff != "" {
			t.Fatalf("sets with the key %s differ:\n%s", set.Key(), diff)
		}
	}
	if shared < 100 {
		t.Errorf("only %d keys were met again", shared)
	}
}

// TestRequirementsAllowTheSameNodes: the spec of a set compiles to the same set,
// but for its preferences.
func TestRequirementsAllowTheSameNodes(t *testing.T) {
	if diff := cmp.Diff(constraint.Spec{}, (*constraint.Set)(nil).Requirements()); diff != "" {
		t.Errorf("of no set (-want +got):\n%s", diff)
	}
	for seed := range uint64(5000) {
		spec := draw{rand.New(rand.NewPCG(seed, 9))}.constraints().spec()
		set := constraint.Compile(spec)
		spec.Preferred = nil
		if want, got := constraint.Compile(spec).Key(), constraint.Compile(set.Requirements()).Key(); got != want {
			t.Fatalf("seed %d: %s, want %s", seed, got, want)
		}
	}
}

// sameRefusal compares refusals; the oracle has no words for a node affinity.
func sameRefusal(got, want resource.Reason) bool {
	return got == want || want.Code == resource.ReasonNodeAffinity && got.Code == want.Code && got.Detail != ""
}
