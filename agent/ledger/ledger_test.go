package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

func replay(t *testing.T, l *ledger.Ledger, events []ledger.Event) error {
	t.Helper()
	return l.Replay([][]byte{ledger.AppendEvents(nil, events)})
}

func TestContradictoryJournalsAreRefusedWithTheRecordNamed(t *testing.T) {
	l := ready(t, machine(t, 8, 4))
	do(t, l, boot(1), gpus("a", 1, 2))
	granted := l.SnapshotEvents()[2:3]
	again := granted[0].(ledger.Granted).Grant
	again.Tx = "b"
	cases := map[string]struct {
		events []ledger.Event
		want   string
	}{
		"one device for two":         {[]ledger.Event{granted[0], ledger.Granted{Grant: again}}, "take"},
		"the same grant twice":       {[]ledger.Event{granted[0], granted[0]}, "it is RESERVED already"},
		"a commit of nothing":        {[]ledger.Event{ledger.Committed{Tx: "x"}}, "commit x: there is no such grant"},
		"a tombstone twice":          {[]ledger.Event{ledger.Buried{Tx: "x"}, ledger.Buried{Tx: "x"}}, "tombstone already"},
		"a stop after the end":       {[]ledger.Event{ledger.Buried{Tx: "a"}, ledger.StopBegun{Tx: "a"}}, "it is TOMBSTONE"},
		"a held grant dropped":       {[]ledger.Event{granted[0], ledger.Committed{Tx: "a"}, ledger.Dropped{Tx: "a"}}, "it is HELD"},
		"a promotion of what is not": {[]ledger.Event{granted[0], ledger.Promoted{Tx: "a"}}, "it is RESERVED"},
		"a victim that is not there": {[]ledger.Event{ledger.Granted{Grant: ledger.Grant{Tx: "w", State: grant.Waiting, Members: again.Members, Victims: []resource.TxID{"v"}}}}, "its victim v"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := replay(t, ledger.New(machine(t, 8, 4)), c.events)
			if err == nil || !strings.Contains(err.Error(), "journal corrupt at record 1 of 1") || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want a message with %q", err, c.want)
			}
		})
	}
}

// The journal of a host is replayed after its hardware changed.
func TestReplayOnChangedHardwareKeepsWhatIsStillThere(t *testing.T) {
	names := gpuNames(4)
	l := ready(t, machineWith(t, 8, 64<<30, names))
	c := gpus("a", 1, 2)
	c.Members[0].Request.CPU, c.Members[0].Request.Memory = 8000, 128<<30
	do(t, l, boot(1), c)
	do(t, l, boot(1), grant.Commit{Tx: "a", Epoch: 1, Revision: 6})
	journal := l.SnapshotEvents()

	// GPU 0 is gone, the others moved up, half the CPUs are gone, and each
	// node reports a little less memory.
	after := ledger.New(machineWith(t, 4, 64<<30-4096, names[1:]))
	if err := replay(t, after, journal); err != nil {
		t.Fatal(err)
	}
	if err := after.Check(); err != nil {
		t.Fatal(err)
	}
	g, _ := after.Lookup("a")
	want := []resource.GPUGrant{{Index: 0, UUID: names[1], Milli: 1000}, {Index: 3, UUID: names[0], Milli: 1000}}
	if diff := cmp.Diff(want, g.Members[0].Assignment.GPUs); diff != "" {
		t.Errorf("GPUs of the grant: %s", diff)
	}
	v := after.Snapshot()
	if v.GPUs[0].Milli != 0 || v.GPUs[1].Milli != 1000 || v.Nodes[0].CPU != 0 || v.Nodes[0].Memory != 0 {
		t.Errorf("free: %+v %+v", v.GPUs, v.Nodes)
	}
	do(t, after, boot(2), ledger.Start{Incarnation: incarnation("j1", "b2")})
	do(t, after, boot(2), ledger.Registered{Revision: 9, Records: []ledger.Record{{Tx: "a", State: grant.RecordCommitted, Members: g.Members, Revision: 8}}})
	do(t, after, boot(2), grant.Release{Tx: "a", Epoch: 1})
	do(t, after, boot(2), ledger.Stopped{Tx: "a"})
	if free := after.Snapshot(); free.GPUs[0].Milli != 1000 || free.Nodes[1].Memory != 64<<30-4096 {
		t.Errorf("after the release: %+v %+v", free.GPUs, free.Nodes)
	}
}

