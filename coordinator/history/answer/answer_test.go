package answer_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/answer"
	"github.com/musterd/muster/coordinator/history/tally"
	"github.com/musterd/muster/coordinator/history/usage"
	"github.com/musterd/muster/coordinator/history/warehouse"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
)

// opened is a history in SQLite with a batch in it, priced at 2 dollars for a GPU hour
// and one dollar for a GiB hour.
func opened(t *testing.T, b history.Batch) *answer.Answers {
	t.Helper()
	w, err := warehouse.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "history.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	from := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	prices, err := usage.NewPrices("USD", []usage.Price{
		{From: from, Slot: resource.GPU, Per: 1000, Hour: 2_000_000}, {From: from, Slot: resource.Memory, Per: 1 << 30, Hour: 1_000_000},
	})
	if err == nil {
		err = tally.SetPrices(t.Context(), w, prices)
	}
	b.Upto = 1
	if err == nil {
		err = w.Write(t.Context(), b)
	}
	if err == nil {
		_, err = tally.Settle(t.Context(), w, time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	return answer.New(func(context.Context) (*warehouse.Warehouse, error) { return w, nil }, slog.New(slog.DiscardHandler))
}

// held are the slices of a member of tenant ml that holds an amount within the hours
// from..to before the present full hour.
func held(tx string, slot resource.Name, amount int64, from, to int) []history.Slice {
	hour := time.Now().UTC().Truncate(time.Hour)
	g := history.Grant{
		Tx: resource.TxID(tx), Tenant: "ml", Namespace: "one", Committed: hour.Add(time.Duration(-from) * time.Hour), Ended: hour.Add(time.Duration(-to) * time.Hour),
		Members: []history.Member{{Allocated: resource.Vector{slot: amount}}},
	}
	return usage.Slices(g, hour)
}

func TestAUsageHasPeaksAveragesAndCosts(t *testing.T) {
	a := opened(t, history.Batch{Slices: slices.Concat(held("a", resource.GPU, 4000, 10, 2), held("b", resource.GPU, 1000, 4, 3), held("c", resource.Memory, 3<<30, 2, 1))})
	u := &api.TenantUsage{Tenant: "ml", Period: "24h", Resources: map[resource.Name]api.TenantResource{
		resource.GPU: {Quota: "16", CurrentUsage: "2"}, resource.CPU: {Quota: "64", CurrentUsage: "3"}, // no slice has it yet
		"nvidia.com/gpu.h100": {Quota: "8", CurrentUsage: "2", PeakUsage: "3", AvgUsage: "1"},
	}}
	if err := a.AddUsage(t.Context(), u, "ml", 24*time.Hour); err != nil {
		t.Fatal(err)
	}
	gpu := u.Resources[resource.GPU]
	if gpu.PeakUsage != "5" || gpu.Quota != "16" || gpu.CurrentUsage != "2" || gpu.AvgUsage == "" || gpu.AvgUsage == "0" {
		t.Errorf("GPUs %+v, want a peak of 5 beside the quota", gpu)
	}
	if cpu := u.Resources[resource.CPU]; cpu.PeakUsage != "3" || cpu.AvgUsage != "0" {
		t.Errorf("CPUs %+v, want no peak", cpu)
	}
	if h100 := u.Resources["nvidia.com/gpu.h100"]; h100.CurrentUsage != "2" || h100.PeakUsage != "" || h100.AvgUsage != "" {
		t.Errorf("a model %+v, want its present use alone: the history does not tell models", h100)
	}
	if memory := u.Resources[resource.Memory]; memory.PeakUsage != "3Gi" || memory.CurrentUsage != "0" {
		t.Errorf("memory %+v, want a peak of 3Gi", memory)
	}
	want := &api.TenantCost{Period: "24h", Total: "$69.00", Breakdown: map[string]string{"gpu": "$66.00", "memory": "$3.00"}}
	if d := cmp.Diff(want, u.Cost); d != "" {
		t.Errorf("cost (-want +got)\n%s", d)
	}
}

func TestATrendIsOfTheLastDay(t *testing.T) {
	quotas := []history.Quota{{Namespace: "one", Name: "q", Tenant: "ml", Slot: resource.GPU, Hard: 10_000, Soft: resource.Unlimited, From: time.Now().Add(-100 * time.Hour), Revision: 1}}
	for _, model := range []resource.Name{"nvidia.com/gpu.a100", "nvidia.com/gpu.h100"} {
		ofModel := quotas[0]
		ofModel.Slot = model
		quotas = append(quotas, ofModel)
	}
	a := opened(t, history.Batch{Slices: held("a", resource.GPU, 4000, 30, 2), Quotas: quotas})
	q := &api.ResourceQuota{Metadata: api.ObjectMeta{Name: "q", Namespace: "one"}}
	q.Status.Utilization = map[resource.Name]string{resource.GPU: "45%", resource.CPU: "1%", "nvidia.com/gpu.a100": "45%", "nvidia.com/gpu.h100": "7%"}
	if err := a.AddTrend(t.Context(), q, "ml"); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[resource.Name]string{resource.GPU: "+5% over 24h"}, q.Status.Trend); d != "" { // no slice has a model
		t.Errorf("(-want +got)\n%s", d)
	}
	a = opened(t, history.Batch{Slices: slices.Concat(held("a", resource.GPU, 4000, 30, 2), held("b", "nvidia.com/gpu.a100", 4000, 30, 2)), Quotas: quotas})
	if err := a.AddTrend(t.Context(), q, "ml"); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[resource.Name]string{resource.GPU: "+5% over 24h", "nvidia.com/gpu.a100": "+5% over 24h", "nvidia.com/gpu.h100": "+7% over 24h"}, q.Status.Trend); d != "" {
		t.Errorf("with models (-want +got)\n%s", d)
	}
}

