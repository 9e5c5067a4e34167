package rpc_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/musterd/muster/coordinator/admission"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rpc"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire"
)

// hostOf is a host of a profile.
func hostOf(t *testing.T, profile string, labels map[string]string) grant.Host {
	t.Helper()
	p, err := fake.Lookup(profile)
	if err != nil {
		t.Fatal(err)
	}
	return grant.Host{Hostname: "host-1", Topology: p.Topology(), Inventory: p.Inventory("n1"), Labels: labels}
}

// registers registers node n1 with a host and returns the keys in the store
// then.
func registers(t *testing.T, server *rpc.Server, s *mem.Store, h grant.Host) record.NodeSpec {
	t.Helper()
	_, err := server.Register(t.Context(), &musterv1.RegisterRequest{Cluster: "c", NodeId: "n1", Incarnation: wire.ToIncarnation(first), Host: wire.ToHost(h)})
	if err != nil {
		t.Fatal(err)
	}
	spec, _ := get[record.NodeSpec](t, s, record.NodeSpecKey("n1"))
	return spec
}

func TestReservedLabelsOfAnAgentAreIgnoredWithOneWarning(t *testing.T) {
	server, s := open(t, mem.Options{})
	var log bytes.Buffer
	server.Logger = slog.New(slog.NewTextHandler(&log, nil))
	claims := map[string]string{"kubernetes.io/hostname": "n9", "nvidia.com/gpu.product": "H100", "muster.dev/x": "y", "zone": "a"}
	for range 2 {
		spec := registers(t, server, s, hostOf(t, "gpu2", claims))
		if diff := cmp.Diff(map[string]string{"zone": "a"}, spec.Labels); diff != "" {
			t.Errorf("labels (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"kubernetes.io/hostname", "muster.dev/x", "nvidia.com/gpu.product"}, spec.IgnoredLabels); diff != "" {
			t.Errorf("ignored (-want +got):\n%s", diff)
		}
	}
	if n := strings.Count(log.String(), "node_labels_ignored"); n != 1 {
		t.Errorf("%d warnings, want 1:\n%s", n, log.String())
	}
}

func TestAnOlderAgentWithItsLimitAsALabelRegisters(t *testing.T) {
	server, s := open(t, mem.Options{})
	_, err := server.Register(t.Context(), &musterv1.RegisterRequest{
		Cluster: "c", NodeId: "n1", Incarnation: wire.ToIncarnation(first), AssumeDeadAfterMillis: 300_000,
		Host: wire.ToHost(hostOf(t, "gpu2", map[string]string{"muster.dev/assume-dead-after": "5m0s"})),
	})
	if err != nil {
		t.Fatal(err)
	}
	if spec, _ := get[record.NodeSpec](t, s, record.NodeSpecKey("n1")); len(spec.IgnoredLabels) != 0 || len(spec.Labels) != 0 || spec.AssumeDeadMillis != 300_000 {
		t.Errorf("labels %v, ignored %v, limit %d", spec.Labels, spec.IgnoredLabels, spec.AssumeDeadMillis)
	}
}

func TestARegistrationKeepsTheOperatorsLayer(t *testing.T) {
	server, s := open(t, mem.Options{})
	spec := registers(t, server, s, hostOf(t, "gpu2", map[string]string{"zone": "a"}))
	spec.OperatorLabels, spec.Annotations = map[string]string{"zone": "b"}, map[string]string{"owner": "ml"}
	spec.Unschedulable, spec.Drain = true, &record.Drain{Began: "2026-01-02T03:04:05Z", Allocations: 2}
	put(t, s, record.Put(record.NodeSpecKey("n1"), record.MustEncode(spec)))
	after := registers(t, server, s, hostOf(t, "gpu2", map[string]string{"zone": "c"}))
	spec.Labels = map[string]string{"zone": "c"}
	if diff := cmp.Diff(spec, after, cmpopts.IgnoreFields(record.NodeSpec{}, "Registrations", "RegisteredBy")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func enrolled(token string, labels map[string]string) record.Op {
	return record.Put(record.EnrolledKey("n1"), record.MustEncode(record.Enrolled{Keys: []string{"k"}, Token: token, Labels: labels}))
}

func TestATokensLabelsAreAnOperatorsAtTheFirstRegistration(t *testing.T) {
	server, s := open(t, mem.Options{})
	put(t, s, enrolled("t1", map[string]string{"zone": "a", "pool": "x"}))
	spec := registers(t, server, s, hostOf(t, "gpu2", nil))
	if diff := cmp.Diff(map[string]string{"zone": "a", "pool": "x"}, spec.OperatorLabels); diff != "" {
		t.Errorf("first (-want +got):\n%s", diff)
	}
	spec.OperatorLabels = map[string]string{"zone": "b"} // an operator removes one and changes one
	put(t, s, record.Put(record.NodeSpecKey("n1"), record.MustEncode(spec)))
	spec = registers(t, server, s, hostOf(t, "gpu2", nil))
	if diff := cmp.Diff(map[string]string{"zone": "b"}, spec.OperatorLabels); diff != "" {
		t.Errorf("again (-want +got):\n%s", diff)
	}
	put(t, s, enrolled("t2", map[string]string{"rack": "r1"})) // another host takes its place
	spec = registers(t, server, s, hostOf(t, "gpu2", nil))
	if diff := cmp.Diff(map[string]string{"zone": "b", "rack": "r1"}, spec.OperatorLabels); diff != "" {
		t.Errorf("replaced (-want +got):\n%s", diff)
	}
}

func TestGrowthWaitsForApproval(t *testing.T) {
	small, large := hostOf(t, "gpu2", nil), hostOf(t, "dgx-a100", nil)
	renamed := hostOf(t, "gpu2", nil)
	for i := range renamed.Inventory.Devices { // the profile's inventory is this host's own
		renamed.Inventory.Devices[i].Model = "Another"
	}
	for name, c := range map[string]struct {
		allow bool // the policy
		hosts []grant.Host
		// between, where not nil, happens before the last registration.
		between func(t *testing.T, server *rpc.Server, s *mem.Store)
		want    string // the reason for which the node waits after the last one
	}{
		"the first registration is approved":  {hosts: []grant.Host{large}},
		"the same again":                      {hosts: []grant.Host{small, small}},
		"growth waits":                        {hosts: []grant.Host{small, large}, want: "CapacityGrew"},
		"growth stays waiting":                {hosts: []grant.Host{small, large, large}, want: "CapacityGrew"},
		"what was approved comes back":        {hosts: []grant.Host{small, large, small}},
		"shrinking, and growing back":         {hosts: []grant.Host{large, small, large}},
		"another model waits":                 {hosts: []grant.Host{small, renamed}, want: "ModelsChanged"},
		"growth where the cluster allows it":  {hosts: []grant.Host{small, large}, allow: true},
		"the policy comes after the capacity": {hosts: []grant.Host{small, large}, allow: true, between: func(_ *testing.T, server *rpc.Server, _ *mem.Store) { server.ApproveGrowth = true }, want: "CapacityGrew"},
		"the policy goes":                     {hosts: []grant.Host{small, large, large}, between: func(_ *testing.T, server *rpc.Server, _ *mem.Store) { server.ApproveGrowth = false }},
		"a replaced host is let in by its own token": {hosts: []grant.Host{small, large}, between: func(t *testing.T, _ *rpc.Server, s *mem.Store) {
			put(t, s, enrolled("t2", nil))
		}},
		"the node was deleted in between": {hosts: []grant.Host{small, large}, between: func(t *testing.T, _ *rpc.Server, s *mem.Store) {
			put(t, s, record.Delete(record.NodeSpecKey("n1")), record.Delete(record.NodeIdentityKey("n1")))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			server, s := open(t, mem.Options{})
			server.ApproveGrowth = !c.allow
			put(t, s, enrolled("t1", nil))
			var spec record.NodeSpec
			for i, h := range c.hosts {
				if i == len(c.hosts)-1 && c.between != nil {
					c.between(t, server, s)
				}
				spec = registers(t, server, s, h)
			}
			if g := admission.UnapprovedOf(spec); g.Reason != c.want {
				t.Errorf("%+v, want the reason %q", g, c.want)
			}
			if spec.Capacity[resource.GPU] != int64(len(c.hosts[len(c.hosts)-1].Inventory.Devices))*1000 {
				t.Errorf("registered %v", spec.Capacity)
			}
		})
	}
}

// A registration written by an older coordinator is approved as it is.
func TestAnOlderRegistrationIsApproved(t *testing.T) {
	server, s := open(t, mem.Options{})
	server.ApproveGrowth = true
	spec := registers(t, server, s, hostOf(t, "gpu2", nil))
	spec.Approved, spec.Topology.GPUModel, spec.Topology.GPUMemory = nil, nil, 0
	put(t, s, record.Put(record.NodeSpecKey("n1"), record.MustEncode(spec)))
	if g := admission.UnapprovedOf(registers(t, server, s, hostOf(t, "gpu2", nil))); !g.IsZero() {
		t.Errorf("the same host waits: %+v", g)
	}
	if g := admission.UnapprovedOf(registers(t, server, s, hostOf(t, "dgx-a100", nil))); g.Reason != "CapacityGrew" || !strings.Contains(g.Message, "nvidia.com/gpu 2 → 8") {
		t.Errorf("a larger one: %+v", g)
	}
}
