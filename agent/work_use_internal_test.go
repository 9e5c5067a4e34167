package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire/limits"
)

func TestAHeartbeatHasTheUseOfMembersThatRun(t *testing.T) {
	old, now := &grant.WorkUse{CPU: 1}, &grant.WorkUse{CPU: 2}
	uses := memberUses{states: func(resource.TxID) []grant.WorkState {
		return []grant.WorkState{
			{Member: 0, Phase: grant.WorkStarting},
			{Member: 1, Phase: grant.WorkRunning, Use: old},
			{Member: 1, Restart: 1, Phase: grant.WorkRunning, Use: now},
			{Member: 2, Phase: grant.WorkEnded, Reason: "Completed", Use: old},
			{Member: 3, Phase: grant.WorkRunning},
		}
	}}
	if diff := cmp.Diff([]rpc.MemberUse{{Member: 1, Use: now}}, uses.of("a")); diff != "" {
		t.Error(diff)
	}
}

func TestTheUsesInAHeartbeatAreBounded(t *testing.T) {
	use := &grant.WorkUse{Devices: make([]grant.DeviceUse, 3)}
	uses := memberUses{states: func(resource.TxID) (list []grant.WorkState) {
		for i := range 100 {
			list = append(list, grant.WorkState{Member: i, Phase: grant.WorkRunning, Use: use})
		}
		return list
	}}
	members, devices := 0, 0
	for range 12 {
		for _, u := range uses.of("a") {
			members, devices = members+1, devices+len(u.Use.Devices)
		}
	}
	if members != limits.MaxMemberUses || devices > limits.MaxUsedDevices || devices < limits.MaxUsedDevices-3 {
		t.Errorf("%d members and %d devices, want %d and nearly %d", members, devices, limits.MaxMemberUses, limits.MaxUsedDevices)
	}
}
