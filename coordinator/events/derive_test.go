package events_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/events"
)

func allocation(phase api.Phase, conditions ...api.Condition) *api.Allocation {
	return &api.Allocation{Status: api.AllocationStatus{Phase: phase, NodeName: "n1", Message: "why", Conditions: conditions}}
}

func condition(kind, status, reason, message string) api.Condition {
	return api.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: "2026-01-02T03:04:05Z"}
}

func node(phase string, cordoned bool, conditions ...api.Condition) *api.Node {
	n := &api.Node{Status: api.NodeStatus{Phase: phase, Conditions: conditions}}
	n.Spec.Unschedulable = cordoned
	return n
}

func job(phase api.Phase, conditions ...api.Condition) *api.Job {
	return &api.Job{Status: api.JobStatus{Phase: phase, Message: "why", Conditions: conditions}}
}

func quota(scope string) *api.ResourceQuota {
	q := &api.ResourceQuota{}
	q.Spec.Scopes = []string{scope}
	return q
}

func TestEventsOfAChange(t *testing.T) {
	const at = "2026-01-02T03:04:05Z"
	noRoom := condition("Scheduled", "False", "WaitingForResources", "no place now")
	overQuota := condition("Scheduled", "False", "QuotaExceeded", "short of 2 nvidia.com/gpu")
	preempting := condition("Scheduled", "False", "Preempting", "waits for ml/old")
	placed, ready := condition("Scheduled", "True", "", ""), condition("Ready", "True", "", "")
	unready, lost := condition("Ready", "False", "Confirming", ""), condition("DeviceLost", "True", "Xid", "GPU-a")
	evicted, asked := condition("Terminating", "True", "Evicted", "drained"), condition("Terminating", "True", "UserRequested", "graceful")
	expired, heard := condition("Ready", "Unknown", "LeaseExpired", "nobody hears it"), condition("Ready", "True", "AgentHeard", "")
	started := events.Happening{Type: events.Normal, Reason: "Started", Message: "the agents of all members hold their devices", At: at}
	scheduled := events.Happening{Type: events.Normal, Reason: "Scheduled", Message: "placed on node n1", At: at}
	for name, c := range map[string]struct {
		before, after any
		want          []events.Happening
	}{
		"an allocation waits for room":           {nil, allocation(api.Pending, noRoom), []events.Happening{{Type: events.Normal, Reason: "Queued", Message: "WaitingForResources: no place now", At: at}}},
		"it waits on for the same reason":        {allocation(api.Pending, noRoom), allocation(api.Pending, noRoom), nil},
		"quota holds it back":                    {allocation(api.Pending, noRoom), allocation(api.Pending, overQuota), []events.Happening{{Type: events.Warning, Reason: "Queued", Message: "QuotaExceeded: short of 2 nvidia.com/gpu", At: at}}},
		"others make room for it":                {allocation(api.Pending, noRoom), allocation(api.Pending, preempting), []events.Happening{{Type: events.Normal, Reason: "Preempting", Message: "waits for ml/old", At: at}}},
		"it is placed":                           {allocation(api.Pending, noRoom), allocation(api.Running, placed, unready), []events.Happening{scheduled}},
		"its agents confirm":                     {allocation(api.Running, placed, unready), allocation(api.Running, placed, ready), []events.Happening{started}},
		"a Log begins with one that runs":        {nil, allocation(api.Running, placed, ready), []events.Happening{scheduled, started}},
		"a device is lost":                       {allocation(api.Running, placed, ready), allocation(api.Running, placed, ready, lost), []events.Happening{{Type: events.Warning, Reason: "DeviceLost", Message: "GPU-a", At: at}}},
		"the device is back":                     {allocation(api.Running, lost), allocation(api.Running), []events.Happening{{Type: events.Normal, Reason: "DeviceBack", Message: "no device of the allocation is lost any more"}}},
		"it is evicted":                          {allocation(api.Running, placed), allocation(api.Terminating, placed, evicted), []events.Happening{{Type: events.Warning, Reason: "Evicted", Message: "drained", At: at}}},
		"its owner ends it":                      {allocation(api.Running, placed), allocation(api.Terminating, placed, asked), []events.Happening{{Type: events.Normal, Reason: "Terminating", Message: "graceful", At: at}}},
		"it was preempted":                       {allocation(api.Terminating, evicted), allocation(api.Preempted), []events.Happening{{Type: events.Warning, Reason: "Preempted", Message: "why"}}},
		"it was cancelled":                       {allocation(api.Terminating, asked), allocation(api.Cancelled), []events.Happening{{Type: events.Normal, Reason: "Cancelled", Message: "why"}}},
		"it is gone":                             {allocation(api.Cancelled), nil, []events.Happening{{Type: events.Normal, Reason: "Deleted", Message: "the allocation holds nothing and is gone"}}},
		"a job waits":                            {nil, job(api.Queued, condition("Queued", "True", "Refused", "node n1 said no")), []events.Happening{{Type: events.Warning, Reason: "Queued", Message: "Refused: node n1 said no", At: at}}},
		"a job runs":                             {job(api.Queued), job(api.Running), []events.Happening{{Type: events.Normal, Reason: "Running", Message: "the first members are placed"}}},
		"a job is cancelled":                     {job(api.Running), job(api.Cancelling), []events.Happening{{Type: events.Normal, Reason: "Cancelling", Message: "why"}}},
		"a job has failed":                       {job(api.Running), job(api.Failed), []events.Happening{{Type: events.Warning, Reason: "Failed", Message: "why"}}},
		"a node is not heard any more":           {node("Ready", false, heard), node("NotReady", false, expired), []events.Happening{{Type: events.Warning, Reason: "NotReady", Message: "LeaseExpired: nobody hears it", At: at}}},
		"a node is heard again":                  {node("NotReady", false, expired), node("Ready", false, heard), []events.Happening{{Type: events.Normal, Reason: "Ready", At: at}}},
		"a node is cordoned":                     {node("Ready", false, heard), node("Ready", true, heard), []events.Happening{{Type: events.Normal, Reason: "Cordoned", Message: "no new work is placed on the node"}}},
		"a node is uncordoned":                   {node("Ready", true, heard), node("Ready", false, heard), []events.Happening{{Type: events.Normal, Reason: "Uncordoned", Message: "new work is placed on the node again"}}},
		"a node has lost a device":               {node("Ready", false, heard), node("Ready", false, heard, lost), []events.Happening{{Type: events.Warning, Reason: "DeviceLost", Message: "GPU-a", At: at}}},
		"a node is forgotten":                    {node("Ready", false), nil, []events.Happening{{Type: events.Normal, Reason: "Deleted", Message: "the node is forgotten"}}},
		"a quota has other limits":               {quota("A"), quota("B"), []events.Happening{{Type: events.Normal, Reason: "LimitsChanged", Message: "the quota has other limits or scopes"}}},
		"a quota is made, which is no event":     {nil, quota("A"), nil},
		"a kind without events":                  {nil, &api.QuotaForest{}, nil},
		"the figures of a quota make no event":   {quota("A"), quota("A"), nil},
		"a phase that is not final is no ending": {job(api.Queued), job(api.Queued), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, events.Derive(c.before, c.after)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
