// Package answer puts what the history knows into the documents of the API: the peaks,
// averages and costs of a tenant's usage, the waits of queues, the trend of a quota, and
// lists of the past. It is service.Past over coordinator/history/ask and decides no
// rights: service has judged which work a caller may see.
package answer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/history/ask"
	"github.com/musterd/muster/coordinator/history/warehouse"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
)

const (
	// trendSpan is how far a trend looks back.
	trendSpan = 24 * time.Hour
	// waitSpan is the time that waits of queues are about.
	waitSpan = 24 * time.Hour
	// patience bounds what an answer of the API waits for the history's part of it.
	patience = 2 * time.Second
	// quiet is the time between two lines of the log about a database that is away.
	quiet = time.Minute
)

// Answers is a service.Past. Its methods may be called from any goroutine.
type Answers struct {
	open func(ctx context.Context) (*warehouse.Warehouse, error)
	log  *slog.Logger
	said atomic.Int64 // the last line about an error, Unix seconds
}

// New answers from the warehouse that open gives. open is called for each question, and
// may fail while the database is away.
func New(open func(ctx context.Context) (*warehouse.Warehouse, error), log *slog.Logger) *Answers {
	return &Answers{open: open, log: log}
}

// history is the history, for a part of an answer.
func (a *Answers) history(ctx context.Context) (*ask.History, error) {
	w, err := a.open(ctx)
	if err != nil {
		return nil, err
	}
	return ask.Of(w), nil
}

// failed logs an error, once a minute, and returns it.
func (a *Answers) failed(question string, err error) error {
	now := time.Now().Unix()
	if last := a.said.Load(); err != nil && now-last >= int64(quiet/time.Second) && a.said.CompareAndSwap(last, now) {
		a.log.Warn("history_does_not_answer", "question", question, "error", err)
	}
	return err
}

// AddUsage implements service.Past. The beginning is rounded down to the full hour, as
// hours are what the history keeps.
func (a *Answers) AddUsage(ctx context.Context, u *api.TenantUsage, tenant resource.TenantID, period time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	h, err := a.history(ctx)
	if err != nil {
		return a.failed("usage", err)
	}
	now := time.Now()
	past, err := h.Tenant(ctx, tenant, now.Add(-period), now)
	if err != nil {
		return a.failed("usage", err)
	}
	u.Since = past.From.Format(time.RFC3339)
	known := tellsModels(past.Slots)
	for name, r := range u.Resources {
		if resource.IsGPUModel(name) && !known {
			r.PeakUsage, r.AvgUsage = "", ""
			u.Resources[name] = r
			continue
		}
		held := past.Slots[name]
		// Slices come at 5-minute marks and full hours: the present use may be greater yet.
		if now, err := resource.ParseAmount(name, r.CurrentUsage); err == nil {
			held.Peak = max(held.Peak, now)
		}
		r.PeakUsage, r.AvgUsage = resource.FormatAmount(name, held.Peak), average(name, held.Average)
		u.Resources[name] = r
	}
	for name, held := range past.Slots {
		if _, shown := u.Resources[name]; !shown && !resource.IsGPUModel(name) { // a model is shown where a quota names it
			u.Resources[name] = api.TenantResource{CurrentUsage: resource.FormatAmount(name, 0), PeakUsage: resource.FormatAmount(name, held.Peak), AvgUsage: average(name, held.Average)}
		}
	}
	if past.Currency != "" {
		u.Cost = costOf(past, u.Period)
	}
	return nil
}

// tellsModels reports whether the history of some slots counts GPUs by their model. That of
// an older version does not.
func tellsModels[V any](slots map[resource.Name]V) bool {
	for name := range slots {
		if resource.IsGPUModel(name) {
			return true
		}
	}
	_, gpus := slots[resource.GPU]
	return !gpus
}

// average shows an average; that of memory in whole MiB, where it is that much.
func average(name resource.Name, amount int64) string {
	const mebi = 1 << 20
	if name.Unit() == "byte" && amount >= mebi {
		amount = amount / mebi * mebi
	}
	return resource.FormatAmount(name, amount)
}

