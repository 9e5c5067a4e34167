package warehouse

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/registry"
)

// Each function adds the rows of one value; the order of the values is that of the
// table's columns.

func slotRow(r *rows, s history.Slot) {
	known := registry.Describe(s.Name)
	if s.Kind == "" {
		s.Kind = string(known.Kind)
	}
	format := map[string]string{"count": "0.###", "bytes": "binary", "unique": "0"}[s.Kind]
	r.add(string(s.Name), plain(s.Kind), plain(s.DisplayName), plain(s.Description), plain(s.Unit), format, int64(s.Rank), s.PerCluster, known.BuiltIn,
		s.Name.Scale(), int64(s.Revision))
}

// describedSlot is a slot that no batch has described yet.
func describedSlot(name resource.Name) history.Slot {
	e := registry.Describe(name)
	return history.Slot{Name: name, Kind: string(e.Kind), DisplayName: e.DisplayName, Unit: e.Unit, PerCluster: e.Scope == registry.PerCluster, Rank: e.Rank}
}

func nodeRow(r *rows, n history.Node, at time.Time) {
	r.add(string(n.ID), plain(n.Hostname), plain(n.Cluster), plain(n.Zone), plain(n.Region), plain(n.Rack), plain(n.GPUModel),
		object(n.Labels), plainDocument(n.Taints), object(n.Annotations), plainDocument(n.Conditions), plain(n.Phase), n.Cordoned,
		n.Registered, n.Deleted, at, int64(n.Revision))
}

func nodeCapacityRows(r *rows, n history.Node) {
	for _, slot := range union(n.Capacity, n.Allocatable) {
		r.add(string(n.ID), string(slot), quantityOf(slot, n.Capacity[slot]), quantityOf(slot, n.Allocatable[slot]))
	}
}

func conditionRow(r *rows, c history.Condition) {
	r.add(string(c.Node), plain(c.Type), int64(c.Revision), plain(c.Old), plain(c.New), plain(c.Reason), plain(c.Message), c.At)
}

func jobRow(r *rows, j history.Job) {
	r.add(plain(j.UID), plain(j.Namespace), plain(j.Name), plain(string(j.Tenant)), plain(j.User), plain(j.Phase), plainDocument(j.Document),
		j.Created, j.Ended, plain(j.Reason), plain(j.Message), int64(j.Revision))
}

func unitRow(r *rows, u history.Unit, at time.Time) {
	var ttl *int64
	if u.TTL > 0 {
		ms := u.TTL.Milliseconds()
		ttl = &ms
	}
	r.add(string(u.UID), plain(string(u.Tenant)), plain(u.Namespace), plain(u.Name), int64(u.N), plain(u.JobUID), plain(u.JobName), plain(u.User), plain(u.Queue),
		int64(u.Priority), plain(u.PriorityClass), plain(u.PreemptionPolicy), plain(u.QOSClass), plain(u.GroupID), int64(u.Members),
		plainDocument(u.NodeSelector), plainDocument(u.Affinity), plainDocument(u.Tolerations), plainDocument(u.Topology),
		plain(u.State), plain(u.Reason), plain(u.Message), u.Created, u.Scheduled, u.Started, u.Ended, ttl, u.TimeLimited, u.Expires, int64(u.Retries), at, int64(u.Revision))
}

func requestRows(r *rows, u history.Unit) {
	for _, slot := range union(u.Requests, u.Limits) {
		r.add(string(u.UID), string(slot), quantityOf(slot, u.Requests[slot]), optionalQuantity(slot, u.Limits))
	}
}

func grantRow(r *rows, g history.Grant) {
	r.add(string(g.Tx), string(g.Unit), plain(g.Namespace), plain(string(g.Tenant)), plain(g.State), g.Committed, g.Ready, g.Signaled, g.Ending, g.Ended, g.Evicted,
		string(g.By), plain(g.Reason), plainDocument(g.Exits), int64(g.Revision))
}

func memberRows(members, resources *rows, g history.Grant) {
	for _, m := range g.Members {
		members.add(string(g.Tx), int64(m.Index), string(m.Node), plain(m.GPUModel), list(m.Devices), m.Ended)
		for _, slot := range union(m.Requested, m.Allocated, m.Limits) {
			resources.add(string(g.Tx), int64(m.Index), string(slot), quantityOf(slot, m.Requested[slot]), optionalQuantity(slot, m.Allocated), optionalQuantity(slot, m.Limits))
		}
	}
}

// The states of a stay in the queue.
const (
	queueActive  = "Active"  // tried when something changes
	queueBackoff = "Backoff" // not tried before next_retry_at
)

func waitRow(r *rows, w history.Wait) {
	state := queueActive
	if !w.NextTry.IsZero() {
		state = queueBackoff
	}
	r.add(string(w.Unit), bounded(w.Since), w.Until, plain(w.Namespace), plain(string(w.Tenant)), plain(w.Queue), int64(w.Priority), state, plain(w.Code), plain(w.Message),
		int64(w.Attempts), w.NextTry, int64(w.Revision))
}

