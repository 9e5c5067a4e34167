package why_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/whatif"
	"github.com/musterd/muster/coordinator/why"
	"github.com/musterd/muster/resource"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// waiting is an allocation of one GPU that waits, beside these nodes.
func waiting(nodes ...api.NodeExplanation) *why.Facts {
	return &why.Facts{
		Object: "Allocation", Namespace: "ml", Name: "train", Phase: api.Pending, Request: resource.Request{GPUs: 1}, Members: 1, Total: 1, Now: noon,
		Queue: &api.QueuePlace{Name: "default", Position: 1, Length: 2, OverallPosition: 3, OverallLength: 4}, Nodes: nodes,
	}
}

// with changes facts.
func with(f *why.Facts, change func(*why.Facts)) *why.Facts {
	change(f)
	return f
}

// on is so many nodes that answer with the same reasons.
func on(n int, prefix string, reasons ...resource.Reason) []api.NodeExplanation {
	list := make([]api.NodeExplanation, n)
	for i := range list {
		list[i] = api.NodeExplanation{Node: resource.NodeID(fmt.Sprintf("%s-%05d", prefix, i+1)), Reasons: reasons}
	}
	return list
}

func both(a, b []api.NodeExplanation) []api.NodeExplanation { return append(a, b...) }

func short(code string, want, have int64) resource.Reason {
	return resource.Reason{Code: code, Resource: resource.GPU, Want: want, Have: have}
}

func plain(code, detail string) resource.Reason { return resource.Reason{Code: code, Detail: detail} }

var victims = []why.Work{
	{Unit: "ml/job/own/0", Namespace: "ml", Priority: 1, Members: 1, GPUs: 2000},
	{Unit: "rival/job/secret/0", Namespace: "rival", Priority: 0, Members: 2, GPUs: 8000},
}

