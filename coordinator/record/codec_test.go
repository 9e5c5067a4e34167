package record_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

func trainUnit() record.UnitPath {
	return record.UnitPath{Namespace: "ml", Kind: record.JobUnit, Name: "train/1", N: 2}
}

func txRecord() record.Tx {
	return record.Tx{
		State:   grant.RecordEvicting,
		Epoch:   7,
		Unit:    trainUnit(),
		UnitUID: "u-1",
		Charges: []record.Charge{{Tree: "default", Group: "ml", Request: resource.Vector{resource.GPU: 8000, resource.CPU: 16000}}},
		Members: []record.Placement{{
			Member:      3,
			Node:        "gpu-01",
			Incarnation: resource.Incarnation{JournalID: "j", BootID: "b"},
			Assignment: resource.Assignment{
				CPUs:   []resource.CPUGrant{{ID: 4, Milli: 1000}},
				Memory: []resource.MemoryGrant{{Node: 0, Bytes: 1 << 30}},
				GPUs:   []resource.GPUGrant{{Index: 1, UUID: "GPU-1", Milli: 1000}},
			},
		}},
		By:           "u-2.7.9.00",
		Reason:       "Preempted",
		Evicted:      true,
		GraceSeconds: 30,
		Created:      "2026-01-02T03:04:05Z",
		Committed:    "2026-01-02T03:04:06Z",
	}
}

// migRecord is of a member with whole cores, huge pages and a MIG instance.
func migRecord() record.Tx {
	return record.Tx{
		State:   grant.RecordCommitted,
		Epoch:   7,
		Unit:    record.UnitPath{Namespace: "ml", Kind: record.AllocUnit, Name: "infer"},
		UnitUID: "u-3",
		Tenant:  "ml",
		Charges: []record.Charge{{Tree: "default", Group: "ml", Request: resource.Request{
			Cores: 1, Hugepages: 1 << 30, HugepageSize: 2 << 20, MIG: 1, MIGProfile: "1g.10gb",
		}.Vector()}},
		Members: []record.Placement{{
			Node:        "gpu-01",
			Incarnation: resource.Incarnation{JournalID: "j", BootID: "b"},
			Assignment: resource.Assignment{
				CPUs:      []resource.CPUGrant{{ID: 4, Milli: 1000}, {ID: 36, Milli: 1000}},
				Hugepages: []resource.HugepageGrant{{Node: 0, Size: 2 << 20, Bytes: 1 << 30}},
				MIG:       []resource.MIGGrant{{GPU: 0, Instance: 2, UUID: "MIG-1", Profile: "1g.10gb"}},
			},
		}},
		Committed: "2026-01-02T03:04:06Z",
	}
}

// lostRecord is of a gang that has lost a member.
func lostRecord() record.Tx {
	r := txRecord()
	r.State, r.By, r.Reason, r.Evicted, r.GraceSeconds = grant.RecordCommitted, "", "", false, 0
	r.LostMembers = []record.LostMember{{AtMillis: 1_767_323_045_250, Placement: record.Placement{
		Member: 1, Node: "gpu-02", Incarnation: resource.Incarnation{JournalID: "j2", BootID: "b2"},
		Assignment: resource.Assignment{GPUs: []resource.GPUGrant{{Index: 0, UUID: "GPU-9", Milli: 1000}}},
	}}}
	return r
}

