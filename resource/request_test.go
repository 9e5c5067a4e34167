package resource_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

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
		"whole cores alone":          {Cores: 1},
		"huge pages alone":           {Hugepages: 2 << 20, HugepageSize: 2 << 20},
		"the largest huge page":      {Hugepages: 16 << 30, HugepageSize: resource.MaxHugepageSize},
		"the smallest huge pages":    {Hugepages: 3 << 10, HugepageSize: 1 << 10},
		"huge pages and ordinary":    {Memory: 1 << 30, Hugepages: 1 << 30, HugepageSize: 1 << 30},
		"MIG instances alone":        {MIG: 2, MIGProfile: "1g.10gb"},
		"MIG instances of a model":   {MIG: 1, MIGProfile: "1c.3g.40gb+me", GPUModel: "NVIDIA A100-SXM4-80GB", GPUMemory: 40 << 30},
		"the most of what is exclusive": {
			Cores: resource.MaxCores, Hugepages: resource.MaxMemory, HugepageSize: 1 << 30, MIG: resource.MaxMIG, MIGProfile: "7g.80gb", NUMA: resource.NUMASingleNode,
		},
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
		"negative cores":              {resource.Request{Cores: -1}, "muster.io/cores: -1 cores is outside 0..1048576"},
		"too many cores":              {resource.Request{Cores: resource.MaxCores + 1}, "muster.io/cores: 1048577 cores is outside 0..1048576"},
		"cores and parts of CPUs":     {resource.Request{Cores: 2, CPU: 1500}, "muster.io/cores: 2 whole cores and 1500 millicores of cpu exclude each other"},
		"negative huge pages":         {resource.Request{Hugepages: -1, HugepageSize: 2 << 20}, "hugepages: -1 bytes is outside 0..1125899906842624"},
		"too many huge pages":         {resource.Request{Hugepages: resource.MaxMemory + 1, HugepageSize: 2 << 20}, "hugepages: 1125899906842625 bytes is outside 0..1125899906842624"},
		"huge pages of no size":       {resource.Request{Hugepages: 2 << 20}, "hugepages: 2097152 bytes in pages of 0 bytes: want both or none"},
		"a page size without pages":   {resource.Request{CPU: 1, HugepageSize: 2 << 20}, "hugepages: 0 bytes in pages of 2097152 bytes: want both or none"},
		"half a huge page":            {resource.Request{Hugepages: 3 << 20, HugepageSize: 2 << 20}, "hugepages-2Mi: 3145728 bytes is not a whole number of pages of 2097152 bytes"},
		"a negative page size":        {resource.Request{Hugepages: 1, HugepageSize: -1 << 20}, "hugepages: a page of -1048576 bytes: want a power of two from 1024 to 17179869184"},
		"a page of a few bytes":       {resource.Request{Hugepages: 512, HugepageSize: 512}, "hugepages: a page of 512 bytes: want a power of two from 1024 to 17179869184"},
		"a page of no power of two":   {resource.Request{Hugepages: 6 << 10, HugepageSize: 3 << 10}, "hugepages: a page of 3072 bytes: want a power of two from 1024 to 17179869184"},
		"a page that no CPU has":      {resource.Request{Hugepages: 32 << 30, HugepageSize: 32 << 30}, "hugepages: a page of 34359738368 bytes: want a power of two from 1024 to 17179869184"},
		"negative MIG instances":      {resource.Request{MIG: -1, MIGProfile: "1g.10gb"}, "nvidia.com/mig-1g.10gb: -1 instances is outside 0..1024"},
		"too many MIG instances":      {resource.Request{MIG: 1025, MIGProfile: "1g.10gb+me"}, "nvidia.com/mig-1g.10gb.me: 1025 instances is outside 0..1024"},
		"MIG without a profile":       {resource.Request{MIG: 2}, `mig: 2 instances of profile "": want both or none`},
		"a profile without MIG":       {resource.Request{CPU: 1, MIGProfile: "1g.10gb"}, `mig: 0 instances of profile "1g.10gb": want both or none`},
		"a profile that is none":      {resource.Request{MIG: 1, MIGProfile: "large"}, `MIG profile "large": want one as in 1g.10gb, 3g.40gb or 1g.10gb+me`},
		"a profile as a name has it":  {resource.Request{MIG: 1, MIGProfile: "1g.10gb.me"}, `MIG profile "1g.10gb.me": want one as in 1g.10gb, 3g.40gb or 1g.10gb+me`},
		"MIG and whole GPUs":          {resource.Request{MIG: 1, MIGProfile: "1g.10gb", GPUs: 2}, "nvidia.com/mig-1g.10gb: 1 MIG instances and 2000 milli of nvidia.com/gpu exclude each other"},
		"MIG and a share of a GPU":    {resource.Request{MIG: 1, MIGProfile: "1g.10gb", GPUShare: 250}, "nvidia.com/mig-1g.10gb: 1 MIG instances and 250 milli of nvidia.com/gpu exclude each other"},
		"MIG instances with a link":   {resource.Request{MIG: 2, MIGProfile: "1g.10gb", Link: resource.LinkNVLink}, "gpu link nvlink: MIG instances have no links to each other, want any"},
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
		"a whole core is charged as one CPU too": {
			resource.Request{Cores: 8}, resource.Vector{resource.Cores: 8, resource.CPU: 8000},
		},
		"huge pages are no ordinary memory": {
			resource.Request{Memory: 1 << 30, Hugepages: 4 << 20, HugepageSize: 2 << 20}, resource.Vector{resource.Memory: 1 << 30, "hugepages-2Mi": 4 << 20},
		},
		"MIG instances are no GPUs": {
			resource.Request{MIG: 3, MIGProfile: "1g.10gb+me"}, resource.Vector{"nvidia.com/mig-1g.10gb.me": 3},
		},
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

