package limits_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/encoding"
	"google.golang.org/protobuf/proto"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/numa"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/wire/limits"
)

// largest is the description of a host with as much of everything as is
// supported, and with names as long as the vendors' are.
func largest() *musterv1.Host {
	const uuid = "GPU-5b6f3c2e-0000-4000-8000-000000000000"
	h := &musterv1.Host{Hostname: strings.Repeat("h", 253), Topology: &musterv1.Topology{}, Inventory: &musterv1.Inventory{Driver: "550.54.15"}, Labels: map[string]string{}}
	for i := range limits.MaxLabels {
		h.Labels[fmt.Sprintf("%s/%062d", strings.Repeat("p", 253), i)] = strings.Repeat("v", 253)
	}
	perNode := numa.MaxCPUs / numa.MaxNodes
	for n := range numa.MaxNodes {
		var cpus []string
		for i := range perNode {
			id := i*numa.MaxNodes + n // no two are neighbours
			cpus = append(cpus, fmt.Sprint(id))
			h.Topology.Cpus = append(h.Topology.Cpus, &musterv1.CPU{
				Id: int32(id), Socket: int32(n), Core: int32(id), L3: int32(id), Numa: int32(n), Online: true, Isolated: true,
				Siblings: fmt.Sprintf("%d,%d", id, (id+4096)%8192), Kind: 1,
			})
		}
		h.Topology.Nodes = append(h.Topology.Nodes, &musterv1.NUMANode{
			Id: int32(n), Cpus: strings.Join(cpus, ","), Memory: 4 << 40, Hugepages: map[int32]int64{2048: 1 << 20, 1 << 20: 1 << 10},
		})
		for range numa.MaxNodes {
			h.Topology.Distances = append(h.Topology.Distances, 255)
		}
	}
	for i := range devices.MaxDevices {
		d := &musterv1.Device{Uuid: uuid, Model: "NVIDIA H200 Tensor Core GPU 141GB HBM3e", Memory: 141 << 30, PciBusId: "0000:07:00.0", NumaNode: int32(i), MigEnabled: true, Health: "ok"}
		for range devices.MaxMIGInstances {
			d.MigInstances = append(d.MigInstances, &musterv1.MIGInstance{Uuid: "MIG-" + uuid, Profile: "1g.18gb+me", Memory: 18 << 30})
		}
		h.Inventory.Devices = append(h.Inventory.Devices, d)
	}
	h.Inventory.Connections = make([]byte, devices.MaxDevices*devices.MaxDevices)
	return h
}

