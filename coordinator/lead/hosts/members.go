package hosts

import (
	"cmp"
	"slices"

	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// DevicesBeside are the GPUs and MIG instances of reported members that the members of a
// record do not have, by UUID.
func DevicesBeside(recorded, reported []grant.Member) (surplus []grant.Member) {
	known := map[string]bool{}
	for i := range recorded {
		for _, g := range recorded[i].Assignment.GPUs {
			known[g.UUID] = true
		}
		for _, g := range recorded[i].Assignment.MIG {
			known[g.UUID] = true
		}
	}
	for i := range reported {
		var a resource.Assignment
		for _, g := range reported[i].Assignment.GPUs {
			if !known[g.UUID] {
				a.GPUs = append(a.GPUs, g)
			}
		}
		for _, g := range reported[i].Assignment.MIG {
			if !known[g.UUID] {
				a.MIG = append(a.MIG, g)
			}
		}
		if len(a.GPUs)+len(a.MIG) > 0 {
			surplus = append(surplus, grant.Member{Index: reported[i].Index, Assignment: a})
		}
	}
	return surplus
}

// MembersOn returns members with the numbers that the host gives to their devices,
// because a host may number devices anew. A device that the host does not have
// keeps the number, and no unit can take the device there.
func MembersOn(host *fit.Host, members []grant.Member) []grant.Member {
	if host == nil || !slices.ContainsFunc(members, func(m grant.Member) bool { return hasMoved(host, &m.Assignment) }) {
		return members
	}
	numbered := slices.Clone(members)
	for i := range numbered {
		numbered[i].Assignment = assignmentOn(host, members[i].Assignment)
	}
	return numbered
}

// hasMoved reports whether a device of an assignment has another number.
func hasMoved(host *fit.Host, a *resource.Assignment) bool {
	list := host.Inventory().Devices
	return slices.ContainsFunc(a.GPUs, func(g resource.GPUGrant) bool {
		return g.Index < 0 || g.Index >= len(list) || list[g.Index].UUID != g.UUID
	}) || slices.ContainsFunc(a.MIG, func(g resource.MIGGrant) bool {
		if g.GPU < 0 || g.GPU >= len(list) || g.Instance < 0 || g.Instance >= len(list[g.GPU].MIG.Instances) {
			return true
		}
		have := &list[g.GPU].MIG.Instances[g.Instance]
		return have.UUID != g.UUID || have.Profile != g.Profile
	})
}

func assignmentOn(host *fit.Host, a resource.Assignment) resource.Assignment {
	list := host.Inventory().Devices
	a.GPUs, a.MIG = slices.Clone(a.GPUs), slices.Clone(a.MIG)
	for at := range list {
		for i := range a.GPUs {
			if a.GPUs[i].UUID == list[at].UUID {
				a.GPUs[i].Index = at
			}
		}
		for instance := range list[at].MIG.Instances {
			for i := range a.MIG {
				if have := &list[at].MIG.Instances[instance]; a.MIG[i].UUID == have.UUID {
					a.MIG[i].GPU, a.MIG[i].Instance, a.MIG[i].Profile = at, instance, have.Profile
				}
			}
		}
	}
	slices.SortFunc(a.GPUs, func(x, y resource.GPUGrant) int { return cmp.Compare(x.Index, y.Index) })
	slices.SortFunc(a.MIG, func(x, y resource.MIGGrant) int {
		return cmp.Or(cmp.Compare(x.GPU, y.GPU), cmp.Compare(x.Instance, y.Instance))
	})
	return a
}
