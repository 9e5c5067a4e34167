package coordinator_test

import (
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

// created is a node as an operator creates it.
func created(name string, gpus string) *api.Node {
	n := &api.Node{Metadata: api.ObjectMeta{Name: name, Labels: map[string]string{"rack": "r12"}}}
	n.Spec.Capacity = map[resource.Name]string{resource.GPU: gpus, "pods": "110"}
	n.Spec.Taints = []api.Taint{{Key: "team", Value: "vision", Effect: "NoSchedule"}}
	return n
}

func TestANodeIsCreatedBeforeItsAgentRegisters(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.StartCoordinator("c1")
		c.Leader()
		follower := c.StartCoordinator("c2")
		c.StartAgent("n1")
		c.AwaitReady(1)
		n, err := k.CreateNode(t.Context(), created("n2", "16"))
		if err != nil || n.Status.Phase != "Unregistered" || n.Status.LeaseID != "" || n.Status.Capacity != nil {
			t.Fatalf("%v, %+v", err, n)
		}
		_, err = k.CreateNode(t.Context(), created("n2", "16"))
		refused(t, err, 409, "exists")
		_, err = follower.CreateNode(t.Context(), created("n3", "8"))
		refused(t, err, 503, "does not lead") // its REST API passes it on
		_, err = k.PatchNodeStatus(t.Context(), "n2", limit("6"))
		refused(t, err, 409, "not registered")
		c.Eventually("the follower shows the creation", func() bool {
			n, err := follower.GetNode(t.Context(), "n2")
			return err == nil && n.Status.Phase == "Unregistered" && n.Spec.Capacity[resource.GPU] == "16"
		})
		k.Crash() // the creation survives leaders
		c.Eventually("the follower leads", func() bool { return c.Leader() == follower })
		c.StartAgent("n2")
		c.Eventually("n2 is ready", func() bool {
			n, err = follower.GetNode(t.Context(), "n2")
			return err == nil && n.Status.Phase == "Ready" && strings.HasPrefix(n.Status.LeaseID, "lease-")
		})
		if n.Metadata.Labels["rack"] != "r12" || len(n.Spec.Taints) != 1 || n.Spec.Capacity[resource.GPU] != "16" || n.Status.Capacity[resource.GPU] != "8" {
			t.Errorf("n2 is %+v", n)
		}
		if got := condition(n, "CapacityDiffers"); got.Status != "True" || !containsAll(got.Message, "expected 16, found 8") || strings.Contains(got.Message, "pods") {
			t.Errorf("condition %+v", got)
		}
		c.Agent("n2").Crash()
		c.Eventually("its lease is over", func() bool {
			n, err := follower.GetNode(t.Context(), "n2")
			return err == nil && n.Status.Phase == "NotReady" && n.Status.LeaseID == ""
		})
		if _, err := follower.DeleteNode(t.Context(), "n2", api.Preconditions{}); err != nil {
			t.Fatal(err)
		}
		if n, err = follower.CreateNode(t.Context(), created("n2", "8")); err != nil || n.Status.Phase != "Unregistered" {
			t.Errorf("created again: %v, %+v", err, n)
		}
		c.Agent("n2").Start()
		c.Converge()
	})
}

func TestANodeIsCreatedAfterItsAgentHasRegistered(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		c.Eventually("its lease is known", func() bool { return nodeOf(t, k, "n1").Status.LeaseID != "" })
		n, err := k.CreateNode(t.Context(), created("n1", "8"))
		if err != nil || n.Status.Phase != "Ready" || n.Status.LeaseID == "" || n.Metadata.Labels["rack"] != "r12" {
			t.Fatalf("%v, %+v", err, n)
		}
		if got := condition(n, "CapacityDiffers"); got.Type != "" {
			t.Errorf("the host is as expected: %+v", got)
		}
		_, err = k.CreateNode(t.Context(), created("n1", "8"))
		refused(t, err, 409, "exists")
		c.Converge()
	})
}

// limit is the patch that lowers the GPUs of a node.
func limit(gpus string) api.NodeStatusPatch {
	p, status := api.DecodeNodeStatusPatch("", []byte(`{"status": {"allocatable": {"nvidia.com/gpu": "`+gpus+`"}}}`))
	if status != nil {
		panic(status)
	}
	return p
}

func withheld(n *api.Node) (count int) {
	for _, d := range n.Status.Devices {
		if d.Withheld {
			count++
		}
	}
	return count
}