// costOf is the cost by the words of the API.
func costOf(past ask.Tenant, period string) *api.TenantCost {
	var total int64
	sums := map[string]int64{}
	for name, cost := range past.Costs {
		sums[category(name)] += int64(cost)
		total += int64(cost)
	}
	cost := &api.TenantCost{Period: period, Total: api.FormatMoney(past.Currency, total), Breakdown: map[string]string{}}
	for word, sum := range sums {
		cost.Breakdown[word] = api.FormatMoney(past.Currency, sum)
	}
	return cost
}

// category is the word of a breakdown for a resource.
func category(name resource.Name) string {
	_, hugepages, _ := name.HugepageSize()
	_, mig, _ := name.MIGProfile()
	switch {
	case name == resource.CPU || name == resource.Cores:
		return "cpu"
	case name == resource.Memory || hugepages:
		return "memory"
	case name == resource.GPU || mig:
		return "gpu"
	case name == resource.EphemeralStorage:
		return "storage"
	}
	return string(name)
}

// AddWaits implements service.Past.
func (a *Answers) AddWaits(ctx context.Context, u *api.QueueUsage, sees service.PastSight) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	h, err := a.history(ctx)
	if err != nil {
		return a.failed("waits", err)
	}
	now := time.Now()
	since := now.Add(-waitSpan)
	waits, err := h.Waits(ctx, scopeOf(sees), since, now)
	if err != nil {
		return a.failed("waits", err)
	}
	if len(waits) == 0 {
		return nil
	}
	u.Since = since.UTC().Format(time.RFC3339)
	byName := map[string]ask.Wait{}
	for _, w := range waits {
		byName[w.Queue] = w
	}
	for i, q := range u.Queues {
		w := byName[q.Name]
		u.Queues[i].AvgWaitTime, u.Queues[i].P99WaitTime = seconds(w.Average), seconds(w.P99)
	}
	return nil
}

// seconds prints a wait in whole seconds, rounded up: "12s".
func seconds(d time.Duration) string {
	return fmt.Sprintf("%ds", int64((d+time.Second-1)/time.Second))
}

// AddTrend implements service.Past.
func (a *Answers) AddTrend(ctx context.Context, q *api.ResourceQuota, tenant resource.TenantID) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	h, err := a.history(ctx)
	if err != nil {
		return a.failed("trend", err)
	}
	now := time.Now()
	past, known, err := h.Held(ctx, tenant, q.Metadata.Namespace, q.Metadata.Name, q.Spec.Matches, now.Add(-trendSpan))
	if err != nil || !known {
		return a.failed("trend", err)
	}
	hours := int64(now.Sub(past.At) / time.Hour)
	if hours < 1 {
		return nil
	}
	trend, models := map[resource.Name]string{}, tellsModels(past.Held)
	for name, text := range q.Status.Utilization {
		if resource.IsGPUModel(name) && !models {
			continue
		}
		var percent int64
		if _, err := fmt.Sscanf(strings.TrimSuffix(text, "%"), "%d", &percent); err != nil || past.Hard[name] <= 0 {
			continue
		}
		before := int64(float64(past.Held[name]) / float64(past.Hard[name]) * 100)
		trend[name] = fmt.Sprintf("%+d%% over %dh", percent-before, hours)
	}
	if len(trend) > 0 {
		q.Status.Trend = trend
	}
	return nil
}

// scopeOf is the part of the past that a caller sees.
func scopeOf(p service.PastSight) ask.Scope {
	s := ask.Scope{All: p.Everything}
	for _, g := range p.Grants {
		t := ask.TenantScope{Tenant: g.Tenant}
		if len(g.Namespaces) > 0 {
			t.Namespaces = g.Namespaces
		}
		s.Tenants = append(s.Tenants, t)
	}
	return s
}

// queryOf is the query for the database. A continue that is not one is refused with 400.
func queryOf(q service.PastQuery) (ask.Query, error) {
	if q.Continue != "" {
		if _, _, err := ask.ParseToken(q.Continue); err != nil {
			return ask.Query{}, api.Errorf(http.StatusBadRequest, "query parameter %v", err)
		}
	}
	return ask.Query{
		Scope: scopeOf(q.Sees), Namespace: q.Namespace, Name: q.Name, State: q.State, Since: q.Since, Until: q.Until, Limit: q.Limit, Continue: q.Continue,
	}, nil
}