func TestAUsageHasTheModelsOfGPUs(t *testing.T) {
	a := opened(t, history.Batch{Slices: slices.Concat(held("a", resource.GPU, 4000, 10, 2), held("b", "nvidia.com/gpu.h100", 4000, 10, 2))})
	u := &api.TenantUsage{Tenant: "ml", Period: "24h", Resources: map[resource.Name]api.TenantResource{"nvidia.com/gpu.h100": {Quota: "8", CurrentUsage: "2"}}}
	if err := a.AddUsage(t.Context(), u, "ml", 24*time.Hour); err != nil {
		t.Fatal(err)
	}
	if h100 := u.Resources["nvidia.com/gpu.h100"]; h100.PeakUsage != "4" || h100.AvgUsage == "" || h100.AvgUsage == "0" {
		t.Errorf("a model %+v, want a peak of 4", h100)
	}
	if cost := map[string]string{"gpu": "$64.00"}; u.Cost == nil || cmp.Diff(cost, u.Cost.Breakdown) != "" {
		t.Errorf("cost %+v, want the GPUs once", u.Cost)
	}
}

func TestWaitsAreThoseOfTheWorkThatTheCallerSees(t *testing.T) {
	created := time.Now().Add(-time.Hour)
	unit := func(uid, tenant string, wait time.Duration) history.Unit {
		return history.Unit{UID: resource.UnitUID(uid), Tenant: resource.TenantID(tenant), Namespace: tenant + "-ns", Queue: "gpu", Members: 1, State: "Running", Created: created, Scheduled: created.Add(wait), Revision: 1}
	}
	a := opened(t, history.Batch{Units: []history.Unit{unit("a", "ml", 10*time.Second), unit("b", "ml", 20*time.Second), unit("c", "bio", time.Minute)}})
	u := &api.QueueUsage{Queues: []api.QueueNumbers{{Name: "gpu"}, {Name: "idle", AvgWaitTime: "7s"}}}
	if err := a.AddWaits(t.Context(), u, service.PastSight{Grants: []service.PastGrant{{Tenant: "ml"}}}); err != nil {
		t.Fatal(err)
	}
	want := []api.QueueNumbers{{Name: "gpu", AvgWaitTime: "15s", P99WaitTime: "20s"}, {Name: "idle", AvgWaitTime: "0s", P99WaitTime: "0s"}}
	if d := cmp.Diff(want, u.Queues); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestUnitsOfAJobHaveNumbers(t *testing.T) {
	created := time.Now().Add(-time.Hour)
	unit := func(uid, job string, n int, at time.Time) history.Unit {
		return history.Unit{UID: resource.UnitUID(uid), Tenant: "ml", Namespace: "one", Name: "train", JobName: job, N: n, Members: 1, State: "Running", Created: at, Revision: 1}
	}
	a := opened(t, history.Batch{Units: []history.Unit{unit("a", "", 0, created), unit("b", "train", 0, created.Add(-time.Second)), unit("c", "train", 1, created.Add(-2*time.Second))}})
	got, err := a.PastAllocations(t.Context(), service.PastQuery{Sees: service.PastSight{Everything: true}, Limit: 10})
	if err != nil || len(got.Items) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	if a, b, c := got.Items[0].Unit, got.Items[1].Unit, got.Items[2].Unit; a != nil || b == nil || *b != 0 || c == nil || *c != 1 {
		t.Errorf("units %v, %v, %v; want none, 0, 1", a, b, c)
	}
}

func TestListsOfThePast(t *testing.T) {
	created := time.Now().Add(-time.Hour)
	b := history.Batch{
		Units:       []history.Unit{{UID: "u", Tenant: "ml", Namespace: "one", Name: "train", State: "Failed", Reason: "GangTimeout", Requests: resource.Vector{resource.GPU: 4000}, Members: 1, Created: created, Ended: created.Add(time.Minute), Revision: 1}},
		Preemptions: []history.Preemption{{Tx: "tx", Victim: "u", VictimTenant: "ml", Reason: "priority", Outcome: "Evicted", Freed: resource.Vector{resource.GPU: 4000}, Initiated: created, Revision: 1}},
	}
	a := opened(t, b)
	for sight, rows := range map[string]service.PastSight{"1": {Everything: true}, "0": {Grants: []service.PastGrant{{Tenant: "bio"}}}} {
		q := service.PastQuery{Sees: rows, Limit: 10}
		allocations, err := a.PastAllocations(t.Context(), q)
		if err != nil || len(allocations.Items) != int(sight[0]-'0') {
			t.Fatalf("%d allocations, %v; want %s", len(allocations.Items), err, sight)
		}
		preemptions, err := a.PastPreemptions(t.Context(), q)
		if err != nil || len(preemptions.Items) != int(sight[0]-'0') {
			t.Fatalf("%d preemptions, %v; want %s", len(preemptions.Items), err, sight)
		}
		events, err := a.PastEvents(t.Context(), q)
		if err != nil || len(events.Items) != 3*int(sight[0]-'0') { // created, preempted, ended
			t.Fatalf("events %+v, %v; want 3 × %s", events.Items, err, sight)
		}
		if sight == "1" && (allocations.Items[0].Requests[resource.GPU] != "4" || allocations.Items[0].Phase != "Failed" || preemptions.Items[0].ResourcesFreed[resource.GPU] != "4") {
			t.Errorf("allocation %+v, preemption %+v", allocations.Items[0], preemptions.Items[0])
		}
	}
	_, err := a.PastAllocations(t.Context(), service.PastQuery{Sees: service.PastSight{Everything: true}, Continue: "zzz"})
	if status := new(api.Status); !errors.As(err, &status) || status.Code != http.StatusBadRequest {
		t.Errorf("a wrong continue: %v", err)
	}
}

func TestADatabaseThatIsAwayLeavesTheLeadersNumbers(t *testing.T) {
	away := answer.New(func(context.Context) (*warehouse.Warehouse, error) { return nil, errors.New("no route to db.internal") }, slog.New(slog.DiscardHandler))
	u := &api.TenantUsage{Resources: map[resource.Name]api.TenantResource{resource.GPU: {PeakUsage: "3"}}}
	if err := away.AddUsage(t.Context(), u, "ml", time.Hour); err == nil || u.Resources[resource.GPU].PeakUsage != "3" || u.Cost != nil {
		t.Errorf("usage %+v, %v; want an error and the numbers as they were", u, err)
	}
	_, err := away.PastEvents(t.Context(), service.PastQuery{Sees: service.PastSight{Everything: true}})
	status := new(api.Status)
	if !errors.As(err, &status) || status.Code != http.StatusServiceUnavailable || strings.Contains(err.Error(), "db.internal") {
		t.Errorf("list: %v, want 503 without the name of the host", err)
	}
}