// TestTheLargestHonestMessagesFit holds the sizes of package limits to their
// reasons: the messages of the largest host are not refused.
func TestTheLargestHonestMessagesFit(t *testing.T) {
	host := largest()
	const tx = "alloc-5b6f3c2e-0000-4000-8000-000000000000.7fffffff.ffffff.00112233445566778899aabbccddeeff"
	incarnation := &musterv1.Incarnation{JournalId: strings.Repeat("j", 36), BootId: strings.Repeat("b", 36)}
	unit, name, tenant := tx[:42], strings.Repeat("n", 63)+"/alloc/"+strings.Repeat("a", 253)+"/0", strings.Repeat("t", 63)
	occupancy, records := &musterv1.Occupancy{}, &musterv1.ReadNodeResponse{}
	for i := range limits.MaxGrants {
		a := &musterv1.Assignment{Memory: []*musterv1.MemoryGrant{{Node: 255, Bytes: 1 << 40}}, Gpus: []*musterv1.GPUGrant{{Uuid: host.Inventory.Devices[0].Uuid, Milli: 125}}}
		for c := range 8 {
			a.Cpus = append(a.Cpus, &musterv1.CPUGrant{Id: int32(8000 + c), Milli: 1000})
		}
		members := []*musterv1.MemberAssignment{{Member: 1000, Assignment: a}}
		own := fmt.Sprintf("%s%04x", tx[:len(tx)-4], i)
		occupancy.Grants = append(occupancy.Grants, &musterv1.Grant{Tx: own, Unit: unit, Epoch: 1 << 31, State: musterv1.Reply_HELD, Members: members, Name: name, Tenant: tenant, UnitMembers: 4096})
		records.Records = append(records.Records, &musterv1.Record{
			Tx: own, Unit: unit, Epoch: 1 << 31, State: musterv1.Record_COMMITTED, Members: members, Revision: 1 << 40, Incarnation: incarnation, Name: name, Tenant: tenant, UnitMembers: 4096,
		})
	}
	for name, c := range map[string]struct {
		message, empty proto.Message
		most           int
	}{
		"Register": {&musterv1.RegisterRequest{NodeId: "n1", Incarnation: incarnation, Host: host, AgentAddr: "[2001:db8::1]:7077"}, &musterv1.RegisterRequest{}, limits.MaxRegister},
		"Hello": {&musterv1.AgentMessage{Message: &musterv1.AgentMessage_Hello{Hello: &musterv1.AgentHello{NodeId: "n1", Host: host, Occupancy: occupancy}}},
			&musterv1.AgentMessage{}, limits.MaxSession},
		"ReadNode": {records, &musterv1.ReadNodeResponse{}, limits.MaxAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			codec := limits.Codec()
			encoded, err := codec.Marshal(c.message)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d bytes of %d", encoded.Len(), c.most)
			if encoded.Len() > c.most {
				t.Errorf("%d bytes, more than %d", encoded.Len(), c.most)
			}
			if err := codec.Unmarshal(encoded, c.empty); err != nil {
				t.Error(err)
			}
			if err := limits.Admit(c.empty); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAMessageIsCountedBeforeItIsDecoded(t *testing.T) {
	for name, c := range map[string]struct {
		message, empty proto.Message
		want           string
	}{
		"bytes": {
			&musterv1.RegisterRequest{Version: strings.Repeat("v", limits.MaxRegister)}, &musterv1.RegisterRequest{},
			"muster.v1.RegisterRequest: 1048580 bytes, more than 1048576",
		},
		"messages of a list": {
			&musterv1.AgentMessage{Message: &musterv1.AgentMessage_Occupancy{Occupancy: &musterv1.Occupancy{Grants: make([]*musterv1.Grant, 140_000)}}}, &musterv1.AgentMessage{},
			"muster.v1.AgentMessage: more than 131072 entries and messages within, in all",
		},
		"entries of a list": {
			&musterv1.Reserve{After: make([]string, 5000)}, &musterv1.Reserve{}, "muster.v1.Reserve: more than 4096 entries",
		},
		"a message that says it is short": {
			&musterv1.EnrollRequest{Csr: make([]byte, limits.MaxEnroll)}, &musterv1.EnrollRequest{}, "muster.v1.EnrollRequest: 32772 bytes, more than 32768",
		},
	} {
		t.Run(name, func(t *testing.T) {
			encoded, err := encoding.GetCodecV2("proto").Marshal(c.message)
			if err != nil {
				t.Fatal(err)
			}
			if err := limits.Codec().Unmarshal(encoded, c.empty); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
			if proto.Size(c.empty) > 0 {
				t.Error("it was decoded")
			}
		})
	}
}

// FuzzCodec: no bytes panic, and a message that is admitted is within its size
// however it is encoded again.
func FuzzCodec(f *testing.F) {
	for _, m := range []proto.Message{eight(2), &musterv1.AgentMessage{}, &musterv1.AgentMessage{Message: &musterv1.AgentMessage_Hello{Hello: &musterv1.AgentHello{Host: &musterv1.Host{Labels: map[string]string{"a": "b\t"}}}}}} {
		encoded, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
	}
	f.Fuzz(func(t *testing.T, encoded []byte) {
		m := &musterv1.AgentMessage{}
		if limits.Decode(encoded, m) != nil {
			return
		}
		again, err := proto.Marshal(m)
		if err != nil || len(again) > limits.MaxSession {
			t.Fatalf("%d bytes became %d: %v", len(encoded), len(again), err)
		}
		next := &musterv1.AgentMessage{}
		if err := limits.Decode(again, next); err != nil || !proto.Equal(m, next) {
			t.Fatalf("admitted once, then %v: %v", err, next)
		}
	})
}
