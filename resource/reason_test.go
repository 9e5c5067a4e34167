package resource_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/musterd/muster/resource"
)

func TestReasonPrintsItsNumbersAsPeopleWriteThem(t *testing.T) {
	for name, c := range map[string]struct {
		reason resource.Reason
		want   string
	}{
		"a code alone":           {resource.Reason{Code: resource.ReasonCordoned}, "Cordoned"},
		"a code and its detail":  {resource.Reason{Code: resource.ReasonTaint, Detail: "maintenance is not tolerated"}, "Taint: maintenance is not tolerated"},
		"GPUs":                   {resource.Reason{Code: resource.ReasonInsufficient, Resource: resource.GPU, Want: 8000, Have: 3000}, "Insufficient nvidia.com/gpu: want 8, have 3"},
		"memory and a detail":    {resource.Reason{Code: resource.ReasonNUMA, Resource: resource.Memory, Want: 64 << 30, Have: 32 << 30, Detail: "node 0"}, "NUMAAlignment memory: want 64Gi, have 32Gi: node 0"},
		"parts of CPUs":          {resource.Reason{Code: resource.ReasonQuota, Resource: resource.CPU, Want: 1500, Have: 0}, "Quota cpu: want 1500m, have 0"},
		"no amount is left out":  {resource.Reason{Code: resource.ReasonQuota, Want: 5, Have: 1}, "Quota"},
		"more used than allowed": {resource.Reason{Code: resource.ReasonQuota, Resource: resource.GPU, Want: 1000, Have: -2000}, "Quota nvidia.com/gpu: want 1, have -2"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.reason.String(); got != c.want {
				t.Errorf("prints %q, want %q", got, c.want)
			}
		})
	}
}

func TestReasonShortIsNeverNegative(t *testing.T) {
	for name, c := range map[string]struct{ want, have, short int64 }{
		"less than wanted":                 {8000, 3000, 5000},
		"exactly as wanted":                {8000, 8000, 0},
		"more than wanted":                 {1000, 8000, 0},
		"a debt adds to what is missing":   {1000, -2000, 3000},
		"the greatest amount over a debt":  {math.MaxInt64, -1, math.MaxInt64},
		"a debt over the greatest amount":  {math.MinInt64, math.MaxInt64, 0},
		"nothing wanted of the least debt": {0, math.MinInt64, math.MaxInt64},
	} {
		if got := (resource.Reason{Want: c.want, Have: c.have}).Short(); got != c.short {
			t.Errorf("%s: short of %d, want %d", name, got, c.short)
		}
	}
}

func ExampleReason() {
	r := resource.Reason{
		Code: resource.ReasonInsufficient, Resource: resource.GPU, Want: 8000, Have: 3000, Detail: "2 more are tainted",
	}
	fmt.Println(r)
	fmt.Println("short of", resource.FormatAmount(r.Resource, r.Short()))
	// Output:
	// Insufficient nvidia.com/gpu: want 8, have 3: 2 more are tainted
	// short of 5
}

func ExampleParseAmount() {
	for _, c := range []struct {
		name resource.Name
		text string
	}{{resource.CPU, "1.5"}, {resource.Memory, "32Gi"}, {resource.GPU, "2"}, {resource.Memory, "32GB"}} {
		amount, err := resource.ParseAmount(c.name, c.text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(amount, "is", resource.FormatAmount(c.name, amount))
	}
	// Output:
	// 1500 is 1500m
	// 34359738368 is 32Gi
	// 2000 is 2
	// memory: quantity "32GB": unknown suffix "GB" (want m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei)
}
