package agents

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire"
)

func reply(r *musterv1.Reply) *musterv1.AgentMessage {
	return &musterv1.AgentMessage{Message: &musterv1.AgentMessage_Reply{Reply: r}}
}

func TestDecodeRefuses(t *testing.T) {
	half := &musterv1.Incarnation{JournalId: "j"}
	registered := func(r *musterv1.Registered) *musterv1.AgentMessage {
		return &musterv1.AgentMessage{Message: &musterv1.AgentMessage_Registered{Registered: r}}
	}
	occupancy := func(o *musterv1.Occupancy) *musterv1.AgentMessage {
		return &musterv1.AgentMessage{Message: &musterv1.AgentMessage_Occupancy{Occupancy: o}}
	}
	negative := []*musterv1.MemberAssignment{{Member: -1}}
	halfPage := []*musterv1.MemberAssignment{{Assignment: &musterv1.Assignment{Hugepages: []*musterv1.HugepageGrant{{Size: 2 << 20, Bytes: 1 << 20}}}}}
	sick := []*musterv1.DeviceHealth{{Index: 1, Health: "dizzy"}}
	cases := map[string]struct {
		message *musterv1.AgentMessage
		want    string
	}{
		"nothing":                              {&musterv1.AgentMessage{}, "unknown"},
		"a reply on nothing":                   {reply(&musterv1.Reply{State: musterv1.Reply_HELD}), "reply.tx"},
		"a reply without a state":              {reply(&musterv1.Reply{Tx: "tx"}), "state 0"},
		"a reply of half an incarnation":       {reply(&musterv1.Reply{Tx: "tx", State: 1, Incarnation: half}), "incarnation"},
		"a reply with a negative member":       {reply(&musterv1.Reply{Tx: "tx", State: 1, Members: negative}), "-1"},
		"a reply with a reason without code":   {reply(&musterv1.Reply{Tx: "tx", State: 1, Reasons: []*musterv1.Reason{{}}}), "code"},
		"a registration without incarnation":   {registered(&musterv1.Registered{Revision: 1}), "incarnation"},
		"a registration at no revision":        {registered(&musterv1.Registered{Incarnation: &musterv1.Incarnation{JournalId: "j", BootId: "b"}}), "revision 0"},
		"a grant without a state":              {occupancy(&musterv1.Occupancy{Grants: []*musterv1.Grant{{Tx: "tx"}}}), "grant tx"},
		"a grant with a negative member":       {occupancy(&musterv1.Occupancy{Grants: []*musterv1.Grant{{Tx: "tx", State: 1, Members: negative}}}), "grant tx"},
		"a unit of fewer members than none":    {occupancy(&musterv1.Occupancy{Grants: []*musterv1.Grant{{Tx: "tx", State: 1, UnitMembers: -1}}}), "grant tx: its unit has -1 members"},
		"a grant told twice":                   {occupancy(&musterv1.Occupancy{Grants: []*musterv1.Grant{{Tx: "tx", State: 1}, {Tx: "tx", State: 1}}}), `grants[1].tx: "tx" is empty or told twice`},
		"a grant without a transaction":        {occupancy(&musterv1.Occupancy{Grants: []*musterv1.Grant{{State: 1}}}), `grants[0].tx: "" is empty`},
		"a member twice":                       {reply(&musterv1.Reply{Tx: "tx", State: 1, Members: []*musterv1.MemberAssignment{{Member: 1}, {Member: 1}}}), "member 1 follows member 1"},
		"a device told twice":                  {occupancy(&musterv1.Occupancy{Health: []*musterv1.DeviceHealth{{Health: "tainted"}, {Health: "suspect"}}}), "device 0: told twice"},
		"a device below zero":                  {occupancy(&musterv1.Occupancy{Health: []*musterv1.DeviceHealth{{Index: -1, Health: "tainted"}}}), "device -1"},
		"a grant of half a huge page":          {occupancy(&musterv1.Occupancy{Grants: []*musterv1.Grant{{Tx: "tx", State: 5, Members: halfPage}}}), "grant tx: member 0: assignment.hugepages[0].bytes"},
		"a health that is unknown":             {occupancy(&musterv1.Occupancy{Health: sick}), "dizzy"},
		"a change to a health that is unknown": {&musterv1.AgentMessage{Message: &musterv1.AgentMessage_Health{Health: &musterv1.HealthChange{Devices: sick}}}, "dizzy"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			event, err := decode("n1", c.message)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("event %+v, error %v, want %q in it", event, err, c.want)
			}
		})
	}
}

// FuzzDecode: no message crashes the leader, and every event is of the node.
func FuzzDecode(f *testing.F) {
	profile, err := fake.Lookup("gpu2")
	if err != nil {
		f.Fatal(err)
	}
	host := wire.ToHost(grant.Host{Hostname: "h", Topology: profile.Topology(), Inventory: profile.Inventory("n1")})
	a := resource.Assignment{GPUs: []resource.GPUGrant{{Index: 1, UUID: "GPU-1", Milli: 1000}}}
	partitioned := resource.Assignment{
		CPUs:      []resource.CPUGrant{{ID: 1, Milli: 1000}, {ID: 33, Milli: 1000}},
		Hugepages: []resource.HugepageGrant{{Node: 0, Size: 2 << 20, Bytes: 1 << 30}},
		MIG:       []resource.MIGGrant{{GPU: 0, Instance: 2, UUID: "MIG-1", Profile: "1g.10gb"}},
	}
	for _, m := range []*musterv1.AgentMessage{
		{Message: &musterv1.AgentMessage_Occupancy{Occupancy: &musterv1.Occupancy{
			Grants: []*musterv1.Grant{{Tx: "tx", Unit: "u", Epoch: 1, State: musterv1.Reply_HELD, Members: []*musterv1.MemberAssignment{wire.ToMember(0, partitioned)}}},
			Health: []*musterv1.DeviceHealth{{Index: 1, Health: "tainted", Reason: "XID 79"}},
		}}},
		{Message: &musterv1.AgentMessage_Hello{Hello: &musterv1.AgentHello{NodeId: "n1", Host: host}}},
		reply(&musterv1.Reply{Tx: "tx", State: musterv1.Reply_RESERVED, Members: []*musterv1.MemberAssignment{wire.ToMember(0, a)}}),
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &musterv1.AgentMessage{}
		if proto.Unmarshal(b, m) != nil {
			return
		}
		event, err := decode("n1", m)
		if err == nil && event.NodeID() != "n1" {
			t.Errorf("event %+v of another node", event)
		}
	})
}
