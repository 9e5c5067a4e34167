package limits_test

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/wire/limits"
)

func TestAViolationNamesThePathFromTheMessage(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	assignment := &musterv1.Assignment{Gpus: []*musterv1.GPUGrant{{Uuid: "GPU-0"}, {Uuid: long}}}
	for name, c := range map[string]struct {
		message proto.Message
		want    string
	}{
		"a text in lists": {
			&musterv1.AgentMessage{Message: &musterv1.AgentMessage_Reply{Reply: &musterv1.Reply{
				Tx: "u.1.1.0", Members: []*musterv1.MemberAssignment{{}, {Member: 1, Assignment: assignment}},
			}}},
			"muster.v1.AgentMessage: reply.members[1].assignment.gpus[1].uuid: 1048576 bytes, more than 256",
		},
		"a number": {
			&musterv1.RegisterRequest{Host: &musterv1.Host{Topology: &musterv1.Topology{Nodes: []*musterv1.NUMANode{{Memory: 1<<63 - 1}}}}},
			"muster.v1.RegisterRequest: host.topology.nodes[0].memory: 9223372036854775807 is outside 0..1125899906842624",
		},
		"a unit of fewer members than none": {
			&musterv1.AgentMessage{Message: &musterv1.AgentMessage_Occupancy{Occupancy: &musterv1.Occupancy{Grants: []*musterv1.Grant{{}, {UnitMembers: -1}}}}},
			"muster.v1.AgentMessage: occupancy.grants[1].unit_members: -1 is outside 0..1048576",
		},
		"a reserve of a unit of too many members": {
			&musterv1.Reserve{UnitMembers: 1<<20 + 1}, "muster.v1.Reserve: unit_members: 1048577 is outside 0..1048576",
		},
		"the key of a map": {
			&musterv1.Host{Labels: map[string]string{"a b\x1b[2J": "c"}},
			`muster.v1.Host: labels[key "a b?[2J"]: "a b?[2J" has a character at byte 1 that is not of letters, digits, ` + "`.`, `_`, `-`, `/`",
		},
		"the value of a map": {
			&musterv1.Host{Labels: map[string]string{"zone": long}}, `muster.v1.Host: labels["zone"]: 1048576 bytes, more than 253`,
		},
		"an unknown state": {
			&musterv1.Reply{State: 99}, "muster.v1.Reply: state: 99 is no value of Reply_State",
		},
		"an escape in an identifier": {
			&musterv1.ResolveRequest{NodeId: "n1", Tx: "u\x1b[31m"}, `muster.v1.ResolveRequest: tx: "u?[31m" has a character at byte 1 that is not of visible ASCII`,
		},
		"usage of 2^62": {
			&schedulerv1.HeartbeatRequest{CurrentUsage: &schedulerv1.ResourceUsage{MemoryBytes: 1 << 62}},
			"scheduler.v1.HeartbeatRequest: current_usage.memory_bytes: 4611686018427387904 is outside 0..1125899906842624",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := limits.Admit(c.message)
			if err == nil || err.Error() != c.want {
				t.Errorf("error %v, want %s", err, c.want)
			}
			if status.Code(err) != codes.InvalidArgument || !errors.As(err, new(*limits.Violation)) {
				t.Errorf("error of code %s, type %T", status.Code(err), err)
			}
		})
	}
}

func TestTextForPeopleIsMadePlain(t *testing.T) {
	beat := &schedulerv1.HeartbeatRequest{NodeId: "n1", Conditions: []*schedulerv1.NodeCondition{
		{Type: "DiskPressure", Status: "False", Reason: "\x1b]0;owned\x07", Message: "a\tb\r\nc\x1b[2J\u202ed\u0085e"},
		{Type: "Ready", Status: "True", Message: "größer als 1 TiB – läuft"},
	}}
	if err := limits.Admit(beat); err != nil {
		t.Fatal(err)
	}
	if c := beat.GetConditions()[0]; c.GetReason() != "?]0;owned?" || c.GetMessage() != "a b  c?[2J?d e" {
		t.Errorf("reason %q, message %q", c.GetReason(), c.GetMessage())
	}
	if c := beat.GetConditions()[1]; c.GetMessage() != "größer als 1 TiB – läuft" {
		t.Errorf("plain text became %q", c.GetMessage())
	}
	host := &musterv1.Host{Labels: map[string]string{"a": "x\ty", "b": "z"}}
	if err := limits.Admit(host); err != nil || host.Labels["a"] != "x y" || host.Labels["b"] != "z" {
		t.Errorf("labels %q, %v", host.Labels, err)
	}
}

