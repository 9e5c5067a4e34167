package shown_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/admission"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

func TestManyNamesAreCut(t *testing.T) {
	for want, names := range map[string][]string{
		"":                         nil,
		"a":                        {"a"},
		"a, b, c, d, e":            {"a", "b", "c", "d", "e"},
		"a, b, c, d, e and 2 more": {"a", "b", "c", "d", "e", "f", "g"},
	} {
		if got := shown.Names(names); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestANominationSaysWhatItWaitsFor(t *testing.T) {
	noticed := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, n := range map[string]shown.Nomination{
		"it is about to take the place of 2 units with 8 GPUs":                                        {Units: 2, Leaving: 2, GPUs: 8000},
		"it takes the place of 2 units with 8 GPUs, noticed at 03:04:05; 1 of 2 still hold something": {Units: 2, Leaving: 1, GPUs: 8000, Noticed: noticed},
		"it takes the place of 1 unit with 500m GPUs, and all of that is free now":                    {Units: 1, GPUs: 500, Noticed: noticed},
	} {
		if got := n.Awaits(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// node is one that takes new work.
func node() shown.Node {
	return shown.Node{ID: "n1", Spec: &record.NodeSpec{}, Revision: 1, Registered: true, Observed: &record.NodeObserved{Connected: true}}
}

func TestTheFirstReasonAgainstANodeIsItsPhase(t *testing.T) {
	// A line stands whatever lines below it change besides.
	lines := []struct {
		phase, status, reason string
		change                func(*shown.Node)
	}{
		{"Banned", "False", "Banned", func(n *shown.Node) { n.Ban = &record.Ban{By: "root"} }},
		{"Fenced", "False", "Fenced", func(n *shown.Node) { n.Fence = &shown.Fence{} }},
		{"ProtocolViolation", "False", "ProtocolViolation", func(n *shown.Node) { n.Violation = &record.Violation{Reason: "lie"} }},
		{"NotReady", "False", "AgentUnreachable", func(n *shown.Node) { n.Observed.Connected = false }},
		{"Quarantined", "False", "Quarantined", func(n *shown.Node) { n.Observed.Quarantine = "the store went back" }},
		{"Unregistered", "False", "Unregistered", func(n *shown.Node) { n.Registered = false }},
		{"NotReady", "False", "DiskFull", func(n *shown.Node) { n.Observed.DiskFull = true }},
		{"NotReady", "False", "MemoryPressure", func(n *shown.Node) { n.Observed.MemoryPressure = true }},
		{"NotReady", "False", "HostDiffers", func(n *shown.Node) { n.Observed.Growth = "cpu 2 → 4" }},
		{"AwaitingApproval", "False", "AwaitingApproval", func(n *shown.Node) {
			n.Unapproved = admission.Growth{Reason: "ModelsChanged"}
			n.Spec.Topology = record.TopologySummary{GPUs: 1, GPUModels: []string{"H100"}, GPUModel: []int{0}}
			n.Spec.Approved = &record.Capacity{Models: map[string]int{"A100": 1}}
		}},
		{"AwaitingApproval", "True", "AwaitingApproval", func(n *shown.Node) { n.Unapproved = admission.Growth{Reason: "CapacityGrew"} }},
		{"Ready", "True", "AgentReady", func(*shown.Node) {}},
	}
	for i, line := range lines {
		t.Run(line.reason, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				n := node()
				line.change(&n)
				for _, other := range lines[i+1:] {
					if rapid.Bool().Draw(t, other.reason) {
						other.change(&n)
					}
				}
				s := n.Show().Status
				if c := s.Conditions[0]; s.Phase != line.phase || c.Type != "Ready" || c.Status != line.status || c.Reason != line.reason {
					t.Errorf("%s, %+v; want %s, %s because of %s", s.Phase, c, line.phase, line.status, line.reason)
				}
				types := map[string]bool{}
				for _, c := range s.Conditions {
					if types[c.Type] {
						t.Errorf("condition %s twice", c.Type)
					}
					types[c.Type] = true
				}
			})
		})
	}
}

func TestANodeThatIsNotHeardSaysNothingForSure(t *testing.T) {
	n := node()
	n.Observed = &record.NodeObserved{Unheard: true}
	n.Told.Conditions = []record.Condition{{Type: "DiskPressure", Status: "False", Reason: "JournalHasRoom"}}
	n.Labels = map[string]string{api.AssumeDeadLabel: "5m0s"}
	want := []api.Condition{
		{
			Type: "Ready", Status: "Unknown", Reason: "LeaseExpired",
			Message: "no coordinator has heard the agent within its lease; its assume-dead policy (5m0s) is on: it is being fenced",
		},
		{Type: "DiskPressure", Status: "Unknown", Reason: "JournalHasRoom", Message: "it was False when the agent was last heard"},
	}
	if diff := cmp.Diff(want, n.Show().Status.Conditions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The facts of an earlier incarnation say nothing about the present one. An agent on a
// stream that has yet to register is newer than its registration.
func TestANodeIsNotReadyByFactsOfAnEarlierIncarnation(t *testing.T) {
	first, second := resource.Incarnation{JournalID: "j1", BootID: "b"}, resource.Incarnation{JournalID: "j2", BootID: "b"}
	for name, c := range map[string]struct {
		registered, observed resource.Incarnation
		change               func(*record.NodeObserved)
		phase, reason        string
	}{
		"the leader has observed the present one":       {second, second, nil, "Ready", "AgentReady"},
		"the agent has registered anew":                 {second, first, nil, "NotReady", "NewIncarnation"},
		"a record of an older version names none":       {second, resource.Incarnation{}, nil, "Ready", "AgentReady"},
		"the agent on the stream has yet to register":   {first, second, func(o *record.NodeObserved) { o.Unregistered = true }, "Unregistered", "Unregistered"},
		"the agent on the stream is in quarantine":      {first, second, func(o *record.NodeObserved) { o.Quarantine = "the store went back" }, "Quarantined", "Quarantined"},
		"there is no stream, whatever it was of before": {second, first, func(o *record.NodeObserved) { o.Connected = false }, "NotReady", "AgentUnreachable"},
	} {
		t.Run(name, func(t *testing.T) {
			n := node()
			n.Incarnation, n.Observed.Incarnation = c.registered, c.observed
			if c.change != nil {
				c.change(n.Observed)
			}
			s := n.Show().Status
			if s.Phase != c.phase || s.Conditions[0].Reason != c.reason {
				t.Errorf("%s, %s (%s); want %s, %s", s.Phase, s.Conditions[0].Reason, s.Conditions[0].Message, c.phase, c.reason)
			}
			if got := s.ObservedIncarnation; (got == nil) != c.observed.IsZero() || got != nil && *got != c.observed {
				t.Errorf("observedIncarnation %v, want %v", got, c.observed)
			}
		})
	}
}

// A node of which the leader has written nothing, or nothing that can be read, takes
// no new work for all that a reader knows.
func TestANodeWithoutAnObservationIsUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		unreadable string
		registered bool
		want       api.Condition
	}{
		"it is new": {"", true, api.Condition{
			Type: "Ready", Status: "Unknown", Reason: "NotObserved",
			Message: "the leader has written nothing about the node yet: it does so once it is connected to the agent, or some seconds after its election",
		}},
		"its key is torn": {"unexpected EOF", true, api.Condition{
			Type: "Ready", Status: "Unknown", Reason: "NotObserved",
			Message: "the leader's observation cannot be read (unexpected EOF); the leader writes it anew",
		}},
		"its agent has not registered": {"", false, api.Condition{
			Type: "Ready", Status: "False", Reason: "Unregistered", Message: "the agent has not registered yet",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			n := node()
			n.Observed, n.Unreadable, n.Registered = nil, c.unreadable, c.registered
			n.Spec.Allocatable, n.Held = resource.Vector{resource.GPU: 8000}, []resource.Assignment{{GPUs: []resource.GPUGrant{{UUID: "GPU-a", Milli: 1500}}}}
			s := n.Show().Status
			if diff := cmp.Diff([]api.Condition{c.want}, s.Conditions); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if s.Available[resource.GPU] != "6500m" {
				t.Errorf("available %v", s.Available)
			}
		})
	}
}

// job has units of the given numbers of members, in these phases.
func job(phases []api.Phase, members []int) *shown.Job {
	j := &shown.Job{Record: &record.Job{Namespace: "default", Name: "j", UID: "u"}, Revision: 7, Document: &api.Job{}}
	first := 0
	for i, phase := range phases {
		u := shown.Unit{
			Record:   &record.Unit{Namespace: "default", Name: "j", N: i, Phase: string(phase), Members: members[i], FirstMember: first},
			Revision: resource.Revision(10 + i), Job: j.Document, Request: &resource.Request{},
		}
		first += members[i]
		if phase == api.Running {
			u.Places = make([]shown.Place, members[i])
			for m := range u.Places {
				u.Places[m].Node = resource.NodeID(fmt.Sprintf("n%d", m))
			}
		}
		j.Units = append(j.Units, u)
	}
	return j
}

func TestAJobCountsItsMembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		phases := rapid.SliceOfN(rapid.SampledFrom([]api.Phase{api.Pending, api.Running, api.Succeeded, api.Failed}), 1, 5).Draw(t, "phases")
		members := rapid.SliceOfN(rapid.IntRange(1, 4), len(phases), len(phases)).Draw(t, "members")
		got := job(phases, members).Show()
		var want api.JobStatus
		at := 0
		for i, phase := range phases {
			for m := range members[i] {
				line := api.JobMember{Name: fmt.Sprintf("j-%d", at), Phase: phase}
				switch at++; phase {
				case api.Running:
					want.Active++
					line.Node = fmt.Sprintf("n%d", m)
				case api.Succeeded:
					want.Succeeded++
				case api.Failed:
					want.Failed++
				case api.Pending:
				}
				want.Allocations = append(want.Allocations, line)
			}
		}
		want.Phase, want.Conditions = api.Running, []api.Condition{{Type: "Running", Status: "True"}}
		if want.Active == 0 {
			reason := "WaitingForResources"
			want.Phase, want.Message = api.Queued, "no place now; `muster why j -n default` says why"
			if slices.Contains(phases, api.Pending) {
				reason, want.Message = "Unscheduled", "waiting for the scheduler"
			}
			want.Conditions = []api.Condition{{Type: "Queued", Status: "True", Reason: reason, Message: want.Message}}
		}
		if diff := cmp.Diff(want, got.Status); diff != "" {
			t.Errorf("status (-want +got):\n%s", diff)
		}
		if version := fmt.Sprint(9 + len(phases)); got.Metadata.ResourceVersion != version {
			t.Errorf("version %s, want %s", got.Metadata.ResourceVersion, version)
		}
	})
}

