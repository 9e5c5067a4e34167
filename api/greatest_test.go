package api

import (
	"testing"

	"github.com/musterd/muster/resource"
)

func TestTheGreatestAmountIsTakenAndOneMoreRefused(t *testing.T) {
	for name, c := range map[resource.Name]struct{ greatest, more string }{
		resource.CPU:             {resource.FormatAmount(resource.CPU, int64(resource.MaxCPU)), resource.FormatAmount(resource.CPU, int64(resource.MaxCPU)+1)},
		resource.Cores:           {resource.FormatAmount(resource.Cores, resource.MaxCores), resource.FormatAmount(resource.Cores, resource.MaxCores+1)},
		resource.Memory:          {resource.FormatAmount(resource.Memory, int64(resource.MaxMemory)), resource.FormatAmount(resource.Memory, int64(resource.MaxMemory)+1)},
		resource.GPU:             {resource.FormatAmount(resource.GPU, resource.MaxGPUs*1000), resource.FormatAmount(resource.GPU, (resource.MaxGPUs+1)*1000)},
		"nvidia.com/mig-1g.10gb": {resource.FormatAmount("nvidia.com/mig-1g.10gb", resource.MaxMIG), resource.FormatAmount("nvidia.com/mig-1g.10gb", resource.MaxMIG+1)},
	} {
		t.Run(string(name), func(t *testing.T) {
			if _, status := amounts("requests", map[resource.Name]string{name: c.greatest}); status != nil {
				t.Errorf("%s: %v, want it taken", c.greatest, status)
			}
			if _, status := amounts("requests", map[resource.Name]string{name: c.more}); status == nil {
				t.Errorf("%s is taken, want a refusal", c.more)
			}
		})
	}
}
