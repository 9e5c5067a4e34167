package place

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// TestEachGPUIsOfOneModel: also one that moved in the inventory, one that the host has
// lost, and one of a host that is not known.
func TestEachGPUIsOfOneModel(t *testing.T) {
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		t.Fatal(err)
	}
	inventory := profile.Inventory("n1")
	inventory.Devices[1].Model = "B"
	host, err := fit.NewHostLike(nil, profile.Topology(), inventory, fit.Reserved{})
	if err != nil {
		t.Fatal(err)
	}
	known, gpus := &cluster.Node{ID: "n1", Host: host}, inventory.Devices
	plan := []Choice{
		{Node: known, Assignment: resource.Assignment{GPUs: []resource.GPUGrant{{Index: 0, UUID: gpus[0].UUID, Milli: 500}, {Index: 0, UUID: gpus[1].UUID, Milli: 1000}}}},
		{Node: known, Assignment: resource.Assignment{GPUs: []resource.GPUGrant{{Index: 99, UUID: "GPU-gone", Milli: 1000}}}},
		{Node: &cluster.Node{}, Assignment: resource.Assignment{GPUs: []resource.GPUGrant{{Index: 0, UUID: gpus[0].UUID, Milli: 1000}}}},
	}
	want := resource.Vector{"nvidia.com/gpu.a100": 1500, "nvidia.com/gpu.b": 1000, "nvidia.com/gpu.unknown": 1000}
	if diff := cmp.Diff(want, Models(plan)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !IsMixed(known) {
		t.Error("the host has two models")
	}
}
