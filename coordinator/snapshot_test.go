package coordinator_test

import (
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/cmd/muster/alone"
	"github.com/musterd/muster/coordinator/capture"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/test/canary"
	"github.com/musterd/muster/test/rig"
)

// TestASnapshotOfAClusterGoesOn: the snapshot of a cluster with a real coordinator and
// agents is read by a replay, which places the next work on the devices that the cluster
// chooses.
func TestASnapshotOfAClusterGoesOn(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := laboratory(t, c, 3, "queue")
		allocate(t, k, rig.Submission{Namespace: "a", Name: "first", GPUs: 5})
		got, err := k.TakeSnapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		canary.Judge(t, "the snapshot", got.Document)
		d, err := capture.Decode([]byte(got.Document))
		if err != nil {
			t.Fatal(err)
		}
		if got.Nodes != 3 || got.Units != 1 || got.Undecided != 0 || len(d.Nodes) != 3 {
			t.Errorf("%d nodes, %d units, %d undecided", got.Nodes, got.Units, got.Undecided)
		}
		var lines []string
		replay, err := alone.Restore(d, alone.Options{Decided: func(line string) { lines = append(lines, line) }})
		if err != nil {
			t.Fatal(err)
		}
		live := allocate(t, k, rig.Submission{Namespace: "a", Name: "next", GPUs: 2})
		document := []byte(`{"metadata": {"name": "next"}, "spec": {"resources": {"requests": {"nvidia.com/gpu": "2", "cpu": "2", "memory": "2Gi"}}}}`)
		doc, status := api.DecodeAllocation(document)
		if status != nil {
			t.Fatal(status)
		}
		if _, status := replay.Ask(lead.CreateAllocation{Submitted: lead.Submitted{Namespace: "a", Document: document}, Document: doc}); status != nil {
			t.Fatal(status)
		}
		if len(lines) != 1 {
			t.Fatalf("the replay decided %v", lines)
		}
		for _, g := range live.Status.Assignment.GPUs {
			if !strings.Contains(lines[0], g.UUID) {
				t.Errorf("the cluster gives device %s, the replay decides %s", g.UUID, lines[0])
			}
		}
	})
}
