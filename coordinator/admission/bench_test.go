package admission_test

import (
	"fmt"
	"testing"

	"github.com/musterd/muster/coordinator/admission"
)

func BenchmarkLabels(b *testing.B) {
	agent, operator := map[string]string{}, map[string]string{}
	for i := range 8 {
		agent[fmt.Sprintf("k%d", i)] = "a"
		operator[fmt.Sprintf("k%d", 2*i)] = "b"
	}
	r := admission.Registered{Node: "n1", Devices: 8, Product: "NVIDIA A100-SXM4-80GB", Memory: 80 << 30}
	b.ReportAllocs()
	for b.Loop() {
		admission.Labels(r, agent, operator)
	}
}

func ExampleUnapproved() {
	g := admission.Unapproved(capacity(64, 64, 8, nil), capacity(2, 64, 0, nil))
	fmt.Println(g.Reason + ": " + g.Message)
	// Output: CapacityGrew: cpu 2 → 64, nvidia.com/gpu 0 → 8
}

func ExampleLabels() {
	labels := admission.Labels(admission.Registered{Node: "n3"},
		map[string]string{"kubernetes.io/hostname": "n1", "zone": "a"}, map[string]string{"zone": "b"})
	fmt.Println(labels["kubernetes.io/hostname"], labels["zone"])
	// Output: n3 b
}
