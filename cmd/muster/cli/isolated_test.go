package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
)

// An operator sees from the commands alone that a node is isolated, why, and how
// it is let back.
func TestAnIsolatedNodeIsShownWithTheWayBack(t *testing.T) {
	node := &api.Node{
		Metadata: api.ObjectMeta{Name: "gpu-01"},
		Spec:     api.NodeSpec{Unschedulable: true},
		Status: api.NodeStatus{Phase: "ProtocolViolation", Conditions: []api.Condition{
			{Type: "Ready", Status: "False", Reason: "ProtocolViolation", Message: "its agent broke the protocol (WrongVote); `muster uncordon gpu-01` lets it back"},
			{Type: "ProtocolViolation", Status: "True", Reason: "WrongVote", Message: "it votes for 2 GPUs, asked for 1", LastTransitionTime: "2026-03-01T11:55:00Z"},
		}},
	}
	if got, want := nodeRow(node, time.Time{})[1], "ProtocolViolation,SchedulingDisabled"; got != want {
		t.Errorf("get nodes shows the phase %q, want %q", got, want)
	}
	var out bytes.Buffer
	a := &app{Program: Program{Stdout: &out}}
	a.describeNode(node, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	for _, want := range []string{"ProtocolViolation,SchedulingDisabled", "5m", "WrongVote", "it votes for 2 GPUs, asked for 1", "muster uncordon gpu-01"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("describe node does not show %q:\n%s", want, out.String())
		}
	}
	if help := a.cordonCommand(false).Long; !strings.Contains(help, "isolation") || !strings.Contains(help, "ProtocolViolation") {
		t.Errorf("the help of uncordon does not mention isolated nodes: %q", help)
	}
}
