package agent

import (
	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire/limits"
)

// memberUses collects the measured use of members that run, for one heartbeat. Members
// beyond limits.MaxMemberUses are left out, and so are the devices of a member beyond
// limits.MaxUsedDevices in all: the record of the end has them.
type memberUses struct {
	states           func(resource.TxID) []grant.WorkState
	members, devices int
}

// of returns the uses of a transaction's members, ascending by member.
func (m *memberUses) of(tx resource.TxID) []rpc.MemberUse {
	var list []rpc.MemberUse
	for _, s := range m.states(tx) {
		if s.Phase != grant.WorkRunning || s.Use == nil || m.members == limits.MaxMemberUses {
			continue
		}
		use := s.Use
		if m.devices+len(use.Devices) > limits.MaxUsedDevices {
			cut := *use
			cut.Devices = nil
			use = &cut
		}
		m.members, m.devices = m.members+1, m.devices+len(use.Devices)
		if last := len(list) - 1; last >= 0 && list[last].Member == s.Member { // a later start
			list[last].Use = use
			continue
		}
		list = append(list, rpc.MemberUse{Member: s.Member, Use: use})
	}
	return list
}
