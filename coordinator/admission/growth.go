package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterd/muster/resource"
)

// Capacity is how much a node has: all of each resource, in base units, and its
// devices by model.
type Capacity struct {
	Amounts resource.Vector
	// Models is empty where no model is known, as of a host that an older version
	// has registered.
	Models map[string]int
}

// Growth is the capacity of a node beyond a bound. The zero value is none.
type Growth struct {
	Reason  string // CapacityGrew or ModelsChanged
	Message string // "cpu 2 → 64, nvidia.com/gpu 0 → 8"
}

// The reasons of a Growth.
const (
	CapacityGrew  = "CapacityGrew"
	ModelsChanged = "ModelsChanged" // nothing but the models of devices
)

// MemoryTolerance is how much more memory a node may have than was approved, as
// a part of that: one fiftieth. A kernel or a firmware that changes gives back
// or takes some.
const MemoryTolerance = 50

// Unapproved is the registered capacity beyond the approved one. Shrinking is
// no growth.
func Unapproved(registered, approved Capacity) Growth {
	return beyond(registered, approved, approved.Amounts[resource.Memory]/MemoryTolerance)
}

// Unregistered is the capacity that an agent's stream offers beyond the
// registered one.
func Unregistered(offered, registered Capacity) Growth { return beyond(offered, registered, 0) }

// maxDifferences bounds how many differences a message names, maxModel the
// length of a model's name in it: agents choose both.
const (
	maxDifferences = 8
	maxModel       = 64
)

func beyond(has, bound Capacity, memory int64) Growth {
	var grown []string
	for _, name := range has.Amounts.Names() {
		if exceeds(name, has.Amounts[name], bound.Amounts[name], memory) {
			grown = append(grown, fmt.Sprintf("%s %s → %s", name,
				resource.FormatAmount(name, bound.Amounts[name]), resource.FormatAmount(name, has.Amounts[name])))
		}
	}
	reason := CapacityGrew
	if len(grown) == 0 {
		reason = ModelsChanged
	}
	if len(bound.Models) > 0 {
		for _, model := range slices.Sorted(maps.Keys(has.Models)) {
			if n := has.Models[model]; n > bound.Models[model] {
				name := model[:min(len(model), maxModel)]
				grown = append(grown, fmt.Sprintf("model %q %d → %d", strings.ToValidUTF8(name, ""), bound.Models[model], n))
			}
		}
	}
	if len(grown) == 0 {
		return Growth{}
	}
	if more := len(grown) - maxDifferences; more > 0 {
		grown = append(grown[:maxDifferences], fmt.Sprintf("and %d more", more))
	}
	return Growth{Reason: reason, Message: strings.Join(grown, ", ")}
}

// exceeds reports whether an amount is above its bound; memory is the tolerance of memory.
func exceeds(name resource.Name, amount, bound, memory int64) bool {
	if name == resource.Memory {
		amount -= memory
	}
	return amount > bound
}

// IsZero reports whether there is no growth.
func (g Growth) IsZero() bool { return g == Growth{} }
