package shown

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/api"
)

// Nomination is who makes room for a unit.
type Nomination struct {
	Victims []api.Victim
	// Noticed is when they were told to leave; zero: they were not yet.
	Noticed time.Time
}

// Show shows a nomination, its victims by name.
func (n *Nomination) Show() *api.Nomination {
	o := &api.Nomination{WaitingFor: n.Awaits(), Victims: slices.Clone(n.Victims)}
	slices.SortFunc(o.Victims, func(a, b api.Victim) int { return cmp.Compare(a.Unit, b.Unit) })
	if !n.Noticed.IsZero() {
		o.Since = n.Noticed.UTC().Format(time.RFC3339)
	}
	return o
}

// Awaits says in one sentence what a preemption waits for.
func (n *Nomination) Awaits() string {
	leaving := 0
	units := make([]string, len(n.Victims))
	for i, v := range n.Victims {
		units[i] = v.Unit
		if !v.Freed {
			leaving++
		}
	}
	slices.Sort(units)
	who := Names(units)
	switch {
	case n.Noticed.IsZero():
		return "it is about to take the place of " + who
	case leaving > 0:
		return fmt.Sprintf("it takes the place of %s, told to leave at %s; %d still hold something", who, n.Noticed.UTC().Format(time.TimeOnly), leaving)
	}
	return "it takes the place of " + who + ", which is free now"
}

// namesInOne bounds how many are named in one sentence.
const namesInOne = 5

// Names lists names in a sentence: the first of many, and how many more there
// are.
func Names(all []string) string {
	if len(all) > namesInOne {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:namesInOne], ", "), len(all)-namesInOne)
	}
	return strings.Join(all, ", ")
}
