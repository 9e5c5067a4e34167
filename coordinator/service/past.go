package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// KindPast is the past of allocations, in the namespaces that the caller sees.
const KindPast Kind = "past"

// Past answers about the past from a database. All methods may block on it; an error
// that is no *api.Status means that the database could not answer.
type Past interface {
	// AddUsage sets the peaks, the averages and the cost of a tenant's usage over a period
	// that ends now, and the beginning of that time.
	AddUsage(ctx context.Context, u *api.TenantUsage, tenant resource.TenantID, period time.Duration) error
	// AddWaits sets the waits of queues over the last 24 h.
	AddWaits(ctx context.Context, u *api.QueueUsage, sees PastSight) error
	// AddTrend sets the trend of a quota over the last 24 h.
	AddTrend(ctx context.Context, q *api.ResourceQuota, tenant resource.TenantID) error

	PastAllocations(ctx context.Context, q PastQuery) (*api.PastAllocationList, error)
	PastPreemptions(ctx context.Context, q PastQuery) (*api.PastPreemptionList, error)
	PastEvents(ctx context.Context, q PastQuery) (*api.PastEventList, error)
}

// PastSight is the work of the past that a caller may see: all of it, or that of grants.
type PastSight struct {
	Everything bool
	Grants     []PastGrant
}

// PastGrant is the work of a tenant; Namespaces limit it, none = all of the tenant's.
type PastGrant struct {
	Tenant     resource.TenantID
	Namespaces []string
}

// PastOf is the past that a caller may see: rows keep the tenant that was charged, so
// that a namespace that has changed hands shows each tenant its own time.
func PastOf(p Principal) PastSight {
	if p.Everywhere(Tenants) {
		return PastSight{Everything: true}
	}
	var past PastSight
	for g := range p.everyGrant {
		if Tenants.Has(g.Role) {
			past.Grants = append(past.Grants, PastGrant{g.Tenant, slices.Clone(g.Namespaces)})
		}
	}
	return past
}

// PastQuery selects rows of the past. Zero fields select all that Sees allows.
type PastQuery struct {
	Sees                   PastSight
	Namespace, Name, State string
	Since, Until           time.Time
	Limit                  int
	Continue               string
}

// Bounds of a page of the past.
const (
	DefaultPastLimit = 100
	MostPastLimit    = 1000
)

// PastParameters are the names of the parameters of a query. state is the phase of an
// allocation, the outcome of a preemption, and the type of an event.
var PastParameters = []string{"continue", "limit", "name", "namespace", "since", "state", "until"}

// mostPastText bounds a text of a query, in bytes.
const mostPastText = 512

// Set takes a parameter of a query.
func (q *PastQuery) Set(name, value string) error {
	texts := map[string]*string{"continue": &q.Continue, "name": &q.Name, "namespace": &q.Namespace, "state": &q.State}
	switch to := texts[name]; {
	case to != nil && len(value) > mostPastText:
		return fmt.Errorf("want %d characters or less", mostPastText)
	case to != nil && (strings.ContainsRune(value, 0) || !utf8.ValidString(value)):
		return errors.New("want UTF-8 without NUL")
	case to != nil:
		*to = value
	case name == "limit":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > MostPastLimit {
			return fmt.Errorf("want a number from 1 to %d", MostPastLimit)
		}
		q.Limit = n
	case name == "since", name == "until":
		at, err := time.Parse(time.RFC3339, value)
		if err != nil || at.Year() < 1970 || at.Year() > 9999 {
			return errors.New("want a time such as 2026-03-01T12:00:00Z")
		}
		*map[string]*time.Time{"since": &q.Since, "until": &q.Until}[name] = at
	}
	return nil
}

// NoPast is the Past of a coordinator that keeps none.
type NoPast struct{}

// ErrNoPast is the refusal of questions about the past.
func ErrNoPast() *api.Status {
	return api.Errorf(http.StatusNotFound, "no history is kept: set history.dsn in the configuration of the coordinators")
}

// AddUsage implements Past.
func (NoPast) AddUsage(context.Context, *api.TenantUsage, resource.TenantID, time.Duration) error {
	return nil
}

// AddWaits implements Past.
func (NoPast) AddWaits(context.Context, *api.QueueUsage, PastSight) error { return nil }

// AddTrend implements Past.
func (NoPast) AddTrend(context.Context, *api.ResourceQuota, resource.TenantID) error { return nil }

// PastAllocations implements Past.
func (NoPast) PastAllocations(context.Context, PastQuery) (*api.PastAllocationList, error) {
	return nil, ErrNoPast()
}

// PastPreemptions implements Past.
func (NoPast) PastPreemptions(context.Context, PastQuery) (*api.PastPreemptionList, error) {
	return nil, ErrNoPast()
}

// PastEvents implements Past.
func (NoPast) PastEvents(context.Context, PastQuery) (*api.PastEventList, error) {
	return nil, ErrNoPast()
}

// Remembering is a Service whose numbers over time come from the history. Where the
// database cannot answer, the numbers are those of s: of the leader's term.
func Remembering(s Service, p Past, a Access) Service {
	if _, none := p.(NoPast); none || p == nil {
		return s
	}
	return remembering{s, p, a}
}

type remembering struct {
	Service
	past   Past
	access Access
}

// TenantUsage implements Metrics.
func (r remembering) TenantUsage(ctx context.Context, tenant resource.TenantID, period time.Duration, asked string) (*api.TenantUsage, error) {
	got, err := r.Service.TenantUsage(ctx, tenant, period, asked)
	if err != nil {
		return nil, err
	}
	return got, onlyRefusals(r.past.AddUsage(ctx, got, tenant, period))
}

// QueueUsage implements Metrics.
func (r remembering) QueueUsage(ctx context.Context, reader Principal) (*api.QueueUsage, error) {
	got, err := r.Service.QueueUsage(ctx, reader)
	if err != nil {
		return nil, err
	}
	return got, onlyRefusals(r.past.AddWaits(ctx, got, PastOf(reader)))
}

// GetResourceQuota implements Quotas.
func (r remembering) GetResourceQuota(ctx context.Context, namespace, name string) (*api.ResourceQuota, error) {
	got, err := r.Service.GetResourceQuota(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return got, onlyRefusals(r.past.AddTrend(ctx, got, r.access.tenantOf(namespace)))
}

// onlyRefusals drops the error of a database: Past logs it.
func onlyRefusals(err error) error {
	if refusal := new(api.Status); errors.As(err, &refusal) {
		return err
	}
	return nil
}
