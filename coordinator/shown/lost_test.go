package shown_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// said are the conditions of an agent that names two devices as lost.
var said = []record.Condition{
	{Type: "GPUHealthy", Status: "False", Message: "GPU-c is tainted"},
	{Type: "DeviceLost", Status: "True", Message: "GPU-a MIG-1 ; held, and gone (the device was lost: fell off)"},
}

func TestALostDeviceIsFoundByItsWholeUUID(t *testing.T) {
	for name, c := range map[string]struct {
		told []record.Condition
		has  resource.Assignment
		want []string
	}{
		"a lost GPU beside a present one": {said, resource.Assignment{GPUs: []resource.GPUGrant{{UUID: "GPU-b"}, {UUID: "GPU-a"}}}, []string{"GPU-a"}},
		"a lost MIG instance":             {said, resource.Assignment{MIG: []resource.MIGGrant{{UUID: "MIG-1"}}}, []string{"MIG-1"}},
		"a UUID that begins alike":        {said, resource.Assignment{GPUs: []resource.GPUGrant{{UUID: "GPU-"}}}, nil},
		"a tainted GPU is not lost":       {said, resource.Assignment{GPUs: []resource.GPUGrant{{UUID: "GPU-c"}}}, nil},
		"an agent that says nothing":      {nil, resource.Assignment{GPUs: []resource.GPUGrant{{UUID: "GPU-a"}}}, nil},
		"the condition has ended": {
			[]record.Condition{{Type: "DeviceLost", Status: "False", Message: "GPU-a"}}, resource.Assignment{GPUs: []resource.GPUGrant{{UUID: "GPU-a"}}}, nil,
		},
	} {
		if diff := cmp.Diff(c.want, shown.LostDevices(c.told, c.has)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAllocationAndJobShowTheirLostDevices(t *testing.T) {
	places := []shown.Place{
		{Node: "n1", Assignment: resource.Assignment{GPUs: []resource.GPUGrant{{UUID: "GPU-a", Milli: 1000}}}},
		{Node: "n2", Assignment: resource.Assignment{GPUs: []resource.GPUGrant{{UUID: "GPU-a", Milli: 1000}}}},
	}
	job := &api.Job{Metadata: api.ObjectMeta{Name: "j", Namespace: "ns"}}
	u := shown.Unit{Record: &record.Unit{Namespace: "ns", Name: "j", Kind: record.JobUnit, Members: 2, Phase: string(api.Running)}, Job: job, Request: &resource.Request{}, Places: places}
	u.Revision = 5
	lossOf := func(id resource.NodeID) shown.Loss {
		if id == "n1" {
			return shown.Loss{NodeLost: record.NodeLost{Lost: []string{"GPU-a"}}, Revision: 9}
		}
		return shown.Loss{NodeLost: record.NodeLost{Lost: []string{"GPU-z"}}, Revision: 11}
	}
	for i, want := range []resource.Revision{9, 5} { // the loss changes the member that holds the device, and no other
		m := shown.Member{Unit: u, Index: i}
		if m.FindLost(lossOf); m.Revision != want {
			t.Errorf("member %d is at revision %d, want %d", i, m.Revision, want)
		}
	}
	u.FindLost(lossOf)
	if u.Revision != 9 {
		t.Errorf("the job is at revision %d, want 9", u.Revision)
	}
	var got []api.Condition
	for i := range places {
		m := shown.Member{Unit: u, Index: i}
		got = append(got, m.Show().Status.Conditions[2:]...)
	}
	j := shown.Job{Record: &record.Job{Namespace: "ns", Name: "j"}, Document: job, Units: []shown.Unit{u}}
	got = append(got, j.Show().Status.Conditions[1:]...)
	want := []api.Condition{
		{Type: "DeviceLost", Status: "True", Reason: "DeviceLost", Message: "GPU-a of node n1 is lost; `muster describe node n1` tells why"},
		{Type: "DeviceLost", Status: "True", Reason: "DeviceLost", Message: "lost devices: j-0: GPU-a of node n1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

// A device that has returned is lost no more, and its holder has changed by that too.
func TestAReturnedDeviceChangesItsHolder(t *testing.T) {
	m := shown.Member{Unit: shown.Unit{Revision: 5, Places: []shown.Place{{Node: "n1", Assignment: resource.Assignment{GPUs: []resource.GPUGrant{{UUID: "GPU-a"}}}}}}}
	m.FindLost(func(resource.NodeID) shown.Loss {
		return shown.Loss{NodeLost: record.NodeLost{Lost: []string{"GPU-b"}, Returned: []string{"GPU-a"}}, Revision: 9}
	})
	if m.Revision != 9 || m.Lost != nil {
		t.Errorf("revision %d, lost %v; want 9 and none", m.Revision, m.Lost)
	}
}