// The first unit of a job has ended, and a later one waits for its retry: the job waits for
// that.
func TestAJobWaitsForItsFirstUnitThatWaits(t *testing.T) {
	j := job([]api.Phase{api.Succeeded, api.Pending, api.Pending}, []int{1, 1, 1})
	w := shown.RestartBackOff("j-1 exited with code 7", 1, 6, 10_000)
	j.Units[1].Waiting = &w
	got := j.Show().Status
	if c := got.Conditions[0]; got.Phase != api.Queued || c.Type != "Queued" || c.Reason != "RestartBackOff" || got.Message != w.Message {
		t.Errorf("%s, %+v, message %q", got.Phase, c, got.Message)
	}
}

// In a gang that has failed, a member whose command has succeeded before shows its own end.
// The use of a member that runs comes from its node; the use of a member that has ended
// is in the record of its end.
func TestAJobShowsTheUseOfItsMembers(t *testing.T) {
	j := job([]api.Phase{api.Failed, api.Running, api.Pending}, []int{1, 2, 1})
	j.Units[0].Record.Exits = []record.Exit{{Node: "n0", Reason: "Completed", Code: 1, Use: &record.Use{CPUMillis: 10}}}
	j.Units[1].Record.TxID = "t"
	j.UseOf = func(node resource.NodeID, tx resource.TxID, member int) *record.Use {
		if tx != "t" || node != "n1" || member != 1 {
			return nil
		}
		return &record.Use{CPUMillis: 20}
	}
	var got []int64
	for _, m := range j.Show().Status.Allocations {
		if m.Use == nil {
			m.Use = &api.MemberUse{CPUMillis: -1}
		}
		got = append(got, m.Use.CPUMillis)
	}
	if want := []int64{10, -1, 20, -1}; !slices.Equal(got, want) {
		t.Errorf("times of processors %v, want %v (-1: none)", got, want)
	}
}