// roundTrip compares the encoding with a golden file and reads it back.
func roundTrip[R record.Type](t *testing.T, name string, r R) {
	t.Run(name, func(t *testing.T) {
		got, err := record.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name+".json")
		if os.Getenv("UPDATE_GOLDEN") != "" {
			if err := os.WriteFile(path, append(got, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(strings.TrimSuffix(string(want), "\n"), string(got)); d != "" {
			t.Errorf("encoding (-want +got), a change needs a new version and a reader of the old one:\n%s", d)
		}
		back, err := record.Decode[R]("/registry/x", got)
		if d := cmp.Diff(r, back); err != nil || d != "" {
			t.Errorf("read back: %v\n%s", err, d)
		}
	})
}

func TestGoldenRecords(t *testing.T) {
	document := json.RawMessage(`{"kind":"Allocation","spec":{"resources":{"requests":{"cpu":"8000m"}}},"x":"a<b"}`)
	roundTrip(t, "tx-evicting", txRecord())
	ending := txRecord()
	ending.EndingMillis = 1_767_323_045_250
	roundTrip(t, "tx-evicting-instant", ending)
	roundTrip(t, "tx-mig", migRecord())
	roundTrip(t, "tx-lost", lostRecord())
	roundTrip(t, "tx-aborted", record.Tx{State: grant.RecordAborted, UnitUID: "u-1", Reason: "no answer from gpu-01"})
	roundTrip(t, "ready", record.Ready{AtMillis: 1_767_323_046_125})
	roundTrip(t, "unit-alloc", record.Unit{
		UID: "u-1", Kind: record.AllocUnit, Namespace: "ml", Name: "one", Tenant: "t", Queue: "default", Priority: -5,
		Phase: "Running", Sequence: record.Sequence{Epoch: 7, Counter: 1<<64 - 1}, TxID: "u-1.7.1.00", Members: 1,
		Document: document, Created: "2026-01-02T03:04:05Z", Started: "2026-01-02T03:04:06Z",
	})
	roundTrip(t, "unit-job", record.Unit{
		UID: "u-2", Kind: record.JobUnit, Namespace: "ml", Name: "train", N: 1, Tenant: "t", Phase: "Queued",
		Members: 2, FirstMember: 4, Parent: "u-1", Reason: "Insufficient", Message: "want 8, have 3",
	})
	roundTrip(t, "unit-lost", record.Unit{
		UID: "u-6", Kind: record.JobUnit, Namespace: "ml", Name: "train", Tenant: "ml", Phase: "Running", TxID: "u-6.7.1.00", Members: 4, Lost: []int{1, 2},
	})
	roundTrip(t, "unit-replacement", record.Unit{
		UID: "u-7", Kind: record.JobUnit, Namespace: "ml", Name: "train", N: record.FirstReplacement + 1, Tenant: "ml", Phase: "Pending",
		Members: 1, FirstMember: 1, Parent: "u-6", Replaces: true,
	})
	roundTrip(t, "unit-ended", record.Unit{
		UID: "u-5", Kind: record.JobUnit, Namespace: "ml", Name: "train", Phase: "Failed", Members: 1,
		End: record.DeadlineExceeded, Reason: "DeadlineExceeded: the unit has run for the 1m0s of activeDeadlineSeconds", Ended: "2026-01-02T03:04:05Z",
	})
	roundTrip(t, "job", record.Job{
		UID: "j-1", Namespace: "ml", Name: "train", Tenant: "t", Phase: "Cancelling", Document: document,
		Units: []record.UnitPath{trainUnit()}, Cancelled: &record.Cancellation{Reason: "asked", GraceSeconds: 10}, Created: "2026-01-02T03:04:05Z",
	})
	roundTrip(t, "job-dependencies", record.Job{
		UID: "j-2", Namespace: "ml", Name: "train", Tenant: "t", Phase: "Queued", Document: document, Met: []int{0, 2},
	})
	roundTrip(t, "unit-wish", record.Unit{
		UID: "u-4", Kind: record.AllocUnit, Namespace: "ml", Name: "two", Phase: "Terminating", Members: 1,
		Ending: &record.Cancellation{Reason: "UserRequested", GraceSeconds: 30, AskedMillis: 1_767_323_045_250, Remove: true},
	})
	roundTrip(t, "order", record.Order{UnitUID: "u-1"})
	roundTrip(t, "order-waiting", record.Order{UnitUID: "u-1", Waiting: &record.Waiting{
		Code: "Refused", Message: "node gpu-01: the agent did not answer in time", SinceMillis: 1_767_323_045_250, Refusals: 3, NextMillis: 1_767_323_049_250,
	}})
	roundTrip(t, "request", record.Request{Object: trainUnit().Key(), UID: "u-1", DocumentHash: "sha256:00"})
	roundTrip(t, "node-identity", record.NodeIdentity{Incarnation: resource.Incarnation{JournalID: "j", BootID: "b"}, Fenced: true})
	roundTrip(t, "node-spec", record.NodeSpec{
		Hostname: "gpu-01", AgentAddr: "127.0.0.1:8472", Capacity: resource.Vector{resource.GPU: 8000}, Allocatable: resource.Vector{resource.GPU: 8000},
		Labels: map[string]string{"zone": "a"}, Taints: []record.Taint{{Key: "k", Value: "v", Effect: "NoSchedule"}}, Unschedulable: true,
		Topology: record.TopologySummary{
			Sockets: 2, NUMANodes: 2, Cores: 64, CPUs: 128, GPUs: 8, GPUModels: []string{"A100"},
			NUMACPUs: map[int]string{0: "0-31,64-95", 1: "32-63,96-127"}, GPUModel: []int{0, 0, 0, 0, 0, 0, 0, 0},
		},
	})
	roundTrip(t, "node-spec-layers", record.NodeSpec{
		Hostname: "gpu-01", Labels: map[string]string{"zone": "a"}, OperatorLabels: map[string]string{"zone": "b"},
		Annotations: map[string]string{"owner": "ml, room 4"}, AssumeDeadMillis: 300_000, IgnoredLabels: []string{"kubernetes.io/hostname"},
		Token: "0123456789", Topology: record.TopologySummary{GPUs: 1, GPUModels: []string{"A100"}, GPUModel: []int{0}, GPUMemory: 80 << 30},
		Approved: &record.Capacity{Amounts: resource.Vector{resource.CPU: 2000}, Models: map[string]int{"A100": 1}},
	})
	roundTrip(t, "node-spec-work", record.NodeSpec{Hostname: "gpu-01", StartsWork: true})
	roundTrip(t, "node-spec-registrations", record.NodeSpec{
		Hostname: "gpu-01", AgentAddr: "127.0.0.1:8472", Version: "v0.1.0", Registrations: []string{"2026-01-02T03:04:05Z", "2026-01-02T03:05:05Z"},
		RegisteredBy: []record.Registrant{{Hostname: "gpu-01", AgentAddr: "127.0.0.1:8472", Journal: "j"}},
	})
	roundTrip(t, "node-spec-drain", record.NodeSpec{
		Hostname: "gpu-01", Unschedulable: true, Drain: &record.Drain{Began: "2026-01-02T03:04:05Z", Allocations: 23},
	})
	roundTrip(t, "node-status", record.NodeStatus{
		Conditions: []record.Condition{{Type: "Ready", Status: "True", Reason: "Heard", LastTransition: "2026-01-02T03:04:05Z"}},
		Available:  resource.Vector{resource.CPU: 63500},
	})
	roundTrip(t, "node-status-work", record.NodeStatus{
		Work: []record.MemberUse{{Tx: "t1", Member: 2, Use: record.Use{CPUMillis: 1500, Memory: 1 << 30, PeakMemory: 2 << 30, Devices: []record.WorkDevice{{UUID: "GPU-a", BusyMillis: 7}}}}},
	})
	roundTrip(t, "node-status-work-measured", record.NodeStatus{
		Work: []record.MemberUse{{Tx: "t1", Use: record.Use{Devices: []record.WorkDevice{{UUID: "GPU-a", BusyMillis: 7, MeasuredMillis: 9}}}}},
	})
	roundTrip(t, "node-status-measured", record.NodeStatus{
		Conditions: []record.Condition{{Type: "DiskPressure", Status: "False", Reason: "JournalHasRoom", LastTransition: "2026-01-02T03:04:05Z"}},
		HeardAt:    "2026-01-02T03:05:05Z", Usage: resource.Vector{resource.CPU: 31500, resource.Memory: 210 << 30},
		Devices: []record.DeviceUse{{UUID: "GPU-1", Percent: 37, Memory: 12 << 30}, {UUID: "MIG-1", Percent: -1, Memory: 1 << 30}},
	})
	roundTrip(t, "node-lost", record.NodeLost{Lost: []string{"GPU-0", "MIG-3"}, Returned: []string{"GPU-1"}})
	roundTrip(t, "node-observed-incarnation", record.NodeObserved{
		Incarnation: resource.Incarnation{JournalID: "5f0c2a9e41d7b386", BootID: "1c6f3e1e-0d9f-4b7e-9a53-6f3a0d2b8c11"}, Connected: true,
	})
	roundTrip(t, "node-observed-pool", record.NodeObserved{
		Connected: true,
		Local:     &resource.Assignment{GPUs: []resource.GPUGrant{{Index: 0, UUID: "GPU-0", Milli: 1000}, {Index: 1, UUID: "GPU-1", Milli: 1000}}},
		Pool:      &resource.Assignment{GPUs: []resource.GPUGrant{{Index: 0, UUID: "GPU-0", Milli: 1000}}},
	})
	roundTrip(t, "node-observed", record.NodeObserved{
		Connected: true, Health: []record.ObservedHealth{{Device: 1, Health: "tainted", Reason: "XID 79: fell off the bus"}},
		Local: &resource.Assignment{GPUs: []resource.GPUGrant{{Index: 0, UUID: "GPU-0", Milli: 500}}},
		Host: &record.HostFacts{
			NUMA: []record.NUMAFacts{{
				ID: 0, CPUs: "0-15", Memory: 64 << 30, Usable: "1-7,9-15", Ordinary: 60 << 30, Cores: map[string]string{"+8": "1-7"},
				Pages: []record.PageFacts{{Size: 2 << 20, Bytes: 1 << 30}},
			}},
			Models: []string{"A100"}, Devices: []record.DeviceFacts{
				{UUID: "GPU-0", Memory: 80 << 30},
				{UUID: "GPU-1", Memory: 80 << 30, MIG: true, Instances: []record.InstanceFacts{{UUID: "MIG-1", Profile: "3g.40gb", Memory: 40 << 30}}},
			},
		},
	})
	roundTrip(t, "ready-idle", record.Ready{AtMillis: 1_767_323_046_125, IdleMillis: 1_767_326_646_125, IdleBelow: 5})
	roundTrip(t, "ready-freed", record.Ready{AtMillis: 1_767_323_046_125, Freed: []record.FreedNode{{Node: "gpu-01"}}}) // of an older version
	roundTrip(t, "node-lease", record.NodeLease{Coordinator: "c1"})
	roundTrip(t, "node-tx", record.NodeTx{Members: []int{0, 3}})
	roundTrip(t, "quota-tree", record.Quota{
		UID: "q-1", Name: "Org", Created: "2026-01-02T03:04:05Z", Document: json.RawMessage(
			`{"kind":"QuotaTree","metadata":{"name":"Org"},"spec":{"resourceNames":["cpu"],"nodes":{"all":{"parent":"nil","hard":"true","quota":{"cpu":"64"}}}}}`),
	})
	roundTrip(t, "quota-resource", record.Quota{
		UID: "q-2", Namespace: "ml", Name: "team", Document: json.RawMessage(
			`{"kind":"ResourceQuota","metadata":{"name":"team","namespace":"ml"},"spec":{"hard":{"nvidia.com/gpu":"16"},"scopes":["NotTerminating"]}}`),
	})
	roundTrip(t, "quota-forest", record.Quota{
		UID: "q-3", Name: "both", Document: json.RawMessage(`{"kind":"QuotaForest","metadata":{"name":"both"},"spec":{"trees":["Org","Service"]}}`),
	})
	roundTrip(t, "quota-binding", record.Quota{
		UID: "q-4", Name: "ml", Document: json.RawMessage(
			`{"kind":"QuotaBinding","metadata":{"name":"ml"},"spec":{"forest":"both","groups":{"Org":"research","Service":"gold"},"admission":"queue"}}`),
	})
	roundTrip(t, "tenant", record.Object{
		UID: "tenant-1", Name: "vision", Document: json.RawMessage(
			`{"apiVersion":"muster/v1","kind":"Tenant","metadata":{"name":"vision"},"spec":{"displayName":"Computer Vision","owner":"ada@example.org"}}`),
		Created: "2026-01-02T03:04:05Z",
	})
	roundTrip(t, "namespace", record.Object{
		UID: "namespace-1", Name: "vision-dev", Document: json.RawMessage(
			`{"apiVersion":"muster/v1","kind":"Namespace","metadata":{"name":"vision-dev"},"spec":{"tenant":"vision","admission":"queue","priorityCeiling":1000}}`),
		Created: "2026-01-02T03:04:05Z",
	})
	roundTrip(t, "configured", record.Configured{By: "c1", At: "2026-01-02T03:04:05Z"})
	roundTrip(t, "quota-seats", record.Seats{Nodes: map[string]string{"Org": "all"}})
	roundTrip(t, "quota-mode", record.QuotaMode{UID: "quotamode-1", Maintenance: true, Reason: "moving groups", By: "admin", Since: "2026-01-02T03:04:05Z"})
	roundTrip(t, "quota-limit", record.QuotaLimit{Namespace: "ml", Tenant: "t", Hard: resource.Vector{resource.GPU: 16000}})
	roundTrip(t, "cluster", record.Cluster{Name: "gpu-east"})
	roundTrip(t, "term", record.Term{ID: "c1"})
	roundTrip(t, "restored", record.Restored{Mark: "6b1f", Has: 4711, Had: 4712, By: "node gpu-01", Why: "the store is at revision 4711"})
	roundTrip(t, "node-identity-restored", record.NodeIdentity{Incarnation: resource.Incarnation{JournalID: "j", BootID: "b"}, Restored: "6b1f"})
	roundTrip(t, "history-position", record.HistoryPosition{Revision: 4711, SpoolOwner: "c1", SpoolAfter: 4242})
	roundTrip(t, "leader", record.LeaderAddress{ID: "c1", GRPC: "127.0.0.1:8471", REST: "127.0.0.1:8470"})
	roundTrip(t, "nothing-but-version", record.NodeStatus{})
}

func TestDecodeRefuses(t *testing.T) {
	cases := map[string]struct{ value, want string }{
		"a newer version":          {`{"v":2,"unitUID":"u"}`, "schema version 2"},
		"a version that starts 1":  {`{"v":10,"unitUID":"u"}`, "schema version 10"},
		"a version in words":       {`{"v":"1","unitUID":"u"}`, `schema version "1"`},
		"no version":               {`{"unitUID":"u"}`, "no schema version"},
		"an unknown field":         {`{"v":1,"unitUID":"u","colour":"red"}`, "colour"},
		"the version twice":        {`{"v":1,"unitUID":"u","v":1}`, `"v"`},
		"a wrong type":             {`{"v":1,"unitUID":3}`, "unitUID"},
		"a broken rule":            {`{"v":1,"unitUID":""}`, "unitUID is empty"},
		"a trailing comma":         {`{"v":1,}`, "comma"},
		"data behind the value":    {`{"v":1,"unitUID":"u"}{}`, "data follows"},
		"a value that is cut off":  {`{"v":1,"unitUID":"u"`, "unexpected EOF"},
		"nothing":                  {``, "unexpected end"},
		"something other than one": {`[1]`, "cannot unmarshal"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := record.Decode[record.Order]("/registry/order/k", []byte(c.value))
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "/registry/order/k") {
				t.Errorf("got %v, want an error with %q and the key", err, c.want)
			}
		})
	}
}

