package resource_test

import (
	"math"
	"testing"

	"github.com/musterd/muster/resource"
)

func TestAmountsAreMeasuredInUnitsOfPeople(t *testing.T) {
	for name, c := range map[resource.Name]struct {
		amount int64
		want   float64
		unit   string
	}{
		resource.CPU:             {1500, 1.5, "core"},
		resource.Cores:           {3, 3, "core"},
		resource.Memory:          {1 << 30, 1 << 30, "byte"},
		"hugepages-2Mi":          {1 << 21, 1 << 21, "byte"},
		resource.GPU:             {2500, 2.5, "device"},
		"nvidia.com/mig-1g.10gb": {7, 7, "instance"},
		"pods":                   {4, 4, "one"},
		"hugepages-1Gi":          {resource.Unlimited, math.Inf(1), "byte"},
	} {
		if got := name.Measure(c.amount); got != c.want || name.Unit() != c.unit {
			t.Errorf("%s: %v %s, want %v %s", name, got, name.Unit(), c.want, c.unit)
		}
	}
}
