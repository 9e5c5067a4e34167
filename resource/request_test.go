package resource_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/resource"
)

func TestRequestsWithinTheRulesAreValid(t *testing.T) {
	for name, r := range map[string]resource.Request{
		"CPU alone":                  {CPU: 1},
		"memory alone":               {Memory: 1},
		"GPUs alone":                 {GPUs: 1},
		"a share of a GPU alone":     {GPUShare: 999},
		"the most of everything":     {CPU: resource.MaxCPU, Memory: resource.MaxMemory, GPUs: resource.MaxGPUs, GPUMemory: resource.MaxMemory, NUMA: resource.NUMASingleNode, Link: resource.LinkNVLink},
		"a share of a named model":   {GPUShare: 1, GPUModel: "NVIDIA A100-SXM4-80GB", GPUMemory: 80 << 30},
		"a NUMA policy without GPUs": {CPU: 1000, NUMA: resource.NUMARestricted},
	} {
		t.Run(name, func(t *testing.T) {
			if err := r.Validate(); err != nil {
				t.Errorf("%+v: %v", r, err)
			}
		})
	}
}

func TestValidateNamesTheBrokenRule(t *testing.T) {
	const unconstrained = "gpu model, memory or link is constrained but neither nvidia.com/gpu nor a MIG profile is requested"
	for name, c := range map[string]struct {
		request resource.Request
		want    string
	}{
		"nothing asked":               {resource.Request{}, "nothing is requested: name at least one of cpu, muster.io/cores, memory, hugepages-<size>, nvidia.com/gpu, nvidia.com/mig-<profile>"},
		"only a NUMA policy":          {resource.Request{NUMA: resource.NUMANone}, "nothing is requested: name at least one of cpu, muster.io/cores, memory, hugepages-<size>, nvidia.com/gpu, nvidia.com/mig-<profile>"},
		"negative CPU":                {resource.Request{CPU: -1}, "cpu: -1 millicores is outside 0..4294967296"},
		"too much CPU":                {resource.Request{CPU: resource.MaxCPU + 1}, "cpu: 4294967297 millicores is outside 0..4294967296"},
		"negative memory":             {resource.Request{Memory: -1}, "memory: -1 bytes is outside 0..1125899906842624"},
		"too much memory":             {resource.Request{Memory: resource.MaxMemory + 1}, "memory: 1125899906842625 bytes is outside 0..1125899906842624"},
		"negative GPUs":               {resource.Request{GPUs: -1}, "nvidia.com/gpu: -1 devices is outside 0..1024"},
		"too many GPUs":               {resource.Request{GPUs: 1025}, "nvidia.com/gpu: 1025 devices is outside 0..1024"},
		"a negative share":            {resource.Request{GPUShare: -1}, "nvidia.com/gpu: a share of -1 milli is outside 0..999"},
		"a share of a whole GPU":      {resource.Request{GPUShare: 1000}, "nvidia.com/gpu: a share of 1000 milli is outside 0..999"},
		"GPUs and a share":            {resource.Request{GPUs: 2, GPUShare: 500}, "nvidia.com/gpu: 2 whole devices and a share of 500 milli exclude each other"},
		"negative memory per GPU":     {resource.Request{GPUs: 1, GPUMemory: -1}, "gpuMemory: -1 bytes is outside 0..1125899906842624"},
		"too much memory per GPU":     {resource.Request{GPUs: 1, GPUMemory: resource.MaxMemory + 1}, "gpuMemory: 1125899906842625 bytes is outside 0..1125899906842624"},
		"an unknown NUMA policy":      {resource.Request{CPU: 1, NUMA: 4}, "numa policy 4 is unknown"},
		"an unknown link requirement": {resource.Request{GPUs: 1, Link: 3}, "gpu link requirement 3 is unknown"},
		"a model without GPUs":        {resource.Request{CPU: 1, GPUModel: "A"}, unconstrained},
		"GPU memory without GPUs":     {resource.Request{CPU: 1, GPUMemory: 1}, unconstrained},
		"a link without GPUs":         {resource.Request{CPU: 1, Link: resource.LinkSwitch}, unconstrained},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.request.Validate(); message(err) != c.want {
				t.Errorf("%+v: %v, want %s", c.request, err, c.want)
			}
		})
	}
}

func TestRequestVectorLeavesZerosOut(t *testing.T) {
	for name, c := range map[string]struct {
		request resource.Request
		want    resource.Vector
	}{
		"nothing":          {resource.Request{}, resource.Vector{}},
		"everything":       {resource.Request{CPU: 1500, Memory: 1 << 30, GPUs: 2}, resource.Vector{resource.CPU: 1500, resource.Memory: 1 << 30, resource.GPU: 2000}},
		"a share of a GPU": {resource.Request{GPUShare: 250}, resource.Vector{resource.GPU: 250}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.request.Vector()); diff != "" {
				t.Errorf("vector (-want +got):\n%s", diff)
			}
			if got := int64(c.request.GPUMilli()); got != c.want[resource.GPU] {
				t.Errorf("GPUMilli is %d, want %d", got, c.want[resource.GPU])
			}
		})
	}
}

func TestNUMAPolicyNames(t *testing.T) {
	for policy, name := range map[resource.NUMAPolicy]string{
		resource.NUMABestEffort: "best-effort", resource.NUMANone: "none",
		resource.NUMARestricted: "restricted", resource.NUMASingleNode: "single-numa-node",
	} {
		got, err := resource.ParseNUMAPolicy(name)
		if err != nil || got != policy || policy.String() != name {
			t.Errorf("%q reads as %s, %v; %d prints as %s", name, got, err, uint8(policy), policy)
		}
	}
	if got, err := resource.ParseNUMAPolicy(""); err != nil || got != resource.NUMABestEffort {
		t.Errorf("no name reads as %s, %v; want best-effort", got, err)
	}
	for _, name := range []string{"Restricted", "single", " none", "NUMAPolicy(4)"} {
		want := `NUMA policy "` + name + `": want none, best-effort, restricted or single-numa-node`
		if _, err := resource.ParseNUMAPolicy(name); message(err) != want {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
	if got := resource.NUMAPolicy(4).String(); got != "NUMAPolicy(4)" {
		t.Errorf("an unknown policy prints as %s", got)
	}
}

func TestLinkRequirementNames(t *testing.T) {
	for link, name := range map[resource.LinkRequirement]string{
		resource.LinkAny: "any", resource.LinkSwitch: "pcie-switch", resource.LinkNVLink: "nvlink",
	} {
		got, err := resource.ParseLinkRequirement(name)
		if err != nil || got != link || link.String() != name {
			t.Errorf("%q reads as %s, %v; %d prints as %s", name, got, err, uint8(link), link)
		}
	}
	if got, err := resource.ParseLinkRequirement(""); err != nil || got != resource.LinkAny {
		t.Errorf("no name reads as %s, %v; want any", got, err)
	}
	for _, name := range []string{"NVLink", "PIX", "LinkRequirement(3)"} {
		want := `GPU link "` + name + `": want any, pcie-switch or nvlink`
		if _, err := resource.ParseLinkRequirement(name); message(err) != want {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
	if got := resource.LinkRequirement(3).String(); got != "LinkRequirement(3)" {
		t.Errorf("an unknown requirement prints as %s", got)
	}
}