// cases has a unit for each reason, and for each bound and change.
func cases() map[string]*why.Facts {
	all := map[string]*why.Facts{
		"running": with(waiting(), func(f *why.Facts) {
			f.Stage, f.Phase, f.On, f.Queue = why.Running, api.Running, []resource.NodeID{"n1"}, nil
		}),
		"running, and the agent has not confirmed": with(waiting(), func(f *why.Facts) {
			f.Stage, f.Phase, f.On, f.Unconfirmed, f.Queue = why.Running, api.Running, []resource.NodeID{"n1"}, []resource.NodeID{"n1"}, nil
		}),
		"running, and a device is lost": with(waiting(), func(f *why.Facts) {
			f.Stage, f.Phase, f.On, f.Queue = why.Running, api.Running, []resource.NodeID{"n1"}, nil
			f.Lost = []why.Lost{{Node: "n1", UUIDs: []string{"GPU-a"}}}
		}),
		"running, and more devices are lost than are named": with(waiting(), func(f *why.Facts) {
			f.Stage, f.Phase, f.On, f.Unconfirmed, f.Queue = why.Running, api.Running, []resource.NodeID{"n1", "n2"}, []resource.NodeID{"n2"}, nil
			f.Lost = []why.Lost{{Node: "n1", UUIDs: []string{"GPU-a", "GPU-b", "GPU-c"}}, {Node: "n2", UUIDs: []string{"GPU-d", "MIG-e"}}}
		}),
		"an elastic job that runs with fewer members": with(waiting(on(2, "n", short(resource.ReasonInsufficient, 1000, 0))...), func(f *why.Facts) {
			f.Object, f.Phase, f.Waits, f.Running, f.Total = "Job", api.Running, true, 2, 3
			f.Shortages = []resource.Reason{short(resource.ReasonInsufficient, 1000, 0)}
		}),
		"leaving": with(waiting(), func(f *why.Facts) {
			f.Stage, f.Phase, f.Ending, f.Until, f.Queue = why.Leaving, api.Terminating, "gives way to rival/job/secret/0", noon.Add(30*time.Second), nil
		}),
		"ended": with(waiting(), func(f *why.Facts) {
			f.Stage, f.Phase, f.Ending, f.Queue = why.Ended, api.Preempted, "its quota is claimed back by ml/job/own/0", nil
		}),
		"storing": with(waiting(), func(f *why.Facts) { f.Stage = why.Storing }),
		"growing": with(waiting(), func(f *why.Facts) { f.Stage = why.Growing }),
		"gathering": with(waiting(), func(f *why.Facts) {
			f.Stage, f.Group = why.Gathering, why.Group{ID: "train", Arrived: 2, MinMembers: 4, StartBy: noon.Add(5 * time.Minute)}
		}),
		"adopting": with(waiting(), func(f *why.Facts) { f.Stage = why.Adopting }),
		"asking agents": with(waiting(), func(f *why.Facts) {
			f.Stage, f.On, f.Unconfirmed = why.Asking, []resource.NodeID{"n1", "n2"}, []resource.NodeID{"n2"}
		}),
		"backoff after refusals": with(waiting(), func(f *why.Facts) {
			f.Stage = why.Resting
			f.Refused = why.Refused{Times: 3, Node: "n1", Fault: "the agent refused: Insufficient nvidia.com/gpu: want 1, have 0", Until: noon.Add(80 * time.Millisecond)}
		}),
		"a retry after a failure": with(waiting(), func(f *why.Facts) {
			f.Object, f.Stage = "Job", why.Delayed
			f.Retry = why.Retry{Failure: "train-1 exited with code 7", Number: 2, Limit: 6, At: noon.Add(20 * time.Second)}
		}),
		"as many members run as may": with(waiting(), func(f *why.Facts) { f.Object, f.Stage, f.Parallelism = "Job", why.Throttled, 4 }),
		"dependencies have not come true": with(waiting(), func(f *why.Facts) {
			f.Object, f.Stage, f.Awaits = "Job", why.Depending, []string{"job prepare to succeed (afterok)", "job load to begin (after), which does not exist"}
		}),
		"a nomination before the notice": with(waiting(), func(f *why.Facts) { f.Stage, f.Victims = why.Nominated, victims }),
		"a nomination that waits for victims": with(waiting(), func(f *why.Facts) {
			f.Stage, f.Victims, f.Noticed, f.Until = why.Nominated, victims, noon, noon.Add(time.Minute)
		}),
		"a claim whose victims have all left": with(waiting(), func(f *why.Facts) {
			f.Stage, f.Claims, f.Noticed, f.Victims = why.Nominated, true, noon, []why.Work{{Unit: "rival/alloc/x/0", Namespace: "rival", Freed: true, GPUs: 1000}}
		}),
		"no node": waiting(),
		"a leader was just elected": with(waiting(on(4, "n", plain(resource.ReasonUnreachable, "no stream to the agent"))...), func(f *why.Facts) {
			f.Elected, f.Missing = noon.Add(-3*time.Second), 4
		}),
		"room":           with(waiting(on(1, "n")...), func(f *why.Facts) { f.Fit = 1 }),
		"too many nodes": with(waiting(on(1, "n")...), func(f *why.Facts) { f.Fit, f.TooWide = 1, "it fits on 30 nodes, and the store takes 24 operations" }),
		"no domain has room for all": with(waiting(on(4, "n")...), func(f *why.Facts) {
			f.Members, f.Fit = 4, 3
			f.Domain = &resource.Reason{Code: resource.ReasonTopology, Detail: "all 4 members have to run in one domain of rack, and the best one, rack=r1, has room for 3"}
		}),
		"short in all": with(waiting(on(3, "n", short(resource.ReasonInsufficient, 1000, 0))...), func(f *why.Facts) {
			f.Shortages, f.NoVictims = []resource.Reason{short(resource.ReasonInsufficient, 1000, 0)}, "rival/job/secret/0 is leaving already"
		}),
		"short on the nodes that may take it": with(waiting(both(on(2, "a", short(resource.ReasonInsufficient, 1000, 0)), on(148, "b", plain(resource.ReasonNodeSelector, "label gpu-type is a100, want h100")))...), func(f *why.Facts) {
			f.Shortages = []resource.Reason{short(resource.ReasonInsufficient, 1000, 0)}
		}),
		"every node refuses, for different reasons": waiting(both(on(2, "a", plain(resource.ReasonCordoned, "cordoned")), on(3, "b", plain(resource.ReasonTaint, "taint team=nlp:NoSchedule is not tolerated")))...),
		"quota of the namespace": with(waiting(on(1, "n")...), func(f *why.Facts) {
			f.QuotaLevel, f.Quota = why.QuotaNamespace, []resource.Reason{{Code: resource.ReasonQuota, Resource: resource.GPU, Want: 9000, Have: 8000, Detail: "exceeded quota: gpu limit 8, requested 1, used 8"}}
		}),
		"quota of a tree": with(waiting(on(1, "n")...), func(f *why.Facts) {
			f.QuotaLevel, f.Quota = why.QuotaTree, []resource.Reason{{Code: resource.ReasonQuota, Resource: resource.GPU, Want: 1000, Detail: "exceeded quota: gpu limit 16, requested 1, used 16 (node company of quota tree company)"}}
		}),
		"a quota tree that is absent": with(waiting(on(1, "n")...), func(f *why.Facts) {
			f.QuotaLevel, f.Quota = why.QuotaAbsent, []resource.Reason{plain(resource.ReasonQuota, "quota tree T, to whose group g it is to be charged, does not exist")}
		}),
		"quota of its own in use by others": with(waiting(on(1, "n")...), func(f *why.Facts) {
			f.QuotaLevel, f.Quota, f.Borrowers = why.QuotaInUse, []resource.Reason{plain(resource.ReasonQuota, "")}, victims
			f.NoVictims = "rival/job/secret/0 is about to start, and can give way only then"
		}),
	}
	for code, detail := range map[string]string{
		resource.ReasonNodeSelector: "label zone is a, want b", resource.ReasonNodeAffinity: "label zone is a, node affinity wants zone In (b, c)",
		resource.ReasonAffinity:     "units with app=db in zone=a: 0, the affinity wants 1",
		resource.ReasonAntiAffinity: "units with app=web in rack=r1: 2, the anti-affinity wants 0",
		resource.ReasonSpread:       "members of its own job or group in zone=a: 3, in the least domain: 2; one more exceeds maxSkew 1",
		resource.ReasonTaint:        "taint team=nlp:NoSchedule is not tolerated", resource.ReasonCordoned: "", resource.ReasonUnreachable: "", resource.ReasonUnregistered: "",
		resource.ReasonViolation: "", resource.ReasonDiskFull: "", resource.ReasonQuarantined: "", resource.ReasonBanned: "", resource.ReasonFenced: "",
		resource.ReasonDead: "", resource.ReasonUnread: "", resource.ReasonHostDiffers: "", resource.ReasonApproval: "", resource.ReasonSilent: "", resource.ReasonMemoryPressure: "",
	} {
		all["node: "+code] = waiting(on(150, "n", plain(code, detail))...)
	}
	pages := resource.Hugepages(2 << 20)
	for name, r := range map[string]resource.Reason{
		"node: GPU model":            short(resource.ReasonModel, 1000, 0),
		"node: unhealthy GPUs":       short(resource.ReasonUnhealthy, 1000, 0),
		"node: parts of GPUs":        short(resource.ReasonFragmented, 1000, 0),
		"node: links":                short(resource.ReasonLink, 4000, 2000),
		"node: NUMA":                 plain(resource.ReasonNUMA, "policy single allows 1 nodes, what is free needs 2; node 0 has 8 cpu, 32Gi memory, 0 GPUs free"),
		"node: huge pages":           {Code: resource.ReasonInsufficient, Resource: pages, Want: 1 << 30, Detail: "this host has no huge pages"},
		"node: MIG":                  {Code: resource.ReasonInsufficient, Resource: resource.MIG("1g.10gb"), Want: 2, Have: 1},
		"node: cores used by others": {Code: resource.ReasonFragmented, Resource: resource.Cores, Want: 4, Have: 1},
	} {
		all[name] = with(waiting(on(2, "n", r)...), func(f *why.Facts) {
			f.Request.GPUModel = "H100"
			if f.Request.Link = resource.LinkNVLink; r.Code == resource.ReasonInsufficient || r.Code == resource.ReasonUnhealthy {
				f.Shortages = []resource.Reason{{Code: resource.ReasonInsufficient, Resource: r.Resource, Want: r.Want, Have: r.Have}}
			}
		})
	}
	for _, b := range []whatif.Bound{
		{Code: whatif.NoNodes}, {Code: whatif.NoLabel, Nodes: 150, Label: constraint.Label{Key: "gpu-type", Value: "h100"}}, {Code: whatif.NoMatch, Nodes: 4},
		{Code: whatif.NotTolerated, Nodes: 4, Taint: constraint.Taint{Key: "team", Value: "nlp", Effect: constraint.NoSchedule}}, {Code: whatif.NoModel, Nodes: 4, Model: "H100"},
		{Code: whatif.NoGPUMemory, Nodes: 4, Want: 96 << 30, Have: 80 << 30}, {Code: whatif.NodeTooSmall, Nodes: 150, Resource: resource.GPU, Want: 9000, Have: 8000},
		{Code: whatif.NoNode, Nodes: 4}, {Code: whatif.NodesTooSmall, Nodes: 4, Resource: resource.GPU, Want: 40_000, Have: 32_000}, {Code: whatif.NodesTooSmall, Nodes: 4, Want: 5, Have: 4},
		{Code: whatif.TooWide, Want: 30, Have: 18}, {Code: whatif.OverLimit, Limit: "config", Resource: resource.GPU, Want: 9000, Have: 8000},
		{Code: whatif.NoTree, Tree: "T", Group: "g"}, {Code: whatif.OverTree, Resource: resource.GPU, Want: 9000, Have: 8000, Refusal: quota.Refusal{Code: quota.OverCap, Tree: "T", Node: "g"}},
	} {
		all[strings.TrimSpace(fmt.Sprintf("never: %s %s", b.Code, b.Resource))] = with(waiting(on(1, "n", short(resource.ReasonInsufficient, 1000, 0))...), func(f *why.Facts) {
			f.Outlook, f.Shortages = why.OutlookOf([]whatif.Bound{b}, false), []resource.Reason{short(resource.ReasonInsufficient, 1000, 0)}
		})
	}
	return all
}

