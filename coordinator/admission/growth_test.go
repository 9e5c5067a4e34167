package admission_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/admission"
	"github.com/musterd/muster/resource"
)

func capacity(cpus, memoryGi, gpus int64, models map[string]int) admission.Capacity {
	v := resource.Vector{resource.CPU: cpus * 1000, resource.Memory: memoryGi << 30}
	if gpus > 0 {
		v[resource.GPU] = gpus * 1000
	}
	return admission.Capacity{Amounts: v, Models: models}
}

func TestGrowth(t *testing.T) {
	mig := func(c admission.Capacity, n int64) admission.Capacity {
		c.Amounts[resource.MIG("1g.10gb")] = n
		return c
	}
	many := admission.Capacity{Amounts: resource.Vector{}}
	for i := range 20 {
		many.Amounts[resource.Name(fmt.Sprintf("nvidia.com/mig-%02dg.1gb", i))] = 1
	}
	for name, c := range map[string]struct {
		registered, approved admission.Capacity
		want, wantExact      admission.Growth // wantExact is of the same two without a tolerance
	}{
		"the same": {registered: capacity(2, 64, 0, nil), approved: capacity(2, 64, 0, nil)},
		"less":     {registered: capacity(2, 64, 1, map[string]int{"A": 1}), approved: capacity(4, 128, 8, map[string]int{"A": 8})},
		"the hostile host of S9": {
			registered: capacity(64, 64, 8, map[string]int{"H100": 8}), approved: capacity(2, 64, 0, nil),
			want:      admission.Growth{Reason: "CapacityGrew", Message: "cpu 2 → 64, nvidia.com/gpu 0 → 8"},
			wantExact: admission.Growth{Reason: "CapacityGrew", Message: "cpu 2 → 64, nvidia.com/gpu 0 → 8"},
		},
		"one gibibyte of a hundred": {
			registered: capacity(2, 101, 0, nil), approved: capacity(2, 100, 0, nil),
			wantExact: admission.Growth{Reason: "CapacityGrew", Message: "memory 100Gi → 101Gi"},
		},
		"three gibibytes of a hundred": {
			registered: capacity(2, 103, 0, nil), approved: capacity(2, 100, 0, nil),
			want:      admission.Growth{Reason: "CapacityGrew", Message: "memory 100Gi → 103Gi"},
			wantExact: admission.Growth{Reason: "CapacityGrew", Message: "memory 100Gi → 103Gi"},
		},
		"another model": {
			registered: capacity(2, 64, 2, map[string]int{"A100": 1, "T4": 1}), approved: capacity(2, 64, 2, map[string]int{"A100": 2}),
			want:      admission.Growth{Reason: "ModelsChanged", Message: `model "T4" 0 → 1`},
			wantExact: admission.Growth{Reason: "ModelsChanged", Message: `model "T4" 0 → 1`},
		},
		"more devices of a model that are partitioned": {
			registered: capacity(2, 64, 0, map[string]int{"A100": 2}), approved: capacity(2, 64, 1, map[string]int{"A100": 1}),
			want:      admission.Growth{Reason: "ModelsChanged", Message: `model "A100" 1 → 2`},
			wantExact: admission.Growth{Reason: "ModelsChanged", Message: `model "A100" 1 → 2`},
		},
		"models of an older version's registration are not known": {
			registered: capacity(2, 64, 2, map[string]int{"A100": 2}), approved: capacity(2, 64, 2, nil),
		},
		"more instances": {
			registered: mig(capacity(2, 64, 0, nil), 7), approved: capacity(2, 64, 1, nil),
			want:      admission.Growth{Reason: "CapacityGrew", Message: "nvidia.com/mig-1g.10gb 0 → 7"},
			wantExact: admission.Growth{Reason: "CapacityGrew", Message: "nvidia.com/mig-1g.10gb 0 → 7"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, admission.Unapproved(c.registered, c.approved)); diff != "" {
				t.Errorf("unapproved (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.wantExact, admission.Unregistered(c.registered, c.approved)); diff != "" {
				t.Errorf("unregistered (-want +got):\n%s", diff)
			}
		})
	}
	g := admission.Unapproved(many, admission.Capacity{})
	if want := ", and 12 more"; len(g.Message) > 1000 || g.Message[len(g.Message)-len(want):] != want {
		t.Errorf("20 differences: %s", g.Message)
	}
}

// Growth is zero exactly where no amount and no model exceeds its bound.
func TestGrowthIsZeroWhereNothingGrew(t *testing.T) {
	draw := func(t *rapid.T, label string) admission.Capacity {
		n := rapid.Int64Range(0, 3)
		return capacity(n.Draw(t, label+" cpu"), n.Draw(t, label+" memory"), n.Draw(t, label+" gpu"),
			rapid.MapOfN(rapid.SampledFrom([]string{"A", "B"}), rapid.IntRange(1, 2), 0, 2).Draw(t, label+" models"))
	}
	rapid.Check(t, func(t *rapid.T) {
		has, bound := draw(t, "has"), draw(t, "bound")
		grew := false
		for name, amount := range has.Amounts {
			grew = grew || amount > bound.Amounts[name]
		}
		for model, n := range has.Models {
			grew = grew || len(bound.Models) > 0 && n > bound.Models[model]
		}
		if g := admission.Unregistered(has, bound); g.IsZero() == grew {
			t.Errorf("%+v beyond %+v: %+v", has, bound, g)
		}
	})
}