func TestPlainIsClippedBetweenCharacters(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		most int
		want string
	}{
		"short":               {"ab", 5, "ab"},
		"exactly so long":     {"abcde", 5, "abcde"},
		"longer":              {"abcdef", 5, "ab…"},
		"cut in a character":  {"aéééé", 6, "aé…"},
		"bytes that are none": {"a\xffb\xc3", 9, "a?b?"},
		"no room":             {"abcdef", 1, "…"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := limits.Plain(c.text, c.most); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestFieldsOfANewerPeerAreDropped(t *testing.T) {
	m := &musterv1.ResolveRequest{NodeId: "n1"}
	encoded, err := proto.Marshal(&musterv1.RegisterRequest{NodeId: "n1", Version: strings.Repeat("v", 9999)}) // field 6 is unknown to ResolveRequest
	if err != nil {
		t.Fatal(err)
	}
	within := &musterv1.ResolveResponse{Record: &musterv1.Record{Tx: "t"}}
	m.ProtoReflect().SetUnknown(encoded)
	within.Record.ProtoReflect().SetUnknown(encoded)
	if err := errors.Join(limits.Admit(m), limits.Admit(within)); err != nil {
		t.Fatal(err)
	}
	if n := len(m.ProtoReflect().GetUnknown()) + len(within.Record.ProtoReflect().GetUnknown()); n > 0 {
		t.Errorf("%d bytes of unknown fields are kept", n)
	}
}

// FuzzPlain: no text grows, and a plain text stays as it is.
func FuzzPlain(f *testing.F) {
	for _, seed := range []string{"", "a\tb", "\x1b[31mred", "\u202eabc", "\xff\xfe", "größer"} {
		f.Add(seed, 16)
	}
	f.Fuzz(func(t *testing.T, text string, most int) {
		most = max(3, most&0xffff)
		plain := limits.Plain(text, most)
		if len(plain) > most || strings.ContainsAny(plain, "\x1b\n\r\t\x00\x7f\u202e\u2028") || limits.Plain(plain, most) != plain {
			t.Errorf("%q became %q", text, plain)
		}
	})
}

// eight is a Reply of one member with eight GPUs, 32 CPUs and its memory.
func eight(cpus int) *musterv1.AgentMessage {
	a := &musterv1.Assignment{Memory: []*musterv1.MemoryGrant{{Bytes: 64 << 30}}}
	for i := range 8 {
		a.Gpus = append(a.Gpus, &musterv1.GPUGrant{Index: int32(i), Uuid: "GPU-5b6f3c2e-0000-4000-8000-000000000000", Milli: 1000})
	}
	for i := range cpus {
		a.Cpus = append(a.Cpus, &musterv1.CPUGrant{Id: int32(i), Milli: 1000})
	}
	return &musterv1.AgentMessage{LedgerHash: 1 << 63, Message: &musterv1.AgentMessage_Reply{Reply: &musterv1.Reply{
		Tx: "alloc-5b6f3c2e-0000-4000-8000-000000000000.1f4.2a.00112233445566778899aabbccddeeff", State: musterv1.Reply_RESERVED,
		Incarnation:        &musterv1.Incarnation{JournalId: "5b6f3c2e-0000-4000-8000-000000000000", BootId: "5b6f3c2e-0000-4000-8000-000000000001"},
		RegisteredRevision: 17, Members: []*musterv1.MemberAssignment{{Assignment: a}},
	}}}
}

func BenchmarkAdmit(b *testing.B) {
	for name, m := range map[string]proto.Message{
		"reply of 8 GPUs":             eight(0),
		"reply of 8 GPUs and 64 CPUs": eight(64),
		"heartbeat":                   &schedulerv1.HeartbeatRequest{NodeId: "n1", CurrentUsage: &schedulerv1.ResourceUsage{CpuMillicores: 5}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := limits.Admit(m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