// TestEachReason shows the answer that a tenant of namespace ml gets: "answer" has
// the name of a case in this file. Rewrite with -rewrite.
func TestEachReason(t *testing.T) {
	all := cases()
	shown := map[string]bool{}
	datadriven.RunTest(t, "testdata/reasons", func(t *testing.T, d *datadriven.TestData) string {
		var b strings.Builder
		for name := range strings.Lines(d.Input) {
			name = strings.TrimSpace(name)
			f := all[name]
			if f == nil {
				d.Fatalf(t, "no case is named %q", name)
			}
			shown[name] = true
			e := why.Answer(f, tenant, why.Options{})
			if e.Reason.Code == "" || strings.Contains(e.Summary, "%!") {
				t.Errorf("%s: reason %+v, %s", name, e.Reason, e.Summary)
			}
			fmt.Fprintf(&b, "[%s]\n%s", e.Reason.Code, why.Text(e))
		}
		return b.String()
	})
	for name := range all {
		if !shown[name] {
			t.Errorf("testdata/reasons does not show %q", name)
		}
	}
}

// tenant is the tenant of namespace ml.
var tenant = why.Viewer{Owns: func(namespace string) bool { return namespace == "ml" }}

func TestEachChangeIsWorded(t *testing.T) {
	taint := constraint.Taint{Key: "team", Value: "nlp", Effect: constraint.NoSchedule}
	gives := []whatif.Victim{{Unit: "rival/job/secret/0", Priority: 2, GPUs: 8000}}
	for want, h := range map[string]whatif.Hint{
		"with GPUs of any model: it would start now":                                          {Code: whatif.AnyModel, Then: sched.Start},
		"with GPUs of model A100: it would start now":                                         {Code: whatif.OtherModel, Model: "A100", Then: sched.Start},
		"without zone=a in the node selector: it would start now":                             {Code: whatif.DropLabel, Label: constraint.Label{Key: "zone", Value: "a"}, Then: sched.Start},
		"without the required node affinity: it would start now":                              {Code: whatif.DropAffinity, Then: sched.Start},
		"with a toleration of the taint team=nlp:NoSchedule: it would start now":              {Code: whatif.Tolerate, Taint: taint, Then: sched.Start},
		"with 6 GPUs for each member in place of 8: it would start now":                       {Code: whatif.FewerGPUs, Resource: resource.GPU, From: 8000, To: 6000, Then: sched.Start},
		"with 512Mi of memory for each member in place of 1Gi: it would start now":            {Code: whatif.LessMemory, Resource: resource.Memory, From: 1 << 30, To: 512 << 20, Then: sched.Start},
		"with 2 members in place of 3: it would start now":                                    {Code: whatif.FewerMembers, From: 3, To: 2, Then: sched.Start},
		"with 1 node uncordoned (n1): it would start now":                                     {Code: whatif.Uncordon, Nodes: []resource.NodeID{"n1"}, Then: sched.Start},
		"with 2 nodes back that are not ready (n1, n2): it would start now":                   {Code: whatif.NodesBack, Nodes: []resource.NodeID{"n1", "n2"}, Then: sched.Start},
		"with 9 GPUs in place of 8 as the limit of resource quota config: it would start now": {Code: whatif.RaiseLimit, Resource: resource.GPU, From: 8000, To: 9000, Limit: "config", Then: sched.Start},
		"with 9 GPUs in place of 8 as the borrowing limit of node g of quota tree T: it would start now": {
			Code: whatif.RaiseQuota, Resource: resource.GPU, From: 8000, To: 9000, Quota: quota.Refusal{Code: quota.OverBorrow, Tree: "T", Node: "g"}, Then: sched.Start,
		},
		"with preemptionPolicy: PreemptLowerPriority (OwnQuota takes back quota of its own and evicts nobody else): it would take the place of 1 unit of another tenant with 8 GPUs at priority 2": {
			Code: whatif.MayPreempt, Then: sched.Preempt, Victims: gives,
		},
		"with priority 3 in place of 0 and preemptionPolicy: PreemptLowerPriority: it would take the place of 1 unit of another tenant with 8 GPUs at priority 2": {
			Code: whatif.HigherPriority, To: 3, Then: sched.Preempt, Victims: gives,
		},
		"once 1 unit of another tenant with 8 GPUs at priority 2 has ended (no end is enforced, so no time is known)": {Code: whatif.WaitFor, Ends: gives},
	} {
		if got := why.HelpOf([]whatif.Hint{h}, tenant); len(got) != 1 || got[0].Message != want || got[0].Code != string(h.Code) {
			t.Errorf("%s: got %+v, want %q", h.Code, got, want)
		}
	}
}