func TestRegistrationAdoptsTheRecordWhereTheLocalPromiseDiffers(t *testing.T) {
	l := ready(t, machine(t, 8, 4))
	do(t, l, boot(1), gpus("a", 1, 1))
	local, _ := l.Lookup("a")
	record := ledger.Holding{Assignment: local.Members[0].Assignment.Clone()}
	record.Assignment.GPUs = []resource.GPUGrant{{Index: 3, UUID: gpuNames(4)[3], Milli: 1000}}
	do(t, l, boot(2), ledger.Start{Incarnation: incarnation("j2", "b1")})
	reply := do(t, l, boot(2), ledger.Registered{Revision: 9, Records: []ledger.Record{{Tx: "a", Epoch: 1, State: grant.RecordCommitted, Members: []ledger.Holding{record}, Revision: 8}}})
	if g, _ := l.Lookup("a"); g.State != grant.Held || g.Members[0].Assignment.GPUs[0].Index != 3 || len(reply.Alarms) > 0 {
		t.Fatalf("%+v, alarms %v", g, reply.Alarms)
	}
	if l.Snapshot().GPUs[local.Members[0].Assignment.GPUs[0].Index].Milli != 1000 {
		t.Error("the device of the local promise was not freed")
	}
}

func TestMessagesThatMustNotComeRaiseAnAlarmAndChangeNothing(t *testing.T) {
	held := func(l *ledger.Ledger) {
		do(t, l, boot(1), gpus("a", 1, 1))
		do(t, l, boot(1), grant.Commit{Tx: "a", Epoch: 1, Revision: 6})
	}
	waiting := func(l *ledger.Ledger) {
		held(l)
		c := gpus("w", 1, 4)
		c.After = []resource.TxID{"a"}
		do(t, l, boot(1), c)
	}
	rebooted := func(l *ledger.Ledger) {
		held(l)
		do(t, l, boot(1), ledger.Start{Incarnation: incarnation("j1", "b2")})
	}
	listing := func(x ledger.Record) ledger.Registered {
		taken := []ledger.Holding{{Assignment: resource.Assignment{GPUs: []resource.GPUGrant{{Index: 0, UUID: gpuNames(4)[0], Milli: 1000}}}}}
		if x.Members != nil {
			x.Members = taken
		}
		return ledger.Registered{Revision: 7, Records: []ledger.Record{{Tx: "a", State: grant.RecordCommitted, Members: taken, Revision: 6}, x}}
	}
	cases := map[string]struct {
		given func(*ledger.Ledger)
		cmd   ledger.Command
	}{
		"ABORTED of a held grant":            {held, grant.Abort{Tx: "a", Epoch: 1}},
		"a held grant whose record is gone":  {held, ledger.Resolved{Tx: "a", State: grant.RecordAbsent}},
		"a held grant whose record aborted":  {held, ledger.Resolved{Tx: "a", State: grant.RecordAborted}},
		"COMMITTED of what only waits":       {waiting, grant.Commit{Tx: "w", Epoch: 1, Revision: 7}},
		"COMMITTED of what is not here":      {held, ledger.Resolved{Tx: "x", State: grant.RecordCommitted}},
		"a record whose devices others hold": {rebooted, listing(ledger.Record{Tx: "x", State: grant.RecordCommitted, Members: []ledger.Holding{{}}})},
		"a record that names no member here": {rebooted, listing(ledger.Record{Tx: "x", State: grant.RecordCommitted})},
		"COMMITTED of what has ended here": {
			func(l *ledger.Ledger) {
				do(t, l, boot(1), grant.Release{Tx: "x", Epoch: 1})
				do(t, l, boot(1), ledger.Start{Incarnation: incarnation("j1", "b2")})
			},
			ledger.Registered{Revision: 7, Records: []ledger.Record{{Tx: "x", State: grant.RecordCommitted}}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := ready(t, machine(t, 8, 4))
			c.given(l)
			before := l.Snapshot()
			if reply := do(t, l, boot(2), c.cmd); len(reply.Alarms) != 1 {
				t.Errorf("alarms: %v", reply.Alarms)
			}
			if diff := cmp.Diff(before.Grants, l.Snapshot().Grants, cmpopts.IgnoreFields(ledger.Grant{}, "Incarnation")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAGrantKeepsHowManyMembersItsUnitHas: from the Reserve, or from the record
// that is adopted; and over a replay of the journal.
func TestAGrantKeepsHowManyMembersItsUnitHas(t *testing.T) {
	held := ledger.Holding{Index: 2, Assignment: resource.Assignment{CPUs: []resource.CPUGrant{{ID: 1, Milli: 1000}}}}
	record := func(members int) ledger.Registered {
		return ledger.Registered{Revision: 5, Records: []ledger.Record{{
			Tx: "a", Epoch: 1, State: grant.RecordCommitted, Revision: 4, Members: []ledger.Holding{held}, UnitMembers: members,
		}}}
	}
	reserve := grant.Reserve{Tx: "a", Epoch: 1, TTL: time.Second, Members: []grant.MemberRequest{{Index: 2, Request: resource.Request{CPU: 1}}}, UnitMembers: 4}
	for name, c := range map[string]struct {
		commands []ledger.Command
		want     int
	}{
		"reserved":                             {[]ledger.Command{ledger.Registered{Revision: 5}, reserve}, 4},
		"reserved by a leader that says none":  {[]ledger.Command{ledger.Registered{Revision: 5}, grant.Reserve{Tx: "a", Epoch: 1, TTL: time.Second, Members: reserve.Members}}, 0},
		"adopted":                              {[]ledger.Command{record(3)}, 3},
		"adopted from a coordinator of before": {[]ledger.Command{record(0)}, 0},
		"adopted with too few":                 {[]ledger.Command{record(2)}, 0},
		"adopted with too many":                {[]ledger.Command{record(ledger.MaxUnitMembers + 1)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := ledger.New(machine(t, 8, 4))
			do(t, l, boot(0), ledger.Start{Incarnation: incarnation("j", "b")})
			for _, command := range c.commands {
				if reply := do(t, l, boot(1), command); reply.Refused() || len(reply.Alarms) > 0 {
					t.Fatal(reply)
				}
			}
			again := ledger.New(machine(t, 8, 4))
			if err := again.Replay([][]byte{ledger.AppendEvents(nil, l.SnapshotEvents())}); err != nil {
				t.Fatal(err)
			}
			for _, l := range []*ledger.Ledger{l, again} {
				if g, found := l.Lookup("a"); !found || g.UnitMembers != c.want {
					t.Errorf("found %t, the unit has %d members, want %d", found, g.UnitMembers, c.want)
				}
			}
		})
	}
}

func TestBadCommandsAreRefusedWithTheFieldAndTheValue(t *testing.T) {
	member := func(index int) grant.MemberRequest {
		return grant.MemberRequest{Index: index, Request: resource.Request{CPU: 1}}
	}
	long := strings.Repeat("x", ledger.MaxText+1)
	reserve := func(edit func(*grant.Reserve)) grant.Reserve {
		c := grant.Reserve{Tx: "a", Epoch: 1, TTL: time.Second, Members: []grant.MemberRequest{member(0)}}
		edit(&c)
		return c
	}
	cases := map[string]struct {
		cmd  ledger.Command
		want string
	}{
		"no transaction":        {reserve(func(c *grant.Reserve) { c.Tx = "" }), "tx: empty"},
		"a long transaction":    {reserve(func(c *grant.Reserve) { c.Tx = resource.TxID(long) }), "tx: 257 bytes"},
		"a long name":           {reserve(func(c *grant.Reserve) { c.Name = strings.Repeat("x", ledger.MaxName+1) }), "name: 513 bytes"},
		"a long tenant":         {reserve(func(c *grant.Reserve) { c.Tenant = resource.TenantID(long) }), "tenant: 257 bytes"},
		"no patience":           {reserve(func(c *grant.Reserve) { c.TTL = -1 }), "ttl: -1ns"},
		"no members":            {reserve(func(c *grant.Reserve) { c.Members = nil }), "members: 0"},
		"members out of order":  {reserve(func(c *grant.Reserve) { c.Members = []grant.MemberRequest{member(2), member(2)} }), "members[1].member: 2"},
		"a negative member":     {reserve(func(c *grant.Reserve) { c.Members = []grant.MemberRequest{member(-1)} }), "members[0].member: -1"},
		"no unit is so small":   {reserve(func(c *grant.Reserve) { c.UnitMembers = -1 }), "members of the unit: -1"},
		"no unit is so large":   {reserve(func(c *grant.Reserve) { c.UnitMembers = ledger.MaxUnitMembers + 1 }), "members of the unit: 1048577"},
		"a member beyond":       {reserve(func(c *grant.Reserve) { c.UnitMembers, c.Members[0].Index = 3, 3 }), "member 3: the unit has 3"},
		"a negative amount":     {reserve(func(c *grant.Reserve) { c.Members[0].Request.CPU = -5 }), "members[0].request: cpu: -5"},
		"a device out of range": {ledger.SetHealth{Device: 4, Health: devices.OK}, "device 4: this host has 4 GPUs"},
		"an unknown health":     {ledger.SetHealth{Device: 0, Health: 17}, "health 17"},
		"a long reason":         {grant.Release{Tx: "a", Epoch: 1, Reason: long}, "reason is too long"},
		"a long preemptor":      {grant.Evict{Tx: "a", Epoch: 1, By: resource.TxID(long)}, "by is too long"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := ready(t, machine(t, 8, 4))
			reply := do(t, l, boot(1), c.cmd)
			if !reply.Refused() || !strings.Contains(reply.Reasons[0].String(), c.want) {
				t.Fatalf("got %v, want a reason with %q", reply.Reasons, c.want)
			}
			if l.Len() != 0 {
				t.Errorf("%d grants", l.Len())
			}
		})
	}
}

func TestAGrantOfManyMembersFitsOneJournalRecord(t *testing.T) {
	host := machine(t, 512, 8)
	l := ready(t, host)
	c := grant.Reserve{Tx: "a", Epoch: 1, TTL: time.Second}
	for i := range ledger.MaxMembers {
		c.Members = append(c.Members, grant.MemberRequest{Index: i, Request: resource.Request{CPU: 500, Memory: 64 << 20, GPUShare: 7}})
	}
	reply, events := l.Decide(boot(1), c)
	if reply.Refused() {
		t.Fatal(reply.Reasons)
	}
	if n := len(ledger.AppendEvents(nil, events)); n > 1<<20 {
		t.Errorf("%d bytes", n)
	}
}

func TestAViewDoesNotChangeWithTheLedger(t *testing.T) {
	l := ready(t, machine(t, 8, 4))
	do(t, l, boot(1), gpus("a", 1, 1))
	v := l.Snapshot()
	kept := slices.Clone(v.Grants)
	if v.Hash != ledger.GrantHash("a", v.Grants[0].Members) {
		t.Errorf("hash %x of one grant is not its GrantHash", v.Hash)
	}
	do(t, l, boot(1), grant.Commit{Tx: "a", Epoch: 1, Revision: 6})
	do(t, l, boot(1), gpus("b", 1, 1))
	if l.Hash() == v.Hash {
		t.Error("another grant left the hash as it was")
	}
	do(t, l, boot(1), grant.Abort{Tx: "b", Epoch: 1})
	if diff := cmp.Diff(kept, v.Grants); diff != "" || v.GPUs[1].Milli != 1000 || l.Hash() != v.Hash {
		t.Errorf("view %+v, hash %x after %x: %s", v.GPUs, l.Hash(), v.Hash, diff)
	}
}

func TestNextIsTheEarliestDeadline(t *testing.T) {
	l := ready(t, machine(t, 8, 4))
	if at, ok := l.Next(); ok {
		t.Fatalf("an empty ledger waits for %s", at)
	}
	do(t, l, boot(0), gpus("a", 1, 1))
	do(t, l, boot(1), gpus("b", 1, 1))
	if at, ok := l.Next(); !ok || !at.Equal(boot(10)) {
		t.Fatalf("next is %s", at)
	}
	do(t, l, boot(2), grant.Commit{Tx: "a", Epoch: 1, Revision: 6})
	if at, ok := l.Next(); !ok || !at.Equal(boot(11)) {
		t.Fatalf("next is %s", at)
	}
}

func TestAFullLedgerTakesNoNewWork(t *testing.T) {
	l := ledger.New(machine(t, 8, 4))
	do(t, l, boot(0), ledger.Start{Incarnation: incarnation("j1", "b1")})
	var ended []ledger.Event
	for i := range ledger.MaxGrants {
		ended = append(ended, ledger.Buried{Tx: resource.TxID(fmt.Sprintf("u%d.1.1.%032x", i, i))})
	}
	if err := l.Replay([][]byte{ledger.AppendEvents(nil, ended)}); err != nil {
		t.Fatal(err)
	}
	do(t, l, boot(0), ledger.Registered{Revision: 5})
	do(t, l, boot(0), grant.Release{Tx: "other", Epoch: 1}) // an end is still taken
	refused := do(t, l, boot(1), gpus("a", 1, 1))
	if len(refused.Reasons) != 1 || refused.Reasons[0].Code != resource.ReasonInsufficient || !strings.Contains(refused.Reasons[0].Detail, "at most 2048") {
		t.Errorf("with %d grants: %+v, want a refusal that names the limit", len(l.Snapshot().Grants), refused.Reasons)
	}
	for i := range 2 {
		do(t, l, boot(2), grant.Forget{Tx: ended[i].(ledger.Buried).Tx})
	}
	if reply := do(t, l, boot(3), gpus("b", 1, 1)); reply.Refused() {
		t.Errorf("with %d grants: %+v", len(l.Snapshot().Grants), reply.Reasons)
	}
}
