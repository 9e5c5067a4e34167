package integration

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// gpuUUID is how NVML writes a device's identity: "GPU-" and 36 characters.
var gpuUUID = regexp.MustCompile(`^GPU-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// checkSnapshot checks what must hold in every list of allocations:
//   - no device is granted beyond the whole of it, and one that is granted
//     whole is granted once, as a MIG instance is;
//   - the members of a gang are all in the same phase, and all there.
func checkSnapshot(list []api.Allocation) error {
	type device struct {
		milli resource.Milli
		owner string
	}
	devices := map[string]device{}
	type members struct {
		phases map[api.Phase]int
		count  int
		want   int
	}
	gangs := map[string]*members{}
	for i := range list {
		a := &list[i]
		name := a.Metadata.Namespace + "/" + a.Metadata.Name
		if g := a.Spec.Gang(); a.Status.Job != "" && g != nil {
			job := a.Metadata.Namespace + "/" + a.Status.Job
			if gangs[job] == nil {
				gangs[job] = &members{phases: map[api.Phase]int{}, want: int(*g.MinMembers)}
			}
			gangs[job].phases[a.Status.Phase]++
			gangs[job].count++
		}
		if a.Status.Phase != api.Running {
			continue
		}
		if a.Status.NodeName != string(a.Status.NodeID) { // agents of one host share its name, not theirs
			return fmt.Errorf("%s is on node %q, which nodes call %q", a.Metadata.Name, a.Status.NodeName, a.Status.NodeID)
		}
		if a.Status.Assignment == nil || a.Status.NodeID == "" {
			return fmt.Errorf("%s is Running without an assignment", name)
		}
		for _, g := range a.Status.Assignment.GPUs {
			d := devices[g.UUID]
			if d.milli+g.Milli > resource.WholeDevice {
				return fmt.Errorf("device %s of %s is granted %d milli to %s and %d to others (%s)", g.UUID, a.Status.NodeID, g.Milli, name, d.milli, d.owner)
			}
			devices[g.UUID] = device{d.milli + g.Milli, name}
		}
		for _, g := range a.Status.Assignment.MIG {
			if other := devices[g.UUID].owner; other != "" {
				return fmt.Errorf("MIG instance %s of %s is granted to %s and to %s", g.UUID, a.Status.NodeID, name, other)
			}
			devices[g.UUID] = device{resource.WholeDevice, name}
		}
	}
	for _, job := range sorted(gangs) {
		if g := gangs[job]; len(g.phases) != 1 || g.count != g.want {
			return fmt.Errorf("gang %s of %d has %d members in phases %v", job, g.want, g.count, g.phases)
		}
	}
	return nil
}

// distinctGPUs returns how many devices the running members hold whole, and
// on how many nodes. It fails the test if an identity is malformed.
func distinctGPUs(t *testing.T, list []api.Allocation) (devices, nodes int) {
	t.Helper()
	if err := checkSnapshot(list); err != nil {
		t.Fatal(err)
	}
	uuids, hosts := map[string]bool{}, map[resource.NodeID]bool{}
	for _, a := range list {
		if a.Status.Phase != api.Running {
			continue
		}
		hosts[a.Status.NodeID] = true
		for _, g := range a.Status.Assignment.GPUs {
			if !gpuUUID.MatchString(g.UUID) {
				t.Errorf("%s holds a device named %q, want GPU- and 36 characters", a.Metadata.Name, g.UUID)
			}
			uuids[g.UUID] = true
		}
	}
	return len(uuids), len(hosts)
}