func TestALimitOfGPUsHoldsOverFailoverAndRegistrationAndTouchesNoGrant(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.StartCoordinator("c1")
		c.Leader()
		follower := c.StartCoordinator("c2")
		c.StartAgent("n1")
		c.AwaitReady(1)
		allocate(t, k, rig.Submission{Name: "seven", GPUs: 7, Wait: time.Minute})
		phase(t, c, "seven", api.Running)
		n, err := k.PatchNodeStatus(t.Context(), "n1", limit("6"))
		if err != nil || n.Status.Allocatable[resource.GPU] != "6" {
			t.Fatalf("%v, %+v", err, n.Status)
		}
		c.Eventually("two GPUs are written as withheld", func() bool {
			n, err := k.GetNode(t.Context(), "n1")
			return err == nil && withheld(n) == 2
		})
		allocate(t, k, rig.Submission{Name: "one", GPUs: 1, Wait: time.Minute})
		phase(t, c, "one", api.Pending)
		phase(t, c, "seven", api.Running)
		_, err = k.PatchNodeStatus(t.Context(), "n1", limit("9"))
		refused(t, err, 422, "9 is more than the 8")

		k.Crash()
		c.Eventually("the follower leads", func() bool { return c.Leader() == follower })
		c.Agent("n1").Reboot()
		c.Eventually("n1 is back", func() bool {
			n, err := follower.GetNode(t.Context(), "n1")
			return err == nil && n.Status.Phase == "Ready" && n.Status.Allocatable[resource.GPU] == "6"
		})
		phase(t, c, "seven", api.Running)
		phase(t, c, "one", api.Pending)
		if _, err := follower.DeleteAllocation(t.Context(), "default", "seven", api.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		phase(t, c, "one", api.Running) // of the six that are left
		allocate(t, follower, rig.Submission{Name: "six", GPUs: 6, Wait: time.Minute})
		phase(t, c, "six", api.Pending)
		if _, err = follower.PatchNodeStatus(t.Context(), "n1", limit("7")); err != nil {
			t.Fatal(err)
		}
		phase(t, c, "six", api.Running)
		n, err = follower.PatchNodeStatus(t.Context(), "n1", limit("8"))
		if err != nil || condition(n, "CapacityLowered").Type != "" {
			t.Errorf("%v, %+v", err, n.Status.Conditions)
		}
		c.Eventually("no GPU is written as withheld", func() bool {
			n, err := follower.GetNode(t.Context(), "n1")
			return err == nil && withheld(n) == 0
		})
		c.Converge()
	})
}

// lowered is the patch that lowers one amount of a node; "" ends the limit.
func lowered(name resource.Name, amount string) api.NodeStatusPatch {
	text := `"` + amount + `"`
	if amount == "" {
		text = "null"
	}
	p, status := api.DecodeNodeStatusPatch("", []byte(`{"status": {"allocatable": {"`+string(name)+`": `+text+`}}}`))
	if status != nil {
		panic(status)
	}
	return p
}

// Limits of CPUs and memory hold over a failover, touch no grant, and keep what waits
// waiting until they are raised.
func TestALimitOfCPUsAndMemoryHoldsOverAFailoverAndTouchesNoGrant(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.StartCoordinator("c1")
		c.Leader()
		follower := c.StartCoordinator("c2")
		c.StartAgent("n1")
		c.AwaitReady(1)
		allocate(t, k, rig.Submission{Name: "first", GPUs: 3, Wait: time.Minute})
		phase(t, c, "first", api.Running)
		n, err := k.PatchNodeStatus(t.Context(), "n1", lowered(resource.CPU, "5"))
		if err != nil || n.Status.Allocatable[resource.CPU] != "5" || n.Status.Available[resource.CPU] != "2" {
			t.Fatalf("%v, allocatable %v, available %v; want 5 and 2 CPUs", err, n.Status.Allocatable, n.Status.Available)
		}
		if got := condition(n, "CapacityLowered"); !strings.Contains(got.Message, "cpu") {
			t.Errorf("condition %+v, want one that names cpu", got)
		}
		allocate(t, k, rig.Submission{Name: "third", GPUs: 3, Wait: time.Second})
		phase(t, c, "third", api.Pending)
		allocate(t, k, rig.Submission{Name: "second", GPUs: 2, Wait: time.Minute})
		phase(t, c, "second", api.Running)
		if n, err = k.PatchNodeStatus(t.Context(), "n1", lowered(resource.CPU, "1")); err != nil || n.Status.Available[resource.CPU] != "" {
			t.Errorf("%v, available %v; want no CPU below what is granted", err, n.Status.Available)
		}
		phase(t, c, "first", api.Running)
		phase(t, c, "second", api.Running)

		k.Crash()
		c.Eventually("the follower leads", func() bool { return c.Leader() == follower })
		c.AwaitReady(1)
		phase(t, c, "third", api.Pending)
		_, err = follower.PatchNodeStatus(t.Context(), "n1", lowered(resource.CPU, "9999"))
		refused(t, err, 422, "9999 is more than the")
		if _, err = follower.PatchNodeStatus(t.Context(), "n1", lowered(resource.CPU, "8")); err != nil {
			t.Fatal(err)
		}
		phase(t, c, "third", api.Running) // it is tried again at once
		if n, err = follower.PatchNodeStatus(t.Context(), "n1", lowered(resource.CPU, "")); err != nil || condition(n, "CapacityLowered").Type != "" {
			t.Errorf("%v, %+v", err, n.Status.Conditions)
		}
		if n, err = follower.PatchNodeStatus(t.Context(), "n1", lowered(resource.Memory, "6Gi")); err != nil || n.Status.Allocatable[resource.Memory] != "6Gi" {
			t.Fatalf("%v, allocatable %v", err, n.Status.Allocatable)
		}
		if _, err := follower.DeleteAllocation(t.Context(), "default", "third", api.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		allocate(t, follower, rig.Submission{Name: "large", GPUs: 2, Wait: time.Second})
		phase(t, c, "large", api.Pending)
		if _, err = follower.PatchNodeStatus(t.Context(), "n1", lowered(resource.Memory, "7Gi")); err != nil {
			t.Fatal(err)
		}
		phase(t, c, "large", api.Running)
		if _, err = follower.PatchNodeStatus(t.Context(), "n1", lowered(resource.Memory, "")); err != nil {
			t.Fatal(err)
		}
		c.Converge() // leader and agent agree about all of the host
	})
}
