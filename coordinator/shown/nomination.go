package shown

import (
	"fmt"
	"strings"
	"time"

	"github.com/musterd/muster/resource"
)

// Nomination is the work that makes room for a unit. It has no names: whoever may
// see the unit may see this, and the work may belong to others.
type Nomination struct {
	Units   int
	GPUs    resource.Milli // of all of them
	Leaving int            // units that still hold something
	// Noticed is when the units were given notice; zero: not yet.
	Noticed time.Time
}

// Awaits says in one sentence what a preemption waits for.
func (n *Nomination) Awaits() string {
	units := "units"
	if n.Units == 1 {
		units = "unit"
	}
	work := fmt.Sprintf("%d %s with %s GPUs", n.Units, units, resource.FormatAmount(resource.GPU, int64(n.GPUs)))
	switch {
	case n.Noticed.IsZero():
		return "it is about to take the place of " + work
	case n.Leaving > 0:
		return fmt.Sprintf("it takes the place of %s, noticed at %s; %d of %d still hold something", work, n.Noticed.UTC().Format(time.TimeOnly), n.Leaving, n.Units)
	}
	return "it takes the place of " + work + ", and all of that is free now"
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