func quotaRow(r *rows, q history.Quota) {
	r.add(plain(q.Namespace), plain(q.Name), string(q.Slot), bounded(q.From), q.To, plain(string(q.Tenant)), quantityOf(q.Slot, q.Hard), quantityOf(q.Slot, q.Soft), q.Scoped, int64(q.Revision))
}

func preemptionRow(r *rows, p history.Preemption) {
	r.add(string(p.Tx), string(p.By), string(p.Preemptor), plain(string(p.PreemptorTenant)), int64(p.PreemptorPriority), string(p.Victim),
		plain(string(p.VictimTenant)), int64(p.VictimPriority), plain(p.Reason), bounded(p.Initiated), p.Grace.Milliseconds(), p.Evicted, p.Rescheduled,
		plain(p.Outcome), plain(p.InitiatedBy), int64(p.Revision))
}

func preemptionDetailRows(onNodes, freed *rows, p history.Preemption) {
	for _, node := range unique(p.Nodes) {
		onNodes.add(string(p.Tx), string(node), bounded(p.Initiated))
	}
	for _, slot := range p.Freed.Names() {
		freed.add(string(p.Tx), string(slot), quantityOf(slot, p.Freed[slot]))
	}
}

func auditRow(r *rows, a history.Audit) {
	r.add(plain(a.ID), bounded(a.At), plainDocument(a.Actor), plain(a.User), plain(a.Verb), plain(a.Kind), plain(a.Namespace), plain(a.Name), plain(a.RequestID),
		plain(a.Result), int64(a.Revision))
}

func sliceRow(r *rows, s history.Slice, revision resource.Revision) {
	limit := quantityOf(s.Slot, s.Limit)
	limit.none = limit.none || s.Limit == 0
	measured := quantity{none: true}
	if s.Measured != nil {
		measured = quantity{base: *s.Measured, scale: s.Slot.Scale() * 1000}
	}
	r.add(string(s.Tx), int64(s.Member), string(s.Slot), bounded(s.From), bounded(s.To), string(s.Unit), plain(s.Namespace), plain(string(s.Tenant)), string(s.Node),
		plain(s.GPUModel), quantityOf(s.Slot, s.Requested), quantityOf(s.Slot, s.Allocated), limit, measured, s.Counter, int64(revision))
}

func dirtyRow(r *rows, s history.Slice) {
	r.add(bounded(s.From).Truncate(time.Hour), plain(string(s.Tenant)), plain(s.Namespace), string(s.Slot), plain(s.GPUModel))
}

func gapRow(r *rows, g history.Gap) {
	r.add(int64(g.From), int64(g.Upto), g.At, plain(g.Reason))
}

func heartbeatRow(r *rows, h history.Heartbeat) {
	r.add(string(h.Node), bounded(h.At), h.CPUMillicores, h.MemoryBytes, percentages(h.GPUUtilizationPercent), h.DiskBytes, h.NetworkReceivedBytes, h.NetworkSentBytes, h.MembersRunning,
		h.MembersPending, h.WorkRunning, h.LoadAverageOneMinute, h.LoadAverageFiveMinutes, h.OOMKills)
}

func quotaUsageRow(r *rows, q history.QuotaUsage) {
	var percent *float64
	if q.Hard > 0 && q.Hard != resource.Unlimited {
		value := 100 * float64(q.Used) / float64(q.Hard)
		percent = &value
	}
	r.add(plain(string(q.Tenant)), plain(q.Namespace), plain(q.Name), string(q.Slot), bounded(q.At), quantityOf(q.Slot, q.Used), quantityOf(q.Slot, q.Peak), q.PeakAt,
		quantityOf(q.Slot, q.Hard), percent)
}

// The instants of keys are within these years: PostgreSQL keeps a partition for each
// month, and a wrong clock must not make a thousand.
var (
	firstInstant = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	lastInstant  = time.Date(2199, 12, 31, 23, 59, 59, 0, time.UTC)
)

// bounded is the instant, or the nearest one that a key may have.
func bounded(t time.Time) time.Time {
	switch {
	case t.Before(firstInstant):
		return firstInstant
	case t.After(lastInstant):
		return lastInstant
	}
	return wholeMilliseconds(t)
}

// optionalQuantity is NULL where the vector does not have the name: unknown is not 0.
func optionalQuantity(name resource.Name, v resource.Vector) quantity {
	base, known := v[name]
	q := quantityOf(name, base)
	q.none = q.none || !known
	return q
}

// union are the names of all vectors, ascending.
func union(vectors ...resource.Vector) []resource.Name {
	all := resource.Vector{}
	for _, v := range vectors {
		for name := range v {
			all[name] = 0
		}
	}
	return all.Names()
}

// unique are the elements without repetition, ascending.
func unique[T cmp.Ordered](elements []T) []T {
	sorted := slices.Sorted(slices.Values(elements))
	return slices.Compact(sorted)
}

// percentages is a JSON array; a number that is none becomes null.
func percentages(numbers []float64) []byte {
	if len(numbers) == 0 {
		return nil
	}
	out := make([]*float64, len(numbers))
	for i := range numbers {
		if n := numbers[i]; !math.IsNaN(n) && !math.IsInf(n, 0) {
			out[i] = &n
		}
	}
	raw, _ := json.Marshal(out) // finite numbers alone
	return raw
}
