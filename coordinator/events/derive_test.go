package events_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/events"
	"github.com/musterd/muster/resource"
)

const at = "2026-01-02T03:04:05Z"

func normal(reason, at, message string) events.Happening {
	return events.Happening{Type: api.EventNormal, Reason: reason, Message: message, At: at}
}

func warning(reason, at, message string) events.Happening {
	return events.Happening{Type: api.EventWarning, Reason: reason, Message: message, At: at}
}

// latest is a happening that takes its message over from the last one.
func latest(h events.Happening) events.Happening {
	h.Latest = true
	return h
}

func condition(kind, status, reason, message string) api.Condition {
	return api.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: at}
}

func allocation(phase api.Phase, conditions ...api.Condition) *api.Allocation {
	a := &api.Allocation{Status: api.AllocationStatus{Phase: phase, NodeName: "n1", Message: "why", Conditions: conditions}}
	a.Metadata.CreationTimestamp = "2026-01-02T03:00:00Z"
	a.Spec.Resources.Requests = map[resource.Name]string{"nvidia.com/gpu": "2", "cpu": "8"}
	return a
}

var (
	noRoom     = condition("Scheduled", "False", "WaitingForResources", "no place now")
	retry      = condition("Scheduled", "False", "RestartBackOff", "train-1 exited with code 7; retry 1 of 6 is at 12:00:10")
	overQuota  = condition("Scheduled", "False", "QuotaExceeded", "short of 2 nvidia.com/gpu")
	preempting = condition("Scheduled", "False", "Preempting", "it is about to take the place of 2 units with 4 GPUs")
	refused    = condition("Scheduled", "False", "Refused", "node n1 said no; after 1 attempt …")
	again      = condition("Scheduled", "False", "Refused", "node n1 said no; after 2 attempts in a row …")
	untried    = condition("Scheduled", "False", "Unscheduled", "waiting for the scheduler")
	placed     = condition("Scheduled", "True", "", "")
	unready    = condition("Ready", "False", "Confirming", "")
	isReady    = condition("Ready", "True", "", "")
	lost       = condition("DeviceLost", "True", "DeviceLost", "GPU-a of node n1 is lost")
	lostMore   = condition("DeviceLost", "True", "DeviceLost", "GPU-a, GPU-b of node n1 is lost")
	evicted    = condition("Terminating", "True", "Evicted", "it is being evicted, with 30 s of grace: node n1 is drained")
	asked      = condition("Terminating", "True", "UserRequested", "Graceful termination in progress")
)

