package shown_test

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

func TestTwoAgentsWithOneIDAreNamed(t *testing.T) {
	a := record.Registrant{Hostname: "gpu-a", AgentAddr: "10.0.0.1:7947", Journal: "aaaaaaaabbbb"}
	b := record.Registrant{Hostname: "gpu-b", AgentAddr: "10.0.0.2:7947", Journal: "ccccccccdddd"}
	fresh := a
	fresh.Journal = "eeeeeeeeffff"
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const both = "two agents have this node's id and push each other out: host gpu-a at 10.0.0.1:7947 (journal aaaaaaaa) and host gpu-b at 10.0.0.2:7947 (journal cccccccc), 3 registrations within 1h0m0s; set another nodeID in the configuration of one of them and restart its agent"
	type registration struct {
		ago time.Duration
		by  record.Registrant
	}
	tests := map[string]struct {
		registrations []registration
		unnamed       int // of the first registrations, from before agents were kept
		want          string
	}{
		"an agent that crashes again and again": {[]registration{{5 * time.Minute, a}, {4 * time.Minute, a}, {3 * time.Minute, a}}, 0, ""},
		"a host that has moved":                 {[]registration{{5 * time.Minute, a}, {4 * time.Minute, b}, {3 * time.Minute, b}}, 0, ""},
		"a host with a new disk":                {[]registration{{5 * time.Minute, a}, {4 * time.Minute, fresh}}, 0, ""},
		"two agents in turn":                    {[]registration{{5 * time.Minute, a}, {4 * time.Minute, b}, {3 * time.Minute, a}}, 0, both},
		"two agents, of which one was stopped since": {
			[]registration{{40 * time.Minute, a}, {39 * time.Minute, b}, {38 * time.Minute, a}}, 0, both,
		},
		"two agents long ago":          {[]registration{{3 * time.Hour, a}, {2 * time.Hour, b}, {61 * time.Minute, a}}, 0, ""},
		"a host that moved and back":   {[]registration{{30 * time.Hour, a}, {20 * time.Hour, b}, {time.Minute, a}}, 0, ""},
		"registrations without agents": {[]registration{{5 * time.Minute, a}, {4 * time.Minute, b}, {3 * time.Minute, a}}, 1, ""},
		"none":                         {nil, 0, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := node()
			n.Now = now
			for i, r := range test.registrations {
				n.Spec.Registrations = append(n.Spec.Registrations, now.Add(-r.ago).Format(time.RFC3339))
				if i >= test.unnamed {
					n.Spec.RegisteredBy = append(n.Spec.RegisteredBy, r.by)
				}
			}
			if got := messageOf(n, "DuplicateAgent"); got != test.want {
				t.Errorf("DuplicateAgent is %q, want %q", got, test.want)
			}
		})
	}
}

func TestTwoNodesWithOneAddressNameEachOther(t *testing.T) {
	const at = "10.0.0.1:7947"
	spec := func(addr string, registered ...string) *record.NodeSpec {
		return &record.NodeSpec{AgentAddr: addr, Registrations: registered}
	}
	nodes := map[resource.NodeID]*record.NodeSpec{
		"old": spec(at, "2026-03-01T10:00:00Z"), "new": spec(at, "2026-03-01T09:00:00Z", "2026-03-01T11:00:00Z"),
		"far": spec("10.0.0.2:7947", "2026-03-01T11:00:00Z"), "none": spec(""), "nowhere": spec(""),
	}
	want := map[resource.NodeID]string{
		"old": "new (at 2026-03-01T11:00:00Z) registered with the agent address 10.0.0.1:7947 of this node, after it: the agent there does not answer for old any more; if the host was renamed: muster delete node old; else give each agent its own address (listen, advertise)",
		"new": "old registered with the agent address 10.0.0.1:7947 before this node; if the host was renamed: muster delete node old",
		"far": "", "none": "", "nowhere": "",
	}
	got := map[resource.NodeID]string{}
	for id, s := range nodes {
		n := node()
		n.ID, n.Spec = id, s
		for _, only := range []string{"", s.AgentAddr} {
			n.Beside = shown.AddressesOf(maps.All(nodes), only).Beside(id, s)
			if text := messageOf(n, "DuplicateAddress"); only != "" && text != got[id] {
				t.Errorf("%s: of one address %q, of all %q", id, text, got[id])
			} else {
				got[id] = text
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// messageOf is the message of a condition that is True, "" without it.
func messageOf(n shown.Node, kind string) string {
	var found api.Condition
	for _, c := range n.Show().Status.Conditions {
		if c.Type == kind && c.Status == "True" {
			found = c
		}
	}
	return found.Message
}