// drawRequest is any request within the rules.
func drawRequest(t *rapid.T) resource.Request {
	var r resource.Request
	choose := func(name string, kinds ...func()) { rapid.SampledFrom(append(kinds, func() {})).Draw(t, name)() }
	between := func(name string, least, most int64) int64 { return rapid.Int64Range(least, most).Draw(t, name) }
	choose("processors",
		func() { r.CPU = resource.Millicores(between("cpu", 1, int64(resource.MaxCPU))) },
		func() { r.Cores = int(between("cores", 1, resource.MaxCores)) })
	choose("memory", func() { r.Memory = resource.Bytes(between("bytes", 1, int64(resource.MaxMemory))) })
	choose("huge pages", func() {
		r.HugepageSize = 1024 << between("page", 0, 24)
		r.Hugepages = r.HugepageSize * resource.Bytes(between("pages", 1, int64(resource.MaxMemory/r.HugepageSize)))
	})
	choose("devices",
		func() { r.GPUs = int(between("gpus", 1, resource.MaxGPUs)) },
		func() { r.GPUShare = resource.Milli(between("share", 1, 999)) },
		func() {
			r.MIG = int(between("instances", 1, resource.MaxMIG))
			r.MIGProfile = rapid.StringMatching(`([1-9]c\.)?[1-9]g\.[0-9]{1,3}gb([+-][a-z]{1,4}(\.[a-z]{1,4})?)?`).Draw(t, "profile")
		})
	if r == (resource.Request{}) {
		r.CPU = 1
	}
	r.NUMA = resource.NUMAPolicy(between("numa", 0, 3))
	return r
}

func TestARequestIsChargedUnderNamesThatReadAsItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		if err := r.Validate(); err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		v := r.Vector()
		read := resource.Request{Cores: int(v[resource.Cores]), Memory: resource.Bytes(v[resource.Memory]), NUMA: r.NUMA}
		read.CPU = resource.Millicores(v[resource.CPU] - 1000*v[resource.Cores])
		read.GPUs, read.GPUShare = int(v[resource.GPU]/1000), resource.Milli(v[resource.GPU]%1000)
		for _, name := range v.Names() {
			if v[name] <= 0 {
				t.Fatalf("%+v is charged %d of %s", r, v[name], name)
			}
			if size, ok, err := name.HugepageSize(); ok {
				if err != nil {
					t.Fatalf("%+v is charged under %v", r, err)
				}
				read.Hugepages, read.HugepageSize = resource.Bytes(v[name]), size
			}
			if profile, ok, err := name.MIGProfile(); ok {
				if err != nil {
					t.Fatalf("%+v is charged under %v", r, err)
				}
				read.MIG, read.MIGProfile = int(v[name]), profile
			}
		}
		if read != r {
			t.Fatalf("%+v is charged %v, which is %+v", r, v, read)
		}
	})
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