func TestAMemberShowsItsOwnEnd(t *testing.T) {
	for name, c := range map[string]struct {
		unit api.Phase
		want []api.Phase
		text []string
	}{
		"the gang has failed":    {api.Failed, []api.Phase{api.Succeeded, api.Failed}, []string{"", "j-1 exited with code 7"}},
		"its owner has ended it": {api.Cancelled, []api.Phase{api.Cancelled, api.Cancelled}, []string{"j-1 exited with code 7", "j-1 exited with code 7"}},
	} {
		t.Run(name, func(t *testing.T) {
			j := job([]api.Phase{c.unit}, []int{2})
			j.Units[0].Record.Reason = "j-1 exited with code 7"
			j.Units[0].Record.Exits = []record.Exit{{Member: 0, Node: "n0", Reason: "Completed"}, {Member: 1, Node: "n1", Code: 7, Reason: "Completed"}}
			for i, want := range c.want {
				m := shown.Member{Unit: j.Units[0], Index: i}
				got := m.Show().Status
				if line := j.Show().Status.Allocations[i]; got.Phase != want || line.Phase != want || got.Message != c.text[i] {
					t.Errorf("member %d is %s among allocations and %s among those of the job, message %q; want %s", i, got.Phase, line.Phase, got.Message, want)
				}
			}
		})
	}
}

