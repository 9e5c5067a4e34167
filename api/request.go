package api

import (
	"github.com/musterd/muster/resource"
)

// MemberRequest translates a specification into what one member asks of one
// host. Whole numbers of nvidia.com/gpu are whole devices; less than one
// ("500m", "0.5") is a share of one device; more than one but not whole is
// refused, since a share never spans devices. The refusal is a 422 that names
// the field, as seen from an allocation.
func MemberRequest(spec AllocationSpec) (resource.Request, *Status) {
	return memberRequest("spec", &spec)
}

func memberRequest(path string, spec *AllocationSpec) (resource.Request, *Status) {
	var r resource.Request
	requests, status := amounts(path+".resources.requests", spec.Resources.Requests)
	if status != nil {
		return r, status
	}
	limits, status := amounts(path+".resources.limits", spec.Resources.Limits)
	if status != nil {
		return r, status
	}
	for _, name := range limits.Names() {
		request, requested := requests[name]
		if requested && request > limits[name] {
			return r, invalid(key(path+".resources.requests", string(name)), "%q is more than the limit %q",
				clip(spec.Resources.Requests[name]), clip(spec.Resources.Limits[name]))
		}
		if !requested {
			requests[name] = limits[name]
		}
	}
	r.CPU = resource.Millicores(requests[resource.CPU])
	r.Memory = resource.Bytes(requests[resource.Memory])
	gpu := resource.Milli(requests[resource.GPU])
	if gpu >= resource.WholeDevice {
		r.GPUs = int(gpu / resource.WholeDevice)
	} else {
		r.GPUShare = gpu
	}
	if status := placementDetails(path+".scheduling", &spec.Scheduling, &r); status != nil {
		return r, status
	}
	if err := r.Validate(); err != nil {
		return r, invalid(path+".resources.requests", "%v", err)
	}
	return r, nil
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
	if len(s.GPU.Model) > 128 {
		return invalid(path+".gpu.model", "%q has %d characters, the limit is 128", clip(s.GPU.Model), len(s.GPU.Model))
	}
	r.GPUModel = s.GPU.Model
	if s.GPU.Memory != "" {
		least, err := resource.ParseAmount(resource.Memory, s.GPU.Memory)
		if err != nil {
			return invalid(path+".gpu.memory", "%v", err)
		}
		if least > int64(resource.MaxMemory) {
			return invalid(path+".gpu.memory", "%q is more than %s, the most that can be asked for",
				clip(s.GPU.Memory), resource.FormatBytes(resource.MaxMemory))
		}
		r.GPUMemory = resource.Bytes(least)
	}
	if r.Link, err = resource.ParseLinkRequirement(s.GPU.Link); err != nil {
		return invalid(path+".gpu.link", "%q: want any, pcie-switch or nvlink", clip(s.GPU.Link))
	}
	return nil
}

// amounts reads quantities into base units and holds each within what one
// member may ask for.
func amounts(path string, quantities map[resource.Name]string) (resource.Vector, *Status) {
	v := make(resource.Vector, len(quantities)+1)
	for _, name := range sortedKeys(quantities) {
		text := quantities[name]
		at := key(path, string(name))
		var most int64
		switch name {
		case resource.CPU:
			most = int64(resource.MaxCPU)
		case resource.Memory:
			most = int64(resource.MaxMemory)
		case resource.GPU:
			most = resource.MaxGPUs * int64(resource.WholeDevice)
		default:
			return nil, invalid(at, "unknown resource: this version allocates cpu, memory and nvidia.com/gpu")
		}
		amount, err := resource.ParseQuantity(text, scale(name))
		if err != nil {
			return nil, invalid(at, "%v", err)
		}
		if amount > most {
			return nil, invalid(at, "%q is more than %s, the most one member may ask for", clip(text), resource.FormatAmount(name, most))
		}
		if whole := int64(resource.WholeDevice); name == resource.GPU && amount > whole && amount%whole != 0 {
			return nil, invalid(at, "%q is neither whole devices nor a share of one: want a whole number, or less than 1", clip(text))
		}
		v[name] = amount
	}
	return v, nil
}

// scale is how many base units one of the resource as written has.
func scale(name resource.Name) int64 {
	if name == resource.Memory {
		return 1
	}
	return 1000
}

// Amounts prints a vector the way people write quantities; zeros are left out.
func Amounts(v resource.Vector) map[resource.Name]string {
	out := make(map[resource.Name]string, len(v))
	for _, name := range v.Names() {
		if v[name] != 0 {
			out[name] = resource.FormatAmount(name, v[name])
		}
	}
	return out
}
