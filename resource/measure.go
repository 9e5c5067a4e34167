package resource

import (
	"math"
	"strings"
)

// Unit is the unit in which monitoring shows a resource: core, byte, device,
// instance, or one for a resource that is only counted.
func (n Name) Unit() string {
	switch {
	case n == CPU || n == Cores:
		return "core"
	case n == Memory || n == EphemeralStorage || strings.HasPrefix(string(n), hugepagesPrefix):
		return "byte"
	case n == GPU || IsGPUModel(n):
		return "device"
	case strings.HasPrefix(string(n), "nvidia.com/mig-"):
		return "instance"
	}
	return "one"
}

// Scale is the number of base units in one of Unit: 1000 for CPU and GPU, else 1.
func (n Name) Scale() int64 { return scaleOf(n) }

// Measure turns base units into those of Unit; Unlimited is infinite.
func (n Name) Measure(amount int64) float64 {
	if amount == Unlimited {
		return math.Inf(1)
	}
	return float64(amount) / float64(scaleOf(n))
}
