package api

import (
	"slices"

	"github.com/musterd/muster/resource"
)

// MemberRequest translates a specification into the request of one member to one
// host. Whole numbers of nvidia.com/gpu are whole devices; less than one
// ("500m", "0.5") is a share of one device; more than one but not whole is
// refused, since a share never spans devices. Huge pages are of one size and
// MIG instances of one profile. Amounts with a domain are counted resources, until
// SplitForeign takes those of the whole cluster out. The refusal is a 422 that names the field, as
// seen from an allocation.
func MemberRequest(spec AllocationSpec) (resource.Request, *Status) {
	return memberRequest("spec", &spec)
}

// ForeignRequest returns the amounts with a domain that a member asks for: resources that
// nodes declare, and resources of the whole cluster. The leader knows which name is which.
// The specification is valid; nil for none.
func ForeignRequest(spec AllocationSpec) resource.Vector {
	amounts, status := requested("spec.resources", &spec.Resources)
	if status != nil {
		return nil
	}
	var v resource.Vector
	for name, amount := range amounts {
		if amount == 0 || !IsForeignName(name) {
			continue
		}
		if v == nil {
			v = resource.Vector{}
		}
		v[name] = amount
	}
	return v
}

// SplitForeign separates the amounts of resources of the whole cluster from a request
// that MemberRequest made: only the names in ofNodes are asked of nodes. No node has
// anything of the others, which are charged to quotas alone; nil for none.
func SplitForeign(r *resource.Request, spec AllocationSpec, ofNodes []resource.Name) resource.Vector {
	foreign := ForeignRequest(spec)
	if foreign == nil {
		return nil
	}
	counts, cluster := r.Counts.Vector(), resource.Vector{}
	for name, amount := range foreign {
		if !slices.Contains(ofNodes, name) {
			delete(counts, name)
			cluster[name] = amount
		}
	}
	r.Counts = resource.CountsOf(counts)
	return cluster
}

func memberRequest(path string, spec *AllocationSpec) (resource.Request, *Status) {
	var r resource.Request
	requests, status := requested(path+".resources", &spec.Resources)
	if status == nil {
		status = fill(path+".resources.requests", requests, &r)
	}
	if status = allFaults(status, placementDetails(path+".scheduling", &spec.Scheduling, &r)); status != nil {
		return r, status
	}
	if err := r.Validate(); err != nil {
		return r, invalid(path+".resources.requests", "%v", err)
	}
	return r, nil
}

// requested returns the amounts asked for: the requests, and the limits that
// have none.
func requested(path string, r *Requirements) (resource.Vector, *Status) {
	var faults faults
	requests, status := amounts(path+".requests", r.Requests)
	faults.add(status)
	limits, status := amounts(path+".limits", r.Limits)
	faults.add(status)
	if status := faults.status(); status != nil {
		return nil, status
	}
	for _, name := range limits.Names() {
		request, both := requests[name]
		switch {
		case !both:
			requests[name] = limits[name]
		case exact(name) && request != limits[name]:
			faults.add(invalid(key(path+".requests", string(name)), "%q is not the limit %q: this resource cannot be overcommitted, request and limit must be equal",
				clip(r.Requests[name]), clip(r.Limits[name])))
		case request > limits[name]:
			faults.add(invalid(key(path+".requests", string(name)), "%q is more than the limit %q", clip(r.Requests[name]), clip(r.Limits[name])))
		}
	}
	return requests, faults.status()
}

// fill puts amounts into the request's fields. Nothing of a resource is not a
// request for it.
func fill(path string, amounts resource.Vector, r *resource.Request) *Status {
	r.CPU = resource.Millicores(amounts[resource.CPU])
	r.Cores = int(amounts[resource.Cores])
	r.Memory = resource.Bytes(amounts[resource.Memory])
	gpu := resource.Milli(amounts[resource.GPU])
	if gpu >= resource.WholeDevice {
		r.GPUs = int(gpu / resource.WholeDevice)
	} else {
		r.GPUShare = gpu
	}
	counts := resource.Vector{}
	for _, name := range amounts.Names() {
		if amounts[name] == 0 {
			continue
		}
		if name == resource.EphemeralStorage || IsForeignName(name) {
			counts[name] = amounts[name]
		}
		if size, ok, _ := name.HugepageSize(); ok {
			if r.Hugepages > 0 {
				return invalid(path, "%s and %s: a member gets huge pages of one size, keep one of the two", resource.Hugepages(r.HugepageSize), name)
			}
			r.Hugepages, r.HugepageSize = resource.Bytes(amounts[name]), size
		}
		if profile, ok, _ := name.MIGProfile(); ok {
			if r.MIG > 0 {
				return invalid(path, "%s and %s: a member gets MIG instances of one profile, keep one of the two", resource.MIG(r.MIGProfile), name)
			}
			r.MIG, r.MIGProfile = int(amounts[name]), profile
		}
	}
	if len(counts) > resource.MaxCounts {
		return invalid(path, "%d counted resources, a member asks for %d at most", len(counts), resource.MaxCounts)
	}
	r.Counts = resource.CountsOf(counts)
	return nil
}

// placementDetails fills in Muster's own constraints.
func placementDetails(path string, s *Scheduling, r *resource.Request) *Status {
	policy, err := resource.ParseNUMAPolicy(s.NUMAPolicy)
	if err != nil {
		return invalid(path+".numaPolicy", "%q: want none, best-effort, restricted or single-numa-node", clip(s.NUMAPolicy))
	}
	r.NUMA = policy
	if s.GPU == nil {
		return nil
	}
	return gpuDetails(path+".gpu", s.GPU, r)
}

// gpuDetails fills in the restriction of the devices.
func gpuDetails(path string, g *GPUConstraint, r *resource.Request) *Status {
	if len(g.Model) > 128 {
		return invalid(path+".model", "%q has %d characters, the limit is 128", clip(g.Model), len(g.Model))
	}
	r.GPUModel = g.Model
	if g.Memory != "" {
		least, err := resource.ParseAmount(resource.Memory, g.Memory)
		if err != nil {
			return invalid(path+".memory", "%v", err)
		}
		if least > int64(resource.MaxMemory) {
			return invalid(path+".memory", "%q is more than %s, the most that can be asked for",
				clip(g.Memory), resource.FormatBytes(resource.MaxMemory))
		}
		r.GPUMemory = resource.Bytes(least)
	}
	var err error
	if r.Link, err = resource.ParseLinkRequirement(g.Link); err != nil {
		return invalid(path+".link", "%q: want any, pcie-switch or nvlink", clip(g.Link))
	}
	return nil
}
