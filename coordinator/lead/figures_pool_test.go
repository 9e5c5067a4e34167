package lead

import (
	"testing"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// The pool of a kubelet is neither free nor used: the node's allocatable amount is smaller.
func TestFiguresCountTheKubeletsPoolAsNotAllocatable(t *testing.T) {
	n, err := eightGPUs()
	if err != nil {
		t.Fatal(err)
	}
	n.setSpec(record.NodeSpec{Capacity: resource.Vector{resource.GPU: 8000}, Allocatable: resource.Vector{resource.GPU: 8000, resource.CPU: 4000}}, 1)
	n.pool(0, 1)
	n.hold("work", resource.WholeDevice, 7)
	for _, i := range []int{0, 7} { // a pod computes on one, Muster's work on the other
		n.said.Devices = append(n.said.Devices, record.DeviceUse{UUID: n.host.Inventory.Devices[i].UUID, Percent: 90})
	}
	models := map[string]GPUFigures{}
	f := n.figures(models)
	if got := f.Allocatable; got[resource.GPU] != 6000 || got[resource.CPU] != 4000 {
		t.Errorf("allocatable is %v, want 6 GPUs and all CPUs", got)
	}
	if f.Capacity[resource.GPU] != 8000 || f.Busy != 1 || f.Free.GPU != 5000 {
		t.Errorf("capacity %d, %d busy, %d free; want 8000, 1 and 5000", f.Capacity[resource.GPU], f.Busy, f.Free.GPU)
	}
	want := GPUFigures{Devices: 8, Free: 5000, Pooled: 2000}
	if f.GPUs != want || models[n.host.Inventory.Devices[0].Model] != want {
		t.Errorf("GPUs %+v, by model %+v, want %+v", f.GPUs, models, want)
	}
	n.pool()
	if f := n.figures(models); f.Allocatable[resource.GPU] != 8000 || f.GPUs.Pooled != 0 || f.Busy != 2 {
		t.Errorf("after the pool has gone the figures are %+v", f)
	}
}

// Of a device in MIG mode the instances count that are in the pool.
func TestThePooledPartOfADeviceInMIGMode(t *testing.T) {
	n := partitioned(t)
	d := n.host.Inventory.Devices[0]
	n.observed.setLocal(nil, &resource.Assignment{MIG: []resource.MIGGrant{{GPU: 0, Instance: 0, UUID: d.MIG.Instances[0].UUID, Profile: d.MIG.Instances[0].Profile}}})
	if got, want := n.pooledPart(0), resource.WholeDevice/resource.Milli(len(d.MIG.Instances)); got != want {
		t.Errorf("%d thousandths are pooled, want %d", got, want)
	}
	if n.isPooled(d.UUID) || n.isPooled(d.MIG.Instances[1].UUID) {
		t.Error("the device, or an instance that is not in the pool, counts as pooled")
	}
}
