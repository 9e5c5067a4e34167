package admission

import (
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// This file bounds the amounts for new work: operators lower them, and of grown capacity the
// node gives the approved part.

// Bounds are the greatest amounts for work on a node. The zero value sets no bound. Bounds
// are not to be changed.
type Bounds struct {
	// Amounts are by resource, in base units. A resource without an amount has no bound.
	Amounts resource.Vector
	// Models are numbers of devices by model, those in MIG mode included. A missing
	// model has the number 0. Nil bounds no model.
	Models map[string]int
}

// BoundsOf are the bounds of a node. The approval binds only the grown resources, so memory
// within the tolerance is given. Approved memory includes the huge pages given.
func BoundsOf(spec record.NodeSpec) Bounds {
	b := Bounds{Amounts: spec.Lowered}
	if !hasGrown(spec) {
		return b
	}
	b.Amounts = resource.Vector{}
	maps.Copy(b.Amounts, spec.Lowered)
	lower := func(name resource.Name, most int64) {
		if has, bound := b.Amounts[name]; !bound || most < has {
			b.Amounts[name] = max(0, most)
		}
	}
	approved, pages := spec.Approved.Amounts, int64(0)
	for name, amount := range spec.Capacity {
		if name == resource.Memory {
			continue
		}
		if exceedsApproved(name, amount, approved) {
			amount = approved[name]
			lower(name, amount)
		}
		if _, huge, _ := name.HugepageSize(); huge {
			pages += amount
		}
	}
	if exceedsApproved(resource.Memory, spec.Capacity[resource.Memory], approved) {
		lower(resource.Memory, approved[resource.Memory]-pages)
	}
	models := RegisteredCapacity(spec).Models
	if !modelsExceed(models, spec.Approved.Models) {
		return b
	}
	b.Models = spec.Approved.Models
	if most := int64(inBoth(models, b.Models)) * int64(resource.WholeDevice); most < spec.Capacity[resource.GPU] {
		lower(resource.GPU, most)
	}
	return b
}

// IsForeign reports whether a grown node has devices, but no device of an approved
// model. Such a node may be another machine, without an approved part.
func IsForeign(spec record.NodeSpec) bool {
	if !hasGrown(spec) {
		return false
	}
	models := RegisteredCapacity(spec).Models
	return len(models) > 0 && len(spec.Approved.Models) > 0 && inBoth(models, spec.Approved.Models) == 0
}

func hasGrown(spec record.NodeSpec) bool { return !UnapprovedOf(spec).IsZero() }

// exceedsApproved reports whether an amount is growth.
func exceedsApproved(name resource.Name, amount int64, approved resource.Vector) bool {
	return exceeds(name, amount, approved[name], approved[resource.Memory]/MemoryTolerance)
}

// modelsExceed reports whether there are more devices of a model than a bound has. An empty
// bound comes from an older version's registration, or from a host without devices.
func modelsExceed(models, bound map[string]int) bool {
	for model, n := range models {
		if len(bound) > 0 && n > bound[model] {
			return true
		}
	}
	return false
}

// inBoth counts the common devices of two hosts by their models.
func inBoth(a, b map[string]int) (n int) {
	for model, has := range a {
		n += min(has, b[model])
	}
	return n
}

// givenDevices counts the devices for new work, as far as the
// specification knows them, and has the index of the first (-1: there is no such device).
// The labels of the node follow these devices: no growth attracts work before its approval.
func givenDevices(spec record.NodeSpec) (count, first int) {
	count = spec.Topology.GPUs
	if b := BoundsOf(spec); b.Models != nil {
		count = inBoth(RegisteredCapacity(spec).Models, b.Models)
		first = slices.IndexFunc(spec.Topology.GPUModel, func(at int) bool { return b.Models[spec.Topology.GPUModels[at]] > 0 })
	} else if hasGrown(spec) {
		approved := int64(0)
		for name, amount := range spec.Approved.Amounts {
			if _, mig, _ := name.MIGProfile(); mig || name == resource.GPU {
				approved += amount
			}
		}
		count -= int(max(0, spec.Capacity[resource.GPU]-spec.Approved.Amounts[resource.GPU]) / int64(resource.WholeDevice))
		if approved == 0 {
			count = 0
		}
	}
	if count <= 0 {
		return 0, -1
	}
	return count, first
}