func TestWhatExcludesAnotherIsExcludedByIt(t *testing.T) {
	grants := rapid.Custom(func(t *rapid.T) (a resource.Assignment) {
		for i := range 3 {
			if milli := rapid.IntRange(0, 2).Draw(t, "share"); milli > 0 {
				a.GPUs = append(a.GPUs, resource.GPUGrant{Index: i, UUID: fmt.Sprint("gpu", i), Milli: resource.WholeDevice / 2 * resource.Milli(milli)})
			}
			if rapid.Bool().Draw(t, "instance") {
				a.MIG = append(a.MIG, resource.MIGGrant{UUID: fmt.Sprint("mig", i)})
			}
			if milli := rapid.IntRange(0, 2).Draw(t, "cpu"); milli > 0 {
				a.CPUs = append(a.CPUs, resource.CPUGrant{ID: i, Milli: resource.WholeCPU / 2 * resource.Millicores(milli)})
			}
		}
		return a
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := grants.Draw(t, "a"), grants.Draw(t, "b")
		one, other := shown.Excludes(a, b), shown.Excludes(b, a)
		if one != other {
			t.Errorf("%t and %t", one, other)
		}
		sum := map[string]int{} // in halves
		for _, x := range []resource.Assignment{a, b} {
			for _, g := range x.GPUs {
				sum[g.UUID] += int(2 * g.Milli / resource.WholeDevice)
			}
			for _, g := range x.MIG {
				sum[g.UUID] += 2
			}
			for _, g := range x.CPUs {
				sum[fmt.Sprint("cpu", g.ID)] += int(2 * g.Milli / resource.WholeCPU)
			}
		}
		over := false
		for _, halves := range sum {
			over = over || halves > 2
		}
		if one != over {
			t.Errorf("it is %t that they exclude each other, want %t", one, over)
		}
	})
}

// The pool of the kubelet is not allocatable for readers either.
func TestANodesAllocatableAmountIsWithoutTheKubeletsPool(t *testing.T) {
	n := node()
	n.Spec = &record.NodeSpec{AgentAddr: "10.0.0.1:7000", Capacity: resource.Vector{resource.GPU: 8000}, Allocatable: resource.Vector{resource.GPU: 8000}}
	n.Observed.Pool = &resource.Assignment{GPUs: []resource.GPUGrant{{UUID: "GPU-a", Milli: 1000}, {UUID: "GPU-b", Milli: 1000}}}
	s := n.Show().Status
	if s.Capacity[resource.GPU] != "8" || s.Allocatable[resource.GPU] != "6" || s.Available[resource.GPU] != "6" {
		t.Errorf("capacity %v, allocatable %v, available %v; want 8, 6 and 6 GPUs", s.Capacity, s.Allocatable, s.Available)
	}
}
