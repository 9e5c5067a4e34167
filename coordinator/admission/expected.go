package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// This file compares the capacity that a node's creation has named with the capacity
// that the agent has found.

// Differences says how the host that the agent has found differs from the expected
// one, "" where the two agree or nothing is expected. Resources that agents do not
// count, such as ephemeral-storage, are not compared. Memory may differ by one part in
// MemoryTolerance.
func Differences(spec record.NodeSpec) string {
	if spec.Expected == nil || !spec.HasRegistered() {
		return ""
	}
	lines := differing("capacity", spec.Expected.Capacity, spec.Capacity)
	lines = append(lines, differing("allocatable", spec.Expected.Allocatable, spec.Allocatable)...)
	if more := len(lines) - maxDifferences; more > 0 {
		lines = append(lines[:maxDifferences], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "; ")
}

func differing(field string, expected map[resource.Name]string, found resource.Vector) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(expected)) {
		want, err := api.ParseAmount(name, expected[name])
		if err != nil { // agents do not count it
			continue
		}
		has, slack := found[name], int64(0)
		if name == resource.Memory {
			slack = want / MemoryTolerance
		}
		if has < want-slack || has > want+slack {
			lines = append(lines, fmt.Sprintf("%s %s: expected %s, found %s", field, name, expected[name], resource.FormatAmount(name, has)))
		}
	}
	return lines
}

// AtMostExpected is a capacity without the part that is more than expected: the
// approval of a node whose creation has named its capacity.
func AtMostExpected(found resource.Vector, expected *record.Expected) resource.Vector {
	if expected == nil {
		return found
	}
	bounded := maps.Clone(found)
	for name, text := range expected.Capacity {
		if want, err := api.ParseAmount(name, text); err == nil && bounded[name] > want {
			bounded[name] = want
		}
	}
	return bounded
}

// Allocatable is the part of a node that Muster hands out: the part that the agent has
// found, less the pool of the host's kubelet (nil: there is none), and at most the bounds
// of the node. The devices of the pool are the first that a bound leaves out. The result is
// not to be changed.
func Allocatable(spec record.NodeSpec, pool *resource.Assignment) resource.Vector {
	bounds := BoundsOf(spec).Amounts
	if len(bounds) == 0 && pool == nil {
		return spec.Allocatable
	}
	v := maps.Clone(spec.Allocatable)
	if pool != nil {
		for name, amount := range pool.Vector() {
			if has, known := v[name]; known {
				v[name] = max(0, has-amount)
			}
		}
	}
	for name, most := range bounds {
		if v[name] > most {
			v[name] = most
		}
	}
	return v
}

// Lowering says which amounts operators have lowered below those that the agent has
// found, "" for none.
func Lowering(spec record.NodeSpec) string {
	var lines []string
	for _, name := range spec.Lowered.Names() {
		if most := spec.Lowered[name]; spec.Allocatable[name] > most {
			lines = append(lines, fmt.Sprintf("%s %s → %s", name, resource.FormatAmount(name, spec.Allocatable[name]), resource.FormatAmount(name, most)))
		}
	}
	return strings.Join(lines, ", ")
}