func TestEventsOfAnAllocation(t *testing.T) {
	created := normal("Created", "2026-01-02T03:00:00Z", "asks for cpu 8, nvidia.com/gpu 2 at priority 0 in queue default")
	granted := allocation(api.Running, placed, unready)
	granted.Status.AllocatedResources = granted.Spec.Resources.Requests
	member := allocation(api.Pending)
	member.Status.Job, member.Status.Member = "train", 3
	for name, c := range map[string]struct {
		before, after *api.Allocation
		want          []events.Happening
	}{
		"it is submitted":                      {nil, allocation(api.Pending, untried), []events.Happening{created}},
		"it is submitted and waits":            {nil, allocation(api.Pending, noRoom), []events.Happening{created, warning("WaitingForResources", at, "no place now")}},
		"it is a member of a job":              {nil, member, []events.Happening{normal("Created", "2026-01-02T03:00:00Z", "member 3 of job train")}},
		"it waits on for the same reason":      {allocation(api.Pending, noRoom), allocation(api.Pending, noRoom), nil},
		"quota holds it back":                  {allocation(api.Pending, noRoom), allocation(api.Pending, overQuota), []events.Happening{warning("QuotaExceeded", at, "short of 2 nvidia.com/gpu")}},
		"others make room":                     {allocation(api.Pending, noRoom), allocation(api.Pending, preempting), []events.Happening{normal("Preempting", at, "it is about to take the place of 2 units with 4 GPUs")}},
		"a node refuses it":                    {allocation(api.Pending, noRoom), allocation(api.Pending, refused), []events.Happening{latest(warning("Refused", at, refused.Message))}},
		"a node refuses it once more":          {allocation(api.Pending, refused), allocation(api.Pending, again), []events.Happening{latest(warning("Refused", at, again.Message))}},
		"it is placed":                         {allocation(api.Pending, noRoom), granted, []events.Happening{normal("Scheduled", at, "placed on node n1 with cpu 8, nvidia.com/gpu 2")}},
		"its agents confirm":                   {allocation(api.Running, placed, unready), allocation(api.Running, placed, isReady), []events.Happening{normal("Ready", at, "the agents of all members hold their devices")}},
		"it is placed and confirmed in one":    {nil, allocation(api.Running, placed, isReady), []events.Happening{created, normal("Scheduled", at, "placed on node n1"), normal("Ready", at, "the agents of all members hold their devices")}},
		"its work gets a signal":               {allocation(api.Running, placed, isReady), allocation(api.Running, placed, isReady, condition("Signaled", "True", "EndIsNear", "soon")), []events.Happening{normal("Signaled", at, "soon")}},
		"its GPUs do nothing":                  {allocation(api.Running, placed, isReady), allocation(api.Running, placed, isReady, condition("Idle", "True", "GPUsIdle", "nothing")), []events.Happening{warning("Idle", "", "nothing")}},
		"its GPUs go on doing nothing":         {allocation(api.Running, placed, isReady, condition("Idle", "True", "GPUsIdle", "nothing")), allocation(api.Running, placed, isReady, condition("Idle", "True", "GPUsIdle", "nothing")), nil},
		"its GPUs are used again":              {allocation(api.Running, placed, isReady, condition("Idle", "True", "GPUsIdle", "nothing")), allocation(api.Running, placed, isReady), []events.Happening{normal("IdleEnded", "", "its GPUs are used again")}},
		"idle work ends":                       {allocation(api.Running, placed, isReady, condition("Idle", "True", "GPUsIdle", "nothing")), allocation(api.Terminating, placed, unready, asked), []events.Happening{normal("Terminating", at, asked.Message)}},
		"a device is lost":                     {allocation(api.Running, placed, isReady), allocation(api.Running, placed, isReady, lost), []events.Happening{warning("DeviceLost", at, lost.Message)}},
		"another device is lost":               {allocation(api.Running, lost), allocation(api.Running, lostMore), []events.Happening{warning("DeviceLost", at, lostMore.Message)}},
		"the device is back":                   {allocation(api.Running, lost), allocation(api.Running), []events.Happening{normal("DeviceReturned", "", "no device of the allocation is lost any more")}},
		"it is evicted":                        {allocation(api.Running, placed), allocation(api.Terminating, placed, evicted), []events.Happening{warning("Evicted", at, evicted.Message)}},
		"it waits again after an eviction":     {allocation(api.Terminating, placed, evicted), allocation(api.Pending, untried), []events.Happening{normal("Requeued", "", "the allocation waits again, at its old place in the order")}},
		"its owner ends it":                    {allocation(api.Running, placed), allocation(api.Terminating, placed, asked), []events.Happening{normal("Terminating", at, asked.Message)}},
		"it was preempted":                     {allocation(api.Terminating, evicted), allocation(api.Preempted), []events.Happening{warning("Preempted", "", "why")}},
		"it has failed":                        {allocation(api.Terminating, evicted), allocation(api.Failed), []events.Happening{warning("Failed", "", "why")}},
		"it was cancelled":                     {allocation(api.Terminating, asked), allocation(api.Cancelled), []events.Happening{normal("Cancelled", "", "why")}},
		"it is deleted":                        {allocation(api.Cancelled), nil, []events.Happening{normal("Deleted", "", "the allocation is deleted")}},
		"a change of labels makes no event":    {allocation(api.Running, placed, isReady), allocation(api.Running, placed, isReady), nil},
		"the confirmation that goes is no end": {allocation(api.Running, placed, isReady), allocation(api.Running, placed, unready), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, events.OfAllocation(c.before, c.after)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func job(phase api.Phase, conditions ...api.Condition) *api.Job {
	members := int32(4)
	j := &api.Job{Status: api.JobStatus{Phase: phase, Message: "why", Conditions: conditions}}
	j.Spec.Parallelism = &members
	j.Spec.Template.Spec.Resources.Requests = map[resource.Name]string{"nvidia.com/gpu": "2"}
	return j
}

// leavingJob is a job with a member under notice.
func leavingJob(phase api.Phase, conditions ...api.Condition) *api.Job {
	j := job(phase, conditions...)
	j.Status.Allocations = []api.JobMember{{Name: "a-0", Phase: api.Terminating}}
	return j
}

// boostedJob is a job that waits with a boost.
func boostedJob(reason string) *api.Job {
	j := job(api.Queued)
	j.Status.Boost = &api.JobBoost{Priority: 500, Expires: "2026-03-01T13:00:00Z", Reason: reason}
	return j
}

func gang(minMembers int32) *api.Job {
	j := job(api.Queued)
	j.Spec.Template.Spec.GangScheduling = &api.GangScheduling{MinMembers: &minMembers}
	return j
}

func TestEventsOfAJob(t *testing.T) {
	const each = "; each asks for nvidia.com/gpu 2 at priority 0 in queue default"
	for name, c := range map[string]struct {
		before, after *api.Job
		want          []events.Happening
	}{
		"members by themselves":               {nil, job(api.Queued), []events.Happening{normal("Created", "", "4 members, each by itself"+each)}},
		"a gang":                              {nil, gang(4), []events.Happening{normal("Created", "", "4 members, all at once or not at all"+each)}},
		"a gang that grows":                   {nil, gang(3), []events.Happening{normal("Created", "", "4 members, of which 3 start at once or not at all"+each)}},
		"it waits":                            {job(api.Queued), job(api.Queued, condition("Queued", "True", "QuotaExceeded", "short of 2 GPUs")), []events.Happening{warning("QuotaExceeded", at, "short of 2 GPUs")}},
		"it runs, which its units tell":       {job(api.Queued), job(api.Running), nil},
		"it is evicted, which its units tell": {leavingJob(api.Running), leavingJob(api.Queued, condition("Queued", "True", "WaitingForResources", "no place now")), nil},
		"it is cancelled":                     {job(api.Running), job(api.Cancelling), []events.Happening{normal("Cancelling", "", "why")}},
		"it is boosted":                       {job(api.Queued), boostedJob("r"), []events.Happening{normal("Boosted", "", "members that wait have priority 500 until 2026-03-01T13:00:00Z: r")}},
		"it is boosted again":                 {boostedJob("r"), boostedJob(""), []events.Happening{normal("Boosted", "", "members that wait have priority 500 until 2026-03-01T13:00:00Z")}},
		"its boost ends":                      {boostedJob("r"), job(api.Queued), []events.Happening{normal("BoostEnded", "", "members that wait have the job's own priority again")}},
		"it has failed":                       {job(api.Running), job(api.Failed), []events.Happening{warning("Failed", "", "why")}},
		"it has ended well":                   {job(api.Running), job(api.Succeeded), []events.Happening{normal("Succeeded", "", "why")}},
		"it is deleted":                       {job(api.Cancelled), nil, []events.Happening{normal("Deleted", "", "the job is deleted")}},
		"a phase is there and no change":      {job(api.Queued), job(api.Queued), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, events.OfJob(c.before, c.after)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEventsOfAUnit(t *testing.T) {
	unit := func(shown *api.Allocation, nodes ...string) events.Unit {
		return events.Unit{First: 2, Members: 3, Nodes: nodes, Shown: shown}
	}
	single := func(shown *api.Allocation, nodes ...string) events.Unit {
		return events.Unit{First: 7, Members: 1, Nodes: nodes, Shown: shown}
	}
	differs := func(u events.Unit) events.Unit {
		u.Differs = true
		return u
	}
	granted := allocation(api.Running, placed, unready)
	granted.Status.AllocatedResources = granted.Spec.Resources.Requests
	for name, c := range map[string]struct {
		before, after events.Unit
		want          []events.Happening
	}{
		"it is new and waits":                  {events.Unit{}, unit(allocation(api.Pending, noRoom)), nil},
		"it is placed":                         {unit(allocation(api.Pending)), unit(granted, "n2", "n1", "n2"), []events.Happening{normal("Scheduled", at, "members 2 to 4 are placed: 1 on n1, 2 on n2; each has cpu 8, nvidia.com/gpu 2")}},
		"members that differ are placed":       {differs(unit(allocation(api.Pending))), differs(unit(granted, "n1", "n1", "n2")), []events.Happening{normal("Scheduled", at, "members 2 to 4 are placed: 2 on n1, 1 on n2")}},
		"one member is placed":                 {single(allocation(api.Pending)), single(allocation(api.Running, placed), "n1"), []events.Happening{normal("Scheduled", at, "member 7 is placed on node n1")}},
		"its agents confirm":                   {unit(allocation(api.Running, placed, unready)), unit(allocation(api.Running, placed, isReady)), []events.Happening{normal("Ready", at, "the agents hold the devices of members 2 to 4")}},
		"it is evicted":                        {unit(allocation(api.Running, placed)), unit(allocation(api.Terminating, placed, evicted)), []events.Happening{warning("Evicted", at, "members 2 to 4 are being evicted, with 30 s of grace: node n1 is drained")}},
		"it waits again":                       {unit(allocation(api.Terminating, placed, evicted)), unit(allocation(api.Pending, untried)), []events.Happening{normal("Requeued", "", "members 2 to 4 wait again, at the old place in the order")}},
		"it waits for its retry":               {unit(allocation(api.Terminating, placed)), unit(allocation(api.Pending, retry)), []events.Happening{warning("RestartBackOff", at, retry.Message)}},
		"its owner's end is the job's to tell": {unit(allocation(api.Running, placed)), unit(allocation(api.Terminating, placed, asked)), nil},
		"it is gone":                           {unit(allocation(api.Running, placed)), events.Unit{}, nil},
		"it is on many nodes": {
			unit(allocation(api.Pending)), unit(allocation(api.Running, placed), "a", "b", "c", "d", "e", "f", "g", "h", "i", "j"),
			[]events.Happening{normal("Scheduled", at, "members 2 to 4 are placed: 1 on a, 1 on b, 1 on c, 1 on d, 1 on e, 1 on f, 1 on g, 1 on h, 2 more nodes")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, events.OfUnit(c.before, c.after)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func node(phase string, conditions ...api.Condition) events.Node {
	n := &api.Node{Status: api.NodeStatus{Phase: phase, Conditions: conditions, Incarnation: &resource.Incarnation{JournalID: "j", BootID: "b"}}}
	n.Metadata.CreationTimestamp = "2026-01-01T00:00:00Z"
	n.Spec.Capacity = map[resource.Name]string{"nvidia.com/gpu": "8"}
	return events.Node{Node: n}
}

// with changes a node.
func with(n events.Node, change func(*events.Node)) events.Node {
	change(&n)
	return n
}

func TestEventsOfANode(t *testing.T) {
	heard, expired := condition("Ready", "True", "AgentHeard", "its agent is heard"), condition("Ready", "Unknown", "LeaseExpired", "nobody hears it")
	full, roomy := condition("DiskPressure", "True", "JournalFull", "4 MiB are left"), condition("DiskPressure", "False", "Enough", "")
	quarantine, held := condition("Ready", "False", "Quarantined", "the store went back"), condition("Quarantined", "True", "StoreWentBack", "the store went back")
	cordoned := func(n *events.Node) { n.Spec.Unschedulable = true }
	holds := func(members int) func(*events.Node) { return func(n *events.Node) { n.Held = members } }
	for name, c := range map[string]struct {
		before, after events.Node
		want          []events.Happening
	}{
		"it registers": {events.Node{}, node("Ready", heard), []events.Happening{
			normal("Registered", "2026-01-01T00:00:00Z", "the node is new, with nvidia.com/gpu 8"), normal("Ready", at, "the node takes new work"),
		}},
		"an operator creates it": {events.Node{}, with(node("Unregistered"), func(n *events.Node) { n.Status.Incarnation = nil }), []events.Happening{
			normal("Created", "2026-01-01T00:00:00Z", "an operator has created the node, which should have nvidia.com/gpu 8"),
		}},
		"its agent is not heard any more": {node("Ready", heard), node("NotReady", expired), []events.Happening{warning("NotReady", at, "LeaseExpired: nobody hears it")}},
		"it is new and not heard yet":     {events.Node{}, node("NotReady", expired), []events.Happening{normal("Registered", "2026-01-01T00:00:00Z", "the node is new, with nvidia.com/gpu 8")}},
		"nothing is known of it yet":      {node("NotReady", expired), node("NotReady", condition("Ready", "Unknown", "NotObserved", "")), nil},
		"it is heard again":               {node("NotReady", expired), node("Ready", heard), []events.Happening{normal("Ready", at, "the node takes new work")}},
		"it is ready for another reason":  {node("Ready", heard), node("Ready", condition("Ready", "True", "AgentReady", "")), nil},
		"its agent is in quarantine":      {node("Ready", heard), node("Quarantined", quarantine, held), []events.Happening{warning("Quarantined", at, "the store went back")}},
		"its disk is full":                {node("Ready", heard), node("Ready", heard, full), []events.Happening{latest(warning("DiskPressure", at, "4 MiB are left"))}},
		"its disk has room again":         {node("Ready", heard, full), node("Ready", heard, roomy), []events.Happening{normal("DiskPressureEnded", at, "the node has the condition DiskPressure no more")}},
		"a condition is gone":             {node("Ready", heard, full), node("Ready", heard), []events.Happening{normal("DiskPressureEnded", "", "the node has the condition DiskPressure no more")}},
		"its GPUs are healthy":            {node("Ready", heard), node("Ready", heard, condition("GPUHealthy", "True", "AllHealthy", "")), nil},
		"a GPU is not healthy":            {node("Ready", condition("GPUHealthy", "True", "AllHealthy", "")), node("Ready", condition("GPUHealthy", "False", "Suspect", "GPU 3 is suspect")), []events.Happening{latest(warning("GPUUnhealthy", at, "GPU 3 is suspect"))}},
		"its GPUs are healthy again":      {node("Ready", condition("GPUHealthy", "False", "Suspect", "GPU 3 is suspect")), node("Ready", condition("GPUHealthy", "True", "AllHealthy", "")), []events.Happening{normal("GPUHealthy", at, "all GPUs of the node are healthy again")}},
		"a device is lost":                {node("Ready", heard), node("Ready", heard, lost), []events.Happening{latest(warning("DeviceLost", at, lost.Message))}},
		"one more is lost":                {node("Ready", heard, lost), node("Ready", heard, lostMore), []events.Happening{latest(warning("DeviceLost", at, lostMore.Message))}},
		"the devices are back":            {node("Ready", heard, lost), node("Ready", heard), []events.Happening{normal("DeviceReturned", "", "no granted device of the node is lost any more")}},
		"it is cordoned":                  {with(node("Ready"), holds(2)), with(with(node("Ready"), cordoned), holds(2)), []events.Happening{normal("Cordoned", "", "no new work is placed on the node; 2 members hold devices there")}},
		"it is drained":                   {with(with(node("Ready"), cordoned), holds(1)), with(node("Ready"), cordoned), []events.Happening{normal("Drained", "", "the node is cordoned, and nothing is held there any more")}},
		"it is uncordoned":                {with(node("Ready"), cordoned), node("Ready"), []events.Happening{normal("Uncordoned", "", "new work is placed on the node again")}},
		"its host was restarted": {node("Ready"), with(node("Ready"), func(n *events.Node) { n.Status.Incarnation = &resource.Incarnation{JournalID: "j", BootID: "c"} }), []events.Happening{
			warning("Rebooted", "", "the host was restarted, and its agent has registered again"),
		}},
		"its journal is another": {node("Ready"), with(node("Ready"), func(n *events.Node) { n.Status.Incarnation = &resource.Incarnation{JournalID: "k", BootID: "b"} }), []events.Happening{
			warning("JournalReplaced", "", "the agent has registered again with an empty journal"),
		}},
		"its capacity is another": {node("Ready"), with(node("Ready"), func(n *events.Node) { n.Spec.Capacity = map[resource.Name]string{"nvidia.com/gpu": "7", "cpu": "4"} }), []events.Happening{
			normal("CapacityChanged", "", "cpu none → 4, nvidia.com/gpu 8 → 7"),
		}},
		"it is forgotten": {node("Ready"), events.Node{}, []events.Happening{normal("Deleted", "", "the node is forgotten")}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, events.OfNode(c.before, c.after)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEventsOfAQuota(t *testing.T) {
	quota := func(hard, soft, used int64) *events.Quota {
		q := &events.Quota{Created: at, Hard: resource.Vector{resource.GPU: hard}, Used: resource.Vector{resource.GPU: used}}
		if soft > 0 {
			q.Soft = resource.Vector{resource.GPU: soft}
		}
		return q
	}
	scoped := quota(8000, 0, 0)
	scoped.Scopes = "A"
	for name, c := range map[string]struct {
		before, after *events.Quota
		want          []events.Happening
	}{
		"it is made":                    {nil, quota(8000, 0, 0), []events.Happening{normal("Created", at, "the quota limits nvidia.com/gpu 8")}},
		"a limit is lowered":            {quota(8000, 0, 4000), quota(4000, 0, 4000), []events.Happening{normal("LimitsChanged", "", "nvidia.com/gpu 8 → 4")}},
		"a limit is lowered below use":  {quota(8000, 0, 6000), quota(4000, 0, 6000), []events.Happening{normal("LimitsChanged", "", "nvidia.com/gpu 8 → 4"), latest(warning("OverQuota", "", "6 nvidia.com/gpu are used, the limit is 4"))}},
		"the use is within it again":    {quota(4000, 0, 6000), quota(4000, 0, 3000), []events.Happening{latest(normal("WithinQuota", "", "3 nvidia.com/gpu are used, the limit is 4"))}},
		"the soft limit is exceeded":    {quota(8000, 4000, 4000), quota(8000, 4000, 5000), []events.Happening{latest(warning("OverSoftLimit", "", "5 nvidia.com/gpu are used, the soft limit is 4"))}},
		"it has other scopes":           {quota(8000, 0, 0), scoped, []events.Happening{normal("LimitsChanged", "", "other scopes")}},
		"a soft limit is added":         {quota(8000, 0, 0), quota(8000, 4000, 0), []events.Happening{normal("LimitsChanged", "", "soft nvidia.com/gpu none → 4")}},
		"it is deleted":                 {quota(8000, 0, 0), nil, []events.Happening{normal("Deleted", "", "the quota limits nothing any more")}},
		"use within limits is no event": {quota(8000, 0, 0), quota(8000, 0, 8000), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, events.OfQuota(c.before, c.after)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEventsOfATree(t *testing.T) {
	tree := func(nodes ...string) *events.Tree { // "name parent GPUs [hard] [limits]"
		made := &events.Tree{Created: at, Nodes: map[string]events.TreeNode{}}
		for _, text := range nodes {
			f := strings.Fields(text)
			gpus, err := strconv.ParseInt(f[2], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			n := events.TreeNode{Parent: strings.Trim(f[1], "-"), Quota: resource.Vector{resource.GPU: 1000 * gpus}}
			for _, word := range f[3:] {
				n.Hard, n.Limits = n.Hard || word == "hard", strings.TrimPrefix(word, "hard")
			}
			made.Nodes[f[0]] = n
		}
		return made
	}
	lab := []string{"all - 8", "a all 4", "b all 4"}
	many := slices.Clone(lab)
	for i := range 10 {
		many = append(many, fmt.Sprintf("g%d all 1", i))
	}
	for name, c := range map[string]struct {
		before, after *events.Tree
		want          []events.Happening
	}{
		"it is made":               {nil, tree(lab...), []events.Happening{normal("Created", at, "the tree has 3 nodes")}},
		"it is written as it was":  {tree(lab...), tree(lab...), nil},
		"limits are changed":       {tree(lab...), tree("all - 16", "a all 2", "b all 4"), []events.Happening{normal("LimitsChanged", "", "node a: nvidia.com/gpu 4 → 2; node all: nvidia.com/gpu 8 → 16")}},
		"a group moves":            {tree(lab...), tree("all - 8", "a b 4", "b all 4"), []events.Happening{normal("LimitsChanged", "", "node a: below b, before below all")}},
		"a group becomes hard":     {tree(lab...), tree("all - 8", "a all 4 hard", "b all 4"), []events.Happening{normal("LimitsChanged", "", "node a: hard")}},
		"a cap comes":              {tree(lab...), tree("all - 8", "a all 4 cap", "b all 4"), []events.Happening{normal("LimitsChanged", "", "node a: other limits")}},
		"a group has another name": {tree(lab...), tree("all - 8", "c all 4", "b all 4"), []events.Happening{normal("LimitsChanged", "", "node c is new; node a is gone")}},
		"there are many changes":   {tree(lab...), tree(many...), []events.Happening{normal("LimitsChanged", "", "node g0 is new; node g1 is new; node g2 is new; node g3 is new; node g4 is new; node g5 is new; node g6 is new; node g7 is new; 2 more changes")}},
		"it is deleted":            {tree(lab...), nil, []events.Happening{normal("Deleted", "", "the tree limits nothing any more")}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, events.OfTree(c.before, c.after)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