func TestDecodeRefusesAStateThatNoRecordHas(t *testing.T) {
	for _, state := range []string{`"DONE"`, `"absent"`, `""`, "1", "null"} {
		value := `{"v":1,"state":` + state + `,"unitUID":"u"}`
		if r, err := record.Decode[record.Tx]("/registry/tx/t", []byte(value)); err == nil || !strings.Contains(err.Error(), "state") {
			t.Errorf("%s: %+v, %v, want an error that names the state", value, r, err)
		}
	}
}

func TestDecodeTakesWhatAPersonWrote(t *testing.T) {
	for _, value := range []string{"{ \"unitUID\": \"u\", \"v\": 1 }\n", `{"v":1 ,"unitUID":"u"}`, "{\"v\":1,\n  \"unitUID\": \"u\"}"} {
		r, err := record.Decode[record.Order]("k", []byte(value))
		if err != nil || r.UnitUID != "u" {
			t.Errorf("%q: %+v, %v", value, r, err)
		}
	}
}

func TestRecordsKeepTheirRules(t *testing.T) {
	cases := map[string]struct {
		change func(*record.Tx)
		want   string
	}{
		"an unknown state":            {func(r *record.Tx) { r.State = 9 }, "RecordState(9)"},
		"a state that is none":        {func(r *record.Tx) { r.State = grant.RecordAbsent }, `"absent"`},
		"committed without epoch":     {func(r *record.Tx) { r.Epoch = 0 }, "epoch 0"},
		"committed without unit":      {func(r *record.Tx) { r.Unit = record.UnitPath{} }, "unit"},
		"committed without members":   {func(r *record.Tx) { r.Members = nil }, "at least one"},
		"a member without node":       {func(r *record.Tx) { r.Members[0].Node = "" }, "members[0]"},
		"a lost member without node":  {func(r *record.Tx) { r.LostMembers = []record.LostMember{{}} }, "lostMembers[0]"},
		"a lost member that is there": {func(r *record.Tx) { r.LostMembers = []record.LostMember{{Placement: r.Members[0]}} }, "lostMembers[0]"},
		"a negative charge":           {func(r *record.Tx) { r.Charges[0].Request[resource.CPU] = -1 }, "charges[0].request: cpu -1"},
		"a negative grace":            {func(r *record.Tx) { r.GraceSeconds = -1 }, "graceSeconds -1"},
		"an end before 1970":          {func(r *record.Tx) { r.EndingMillis = -1 }, "endingMillis -1"},
		"a negative index of members": {func(r *record.Tx) { r.Members[0].Member = -1 }, "index -1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := txRecord()
			c.change(&r)
			if _, err := record.Encode(r); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("encode: %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestRecordsOfWorkKeepTheirRules(t *testing.T) {
	unit := `{"v":1,"uid":"u","kind":"alloc","namespace":"ml","name":"a","members":1,"endedMillis":%d}`
	job := `{"v":1,"uid":"j","namespace":"ml","name":"a","document":{},"met":%s,"endedMillis":%d}`
	cases := map[string]struct {
		decode func(value string) error
		value  string
		want   string // "" = it is taken
	}{
		"a unit that has lost all members":   {decodes[record.Unit], fmt.Sprintf(unit, 1)[:len(fmt.Sprintf(unit, 1))-1] + `,"lost":[0]}`, "fewer than the 1 members"},
		"a replacement without a gang":       {decodes[record.Unit], fmt.Sprintf(unit, 1)[:len(fmt.Sprintf(unit, 1))-1] + `,"replaces":true}`, "want a parent"},
		"an allocation":                      {decodes[record.Unit], fmt.Sprintf(unit, 1), ""},
		"the end of a unit before 1970":      {decodes[record.Unit], fmt.Sprintf(unit, -1), "endedMillis -1"},
		"a job":                              {decodes[record.Job], fmt.Sprintf(job, "[0,2]", 1), ""},
		"the end of a job before 1970":       {decodes[record.Job], fmt.Sprintf(job, "[]", -1), "endedMillis -1"},
		"a dependency that came true twice":  {decodes[record.Job], fmt.Sprintf(job, "[1,1]", 0), "met [1 1]"},
		"dependencies out of order":          {decodes[record.Job], fmt.Sprintf(job, "[2,0]", 0), "met [2 0]"},
		"a dependency with a negative index": {decodes[record.Job], fmt.Sprintf(job, "[-1]", 0), "met [-1]"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := c.decode(c.value)
			if c.want == "" && err != nil {
				t.Fatal(err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want an error with %q", err, c.want)
			}
		})
	}
}

func decodes[R record.Type](value string) error {
	_, err := record.Decode[R]("/registry/x", []byte(value))
	return err
}

func TestQuotaRecordsKeepTheirRules(t *testing.T) {
	whole := record.Quota{UID: "q", Name: "n", Document: json.RawMessage(`{}`)}
	for want, change := range map[string]func(*record.Quota){
		"uid is empty":      func(r *record.Quota) { r.UID = "" },
		"name is empty":     func(r *record.Quota) { r.Name = "" },
		"document is empty": func(r *record.Quota) { r.Document = nil },
	} {
		r := whole
		change(&r)
		if _, err := record.Encode(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("encode: %v, want an error with %q", err, want)
		}
	}
	if _, err := record.Encode(whole); err != nil {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.json")
	for _, path := range files {
		value, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		again[record.Tx](t, value)
		again[record.Ready](t, value)
		again[record.Unit](t, value)
		again[record.Job](t, value)
		again[record.Request](t, value)
		again[record.NodeIdentity](t, value)
		again[record.NodeSpec](t, value)
		again[record.NodeStatus](t, value)
		again[record.NodeTx](t, value)
		again[record.Quota](t, value)
		again[record.QuotaLimit](t, value)
		again[record.QuotaMode](t, value)
		again[record.Object](t, value)
		again[record.Configured](t, value)
		again[record.Authorities](t, value)
		again[record.BootstrapToken](t, value)
		again[record.Enrolled](t, value)
		again[record.Ban](t, value)
		again[record.Operator](t, value)
		again[record.GossipKeys](t, value)
		again[record.HistoryPosition](t, value)
	})
}

// again: what is read can be written, and reads the same.
func again[R record.Type](t *testing.T, value []byte) {
	r, err := record.Decode[R]("k", value)
	if err != nil {
		return
	}
	first, err := record.Encode(r)
	if err != nil {
		t.Fatalf("%q was read as %+v but not written: %v", value, r, err)
	}
	back, err := record.Decode[R]("k", first)
	if err != nil {
		t.Fatalf("%q was written but not read: %v", first, err)
	}
	if second, err := record.Encode(back); err != nil || string(second) != string(first) {
		t.Fatalf("%q was read and written as %q, %v", first, second, err)
	}
}

func BenchmarkTxRecord(b *testing.B) {
	r := txRecord()
	value := record.MustEncode(r)
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = record.MustEncode(r)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := record.Decode[record.Tx]("k", value); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func TestAPositionKeepsItsRules(t *testing.T) {
	for want, p := range map[string]record.HistoryPosition{
		"want 0 <= spoolAfter <= revision": {Revision: 3, SpoolOwner: "c1", SpoolAfter: 4},
		"without a spoolOwner":             {Revision: 3, SpoolAfter: 2},
		"revision -1":                      {Revision: -1},
	} {
		if _, err := record.Encode(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", p, err, want)
		}
	}
}

func TestObjectRecordsKeepTheirRules(t *testing.T) {
	whole := record.Object{UID: "u", Name: "n", Document: json.RawMessage(`{}`)}
	for want, change := range map[string]func(*record.Object){
		"uid is empty":      func(o *record.Object) { o.UID = "" },
		"name is empty":     func(o *record.Object) { o.Name = "" },
		"document is empty": func(o *record.Object) { o.Document = nil },
	} {
		o := whole
		change(&o)
		if _, err := record.Encode(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := record.Encode(record.Configured{}); err == nil || !strings.Contains(err.Error(), "by is empty") {
		t.Errorf("a marker of nobody: %v", err)
	}
	if _, err := record.Encode(record.QuotaMode{UID: "m"}); err == nil || !strings.Contains(err.Error(), "want both") {
		t.Errorf("a mode of no time: %v", err)
	}
}

// The node of a lost member sees a record that has ended, the others see the record as it is.
func TestTheNodeOfALostMemberSeesAnEnd(t *testing.T) {
	r := lostRecord()
	if state, grace := r.SeenBy("gpu-02"); state != grant.RecordReleased || grace != record.LostGraceSeconds {
		t.Errorf("the lost node sees %s with %d s", state, grace)
	}
	if state, grace := r.SeenBy("gpu-01"); state != grant.RecordCommitted || grace != 0 {
		t.Errorf("the other node sees %s with %d s", state, grace)
	}
}
