package audit

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
)

// Book is the audit of a coordinator. It implements service.Audits.
type Book struct {
	changes, refused, strangers Log
	// files has the refusals of persons, crowds those of strangers; nil: refusals are in
	// memory alone.
	files, crowds *Files
	id            string

	mu    sync.Mutex
	crowd crowd
	ends  *time.Timer // gives the entries of a second to the files; nil while there are none

	counted *prometheus.CounterVec
	lost    prometheus.Counter
	// Fresh waits until all changes are followed that were acknowledged before the call;
	// nil waits for nothing.
	Fresh func(context.Context) error
	// TenantOf is the tenant that owns a namespace.
	TenantOf func(namespace string) resource.TenantID
}

var _ service.Audits = (*Book)(nil)

// Open opens the audit of a coordinator: earlier refusals are read from the files. c.Dir
// "" keeps refusals in memory alone. Metrics go to r, which may be nil.
func Open(id string, c Config, r prometheus.Registerer, log *slog.Logger) (*Book, error) {
	b := &Book{id: id, refused: Log{most: 10_000}, strangers: Log{most: 10_000}}
	b.counted = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "muster_coordinator_audit_refused_total", Help: "Requests that this coordinator has refused and noted, by HTTP status.",
	}, []string{"code"})
	b.lost = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "muster_coordinator_audit_lost_total", Help: "Refused requests that are in no file of the audit: the disk was too slow, or has refused them.",
	})
	for _, code := range []string{"401", "403", "404", "429"} {
		b.counted.WithLabelValues(code)
	}
	if r != nil {
		r.MustRegister(b.counted, b.lost)
	}
	if c.Dir == "" {
		return b, nil
	}
	c.Lost, c.Log = b.lost.Inc, log
	var err error
	if b.files, err = OpenFiles(c, b.refused.Add); err != nil {
		return nil, err
	}
	c.Name, c.Files = "strangers", cmp.Or(c.Files/4, 1)
	b.crowds, err = OpenFiles(c, b.strangers.Add)
	return b, err
}

// Close writes what waits for the disk.
func (b *Book) Close() error {
	if b.files == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.write(b.crowd.end())
	return errors.Join(b.files.Close(), b.crowds.Close())
}

// write gives the entries of a second that is over to the files, where they have been with
// smaller counts. b.mu is held.
func (b *Book) write(over []*api.AuditEntry) {
	for _, e := range over {
		if e.Count > 1 {
			b.append(e)
		}
	}
}

// append gives an entry to the files.
func (b *Book) append(e *api.AuditEntry) {
	switch {
	case b.files == nil:
	case isStranger(e):
		b.crowds.Append(e)
	default:
		b.files.Append(e)
	}
}

// endSecond gives the entries of the present second to the files.
func (b *Book) endSecond() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.write(b.crowd.end())
	b.ends = nil
}

// Followed takes a change that is in the store.
func (b *Book) Followed(a record.Audit) {
	b.changes.Add(&api.AuditEntry{
		APIVersion: api.APIVersion, Kind: api.KindAuditEntry, ID: a.ID, Time: stamp(time.UnixMilli(a.AtMillis)),
		Person: a.Person, Token: a.Token, Tenant: a.Tenant, Verb: a.Verb, Resource: a.Kind, Namespace: a.Namespace, Name: a.Name,
		RequestID: a.RequestID, Address: a.Address, Via: a.Via, Result: api.AuditDone, Count: a.Count,
	})
}

// mostReason bounds the sentence of a refusal in an entry, in bytes.
const mostReason = 512

// Refused implements service.Audits. It does not block.
func (b *Book) Refused(a record.Audit, status *api.Status) {
	reason := status.Message
	if len(reason) > mostReason {
		reason = strings.ToValidUTF8(reason[:mostReason], "") + "…"
	}
	e := &api.AuditEntry{
		APIVersion: api.APIVersion, Kind: api.KindAuditEntry, ID: a.ID, Time: stamp(time.UnixMilli(a.AtMillis)),
		Person: a.Person, Token: a.Token, Tenant: a.Tenant, Verb: a.Verb, Resource: a.Kind, Namespace: a.Namespace, Name: service.Clip(a.Name),
		RequestID: a.RequestID, Address: a.Address, Via: a.Via, Result: api.AuditRefused, Code: status.Code, Reason: reason, Coordinator: b.id,
	}
	b.counted.WithLabelValues(codeName(status.Code)).Inc()
	b.mu.Lock()
	defer b.mu.Unlock()
	e, over := b.crowd.take(time.Now(), e)
	b.write(over)
	if e.Count == 0 {
		b.append(e)
	}
	if b.ends == nil && b.files != nil {
		b.ends = time.AfterFunc(time.Second, b.endSecond)
	}
	if isStranger(e) {
		b.strangers.Add(e)
	} else {
		b.refused.Add(e)
	}
}

// codeName is the label of a status code.
func codeName(code int) string {
	switch code {
	case http.StatusUnauthorized:
		return "401"
	case http.StatusForbidden:
		return "403"
	case http.StatusNotFound:
		return "404"
	}
	return "429"
}

// stamp is a time as entries have it: RFC 3339 with milliseconds.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// ListAudit implements service.Audits.
func (b *Book) ListAudit(ctx context.Context, q service.AuditQuery) (*api.AuditEntryList, error) {
	if b.Fresh != nil {
		if err := b.Fresh(ctx); err != nil {
			return nil, api.Errorf(http.StatusServiceUnavailable, "%v; ask again", err)
		}
	}
	return b.list(ctx, q, mostLooked)
}

// list is ListAudit of the entries that are here, of which it looks at no more than
// looked of each log.
func (b *Book) list(ctx context.Context, q service.AuditQuery, looked int) (*api.AuditEntryList, error) {
	reader := service.CallerOf(ctx).Principal
	match := func(e *api.AuditEntry) bool { return q.Matches(e) && service.SeesAudit(reader, e, b.tenantOf) }
	var all []*api.AuditEntry
	from := ""
	for _, log := range []*Log{&b.changes, &b.refused, &b.strangers} {
		found, more := log.page(q.Before, q.Limit, looked, match)
		all, from = append(all, found...), max(from, more)
	}
	list := &api.AuditEntryList{Kind: api.KindAuditEntry + "List", Items: []api.AuditEntry{}}
	// from is the newest id at the end of a log's part. Older entries of the other logs belong
	// to the next page.
	slices.SortFunc(all, func(a, b *api.AuditEntry) int { return cmp.Compare(b.ID, a.ID) })
	for _, e := range all {
		if len(list.Items) == q.Limit || e.ID < from {
			break
		}
		list.Items = append(list.Items, *e)
	}
	switch n := len(list.Items); {
	case n < q.Limit:
		list.Metadata.Continue = from
	case n < len(all) || from != "":
		list.Metadata.Continue = list.Items[n-1].ID
	}
	return list, nil
}

func (b *Book) tenantOf(namespace string) resource.TenantID {
	if b.TenantOf == nil {
		return resource.TenantID(namespace)
	}
	return b.TenantOf(namespace)
}