// list asks for a page and turns its rows into documents.
func list[R, D any](ctx context.Context, a *Answers, q service.PastQuery, ask func(*ask.History, ask.Query) ([]R, string, error), document func(R) D) ([]D, api.ListMeta, error) {
	query, err := queryOf(q)
	if err != nil {
		return nil, api.ListMeta{}, err
	}
	h, err := a.history(ctx)
	var rows []R
	var next string
	if err == nil {
		rows, next, err = ask(h, query)
	}
	if err != nil {
		return nil, api.ListMeta{}, unavailable(a.failed("list", err))
	}
	items := make([]D, len(rows))
	for i, r := range rows {
		items[i] = document(r)
	}
	return items, api.ListMeta{Continue: next}, nil
}

// unavailable is the refusal of a question that the database cannot answer now. Its
// error stays in the log: it may name hosts.
func unavailable(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return api.Errorf(http.StatusServiceUnavailable, "the history's database does not answer; the coordinator's log has its error")
}

// stamp prints an instant; "" for one that did not come.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// amounts prints a vector.
func amounts(v resource.Vector) map[resource.Name]string {
	if len(v) == 0 {
		return nil
	}
	texts := make(map[resource.Name]string, len(v))
	for name, amount := range v {
		texts[name] = resource.FormatAmount(name, amount)
	}
	return texts
}

// PastAllocations implements service.Past.
func (a *Answers) PastAllocations(ctx context.Context, q service.PastQuery) (*api.PastAllocationList, error) {
	items, meta, err := list(ctx, a, q, func(h *ask.History, q ask.Query) ([]ask.Allocation, string, error) { return h.Allocations(ctx, q) },
		func(r ask.Allocation) api.PastAllocation {
			return api.PastAllocation{
				UID: r.UID, Namespace: r.Namespace, Name: r.Name, Unit: unitOf(r), Job: r.Job, Tenant: r.Tenant, User: r.User, Queue: r.Queue, Priority: r.Priority,
				Phase: r.State, Reason: r.Reason, Message: r.Message, Requests: amounts(r.Requests),
				CreationTimestamp: stamp(r.Created), ScheduledTime: stamp(r.Scheduled), StartTime: stamp(r.Started), CompletionTime: stamp(r.Ended),
			}
		})
	if err != nil {
		return nil, err
	}
	return &api.PastAllocationList{Kind: api.KindPastAllocation + "List", Metadata: meta, Items: items}, nil
}

// unitOf is the number of a job's unit; nil for an allocation that is none of a job.
func unitOf(r ask.Allocation) *int {
	if r.Job == "" {
		return nil
	}
	return &r.Unit
}

// PastPreemptions implements service.Past.
func (a *Answers) PastPreemptions(ctx context.Context, q service.PastQuery) (*api.PastPreemptionList, error) {
	items, meta, err := list(ctx, a, q, func(h *ask.History, q ask.Query) ([]ask.Preemption, string, error) { return h.Preemptions(ctx, q) },
		func(r ask.Preemption) api.PastPreemption {
			return api.PastPreemption{
				ID: r.ID, Allocation: r.Victim, Namespace: r.VictimNamespace, Tenant: r.VictimTenant, Priority: r.VictimPriority, PreemptorPriority: r.PreemptorPriority,
				Reason: r.Reason, Outcome: r.Outcome, InitiatedBy: r.InitiatedBy, ResourcesFreed: amounts(r.Freed),
				InitiatedTime: stamp(r.Initiated), EvictedTime: stamp(r.Evicted), RescheduledTime: stamp(r.Rescheduled),
			}
		})
	if err != nil {
		return nil, err
	}
	return &api.PastPreemptionList{Kind: api.KindPastPreemption + "List", Metadata: meta, Items: items}, nil
}

// PastEvents implements service.Past.
func (a *Answers) PastEvents(ctx context.Context, q service.PastQuery) (*api.PastEventList, error) {
	items, meta, err := list(ctx, a, q, func(h *ask.History, q ask.Query) ([]ask.Event, string, error) { return h.Events(ctx, q) },
		func(r ask.Event) api.PastEvent {
			return api.PastEvent{Time: stamp(r.At), Type: r.Type, Tenant: r.Tenant, Namespace: r.Namespace, Allocation: r.Object, Reason: r.Reason, Message: r.Message}
		})
	if err != nil {
		return nil, err
	}
	return &api.PastEventList{Kind: api.KindPastEvent + "List", Metadata: meta, Items: items}, nil
}
