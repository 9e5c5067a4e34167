package ask

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/musterd/muster/resource"
)

// Bounds of a page.
const (
	DefaultLimit = 100
	MostLimit    = 1000
	maxToken     = 512
)

// Query selects rows of the past. Zero fields select all.
type Query struct {
	Scope                  Scope
	Namespace, Name, State string
	Since, Until           time.Time
	Limit                  int // 1..1000; 0 is 100
	// Continue is what a page before gave for the next.
	Continue string
}

// place is the last row of a page: instants fall, and ids fall within an instant.
type place struct {
	ms int64
	id string
}

func (p place) token() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(p.ms, 10) + " " + p.id))
}

// ParseToken reads the place that a page ended at.
func ParseToken(text string) (ms int64, id string, err error) {
	wrong := fmt.Errorf("continue: want the text that the page before gave")
	if len(text) > maxToken {
		return 0, "", wrong
	}
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return 0, "", wrong
	}
	number, id, found := strings.Cut(string(decoded), " ")
	if ms, err = strconv.ParseInt(number, 10, 64); !found || err != nil || ms < 0 || ms > 1<<52 || id == "" || strings.ContainsRune(id, 0) || !utf8.ValidString(id) {
		return 0, "", wrong
	}
	return ms, id, nil
}

// Allocation is an allocation of the past, or a unit of a job.
type Allocation struct {
	UID, Namespace, Name, Job string
	Tenant, User, Queue       string
	// Unit is the number of the unit within its job, from 0; 0 for an allocation that is
	// none of a job.
	Unit                               int
	Priority                           int32
	State, Reason, Message             string
	Created, Scheduled, Started, Ended time.Time
	Requests                           resource.Vector
}

// Preemption is an eviction of the past.
type Preemption struct {
	ID                                    string
	Victim, VictimNamespace, VictimTenant string
	VictimPriority                        int32
	PreemptorTenant                       string
	PreemptorPriority                     int32
	Reason, Outcome, InitiatedBy          string
	Initiated, Evicted, Rescheduled       time.Time
	Freed                                 resource.Vector
}

// Event is something that happened to an allocation.
type Event struct {
	At                        time.Time
	Type, Reason, Message     string
	Tenant, Namespace, Object string
}

// page is a page of rows, and the token of the next; "" at the end.
func page[T any](ctx context.Context, h *History, q Query, query string, args []any, take func(scan func(...any) error) (T, place, error)) ([]T, string, error) {
	limit := q.Limit
	if limit == 0 {
		limit = DefaultLimit
	}
	var all []T
	var last place
	next := ""
	err := h.each(ctx, fmt.Sprintf("%s LIMIT %d", query, limit+1), func(scan func(...any) error) error {
		row, at, err := take(scan)
		if err != nil {
			return err
		}
		if len(all) == limit {
			next = last.token()
			return nil
		}
		all, last = append(all, row), at
		return nil
	}, args...)
	return all, next, err
}

// conditions collects the conditions of a query.
type conditions struct {
	h     *History
	parts []string
	args  []any
}

func (c *conditions) add(condition string, value any) {
	c.args = append(c.args, value)
	c.parts = append(c.parts, strings.ReplaceAll(condition, "?", fmt.Sprintf("$%d", len(c.args))))
}

// text adds an equality where the value is given.
func (c *conditions) text(column, value string) {
	if value != "" {
		c.add(column+" = ?", value)
	}
}

// of are the conditions of a query on the columns of a table; instant is the column by
// which its rows are in order and id the one within an instant.
func (h *History) of(q Query, instant, id, tenant, namespace string) (*conditions, error) {
	c := &conditions{h: h}
	where, args := q.Scope.where(tenant, namespace, nil)
	c.parts, c.args = []string{where, instant + " IS NOT NULL"}, args
	c.text(namespace, q.Namespace)
	if !q.Since.IsZero() {
		c.add(instant+" >= ?", h.instant(q.Since))
	}
	if !q.Until.IsZero() {
		c.add(instant+" < ?", h.instant(q.Until))
	}
	if q.Continue != "" {
		ms, last, err := ParseToken(q.Continue)
		if err != nil {
			return nil, err
		}
		c.args = append(c.args, h.instant(time.UnixMilli(ms)), last)
		c.parts = append(c.parts, fmt.Sprintf("(%s, %s) < ($%d, $%d)", instant, id, len(c.args)-1, len(c.args)))
	}
	return c, nil
}

func (c *conditions) where() string { return strings.Join(c.parts, " AND ") }

// amounts reads an object of amounts as text, by slot.
func (h *History) amounts(object *string) (resource.Vector, error) {
	if object == nil {
		return nil, nil
	}
	var texts map[resource.Name]string
	if err := json.Unmarshal([]byte(*object), &texts); err != nil {
		return nil, err
	}
	v := resource.Vector{}
	for slot, text := range texts {
		var err error
		if v[slot], err = h.amount(slot, text); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// Allocations is a page of allocations, the newest first, and the token of the next.
func (h *History) Allocations(ctx context.Context, q Query) ([]Allocation, string, error) {
	c, err := h.of(q, "a.created_at", "a.allocation_id", "a.tenant_id", "a.namespace")
	if err != nil {
		return nil, "", err
	}
	c.text("a.allocation_name", q.Name)
	c.text("a.state", q.State)
	query := `SELECT a.allocation_id, a.namespace, a.allocation_name, a.unit_number, coalesce(a.job_name, ''), a.tenant_id, a.user_name, a.queue, a.priority, a.state, a.reason, a.message,
			a.created_at, a.scheduled_at, a.started_at, a.completed_at,
			(SELECT {object}(r.slot_name, CAST(r.requested AS TEXT)) FROM allocation_requests r WHERE r.allocation_id = a.allocation_id AND r.reverted = 0)
		FROM allocations a WHERE a.reverted = 0 AND ` + c.where() + ` ORDER BY a.created_at DESC, a.allocation_id DESC`
	all, next, err := page(ctx, h, q, query, c.args, func(scan func(...any) error) (Allocation, place, error) {
		var a Allocation
		var requests *string
		err := scan(&a.UID, &a.Namespace, &a.Name, &a.Unit, &a.Job, &a.Tenant, &a.User, &a.Queue, &a.Priority, &a.State, &a.Reason, &a.Message,
			stamp{&a.Created}, stamp{&a.Scheduled}, stamp{&a.Started}, stamp{&a.Ended}, &requests)
		if err == nil {
			a.Requests, err = h.amounts(requests)
		}
		return a, place{a.Created.UnixMilli(), a.UID}, err
	})
	if err != nil {
		return nil, "", fmt.Errorf("past allocations: %w", err)
	}
	return all, next, nil
}

// Preemptions is a page of preemptions of victims within the scope, the newest first.
// Query.Name is the victim's, State the outcome.
func (h *History) Preemptions(ctx context.Context, q Query) ([]Preemption, string, error) {
	c, err := h.of(q, "p.initiated_at", "p.preemption_id", "p.preempted_tenant", "coalesce(a.namespace, '')")
	if err != nil {
		return nil, "", err
	}
	c.text("a.allocation_name", q.Name)
	c.text("p.outcome", q.State)
	query := `SELECT p.preemption_id, coalesce(a.allocation_name, p.preempted_job_id), coalesce(a.namespace, ''), p.preempted_tenant, p.preempted_priority,
			p.preempting_tenant, p.preempting_priority, p.reason, p.outcome, p.initiated_by, p.initiated_at, p.evicted_at, p.rescheduled_at,
			(SELECT {object}(f.slot_name, CAST(f.freed AS TEXT)) FROM preemption_freed f WHERE f.preemption_id = p.preemption_id AND f.reverted = 0)
		FROM preemption_events p LEFT JOIN allocations a ON a.allocation_id = p.preempted_job_id AND a.reverted = 0
		WHERE p.reverted = 0 AND ` + c.where() + ` ORDER BY p.initiated_at DESC, p.preemption_id DESC`
	all, next, err := page(ctx, h, q, query, c.args, func(scan func(...any) error) (Preemption, place, error) {
		var p Preemption
		var freed *string
		err := scan(&p.ID, &p.Victim, &p.VictimNamespace, &p.VictimTenant, &p.VictimPriority, &p.PreemptorTenant, &p.PreemptorPriority,
			&p.Reason, &p.Outcome, &p.InitiatedBy, stamp{&p.Initiated}, stamp{&p.Evicted}, stamp{&p.Rescheduled}, &freed)
		if err == nil {
			p.Freed, err = h.amounts(freed)
		}
		return p, place{p.Initiated.UnixMilli(), p.ID}, err
	})
	if err != nil {
		return nil, "", fmt.Errorf("past preemptions: %w", err)
	}
	return all, next, nil
}

// sources are the instants of rows at which something happened to an allocation a. Each
// is limited by itself before all are put in order, so that a page reads few rows. tenant and
// namespace are columns of the table that has the instant, where it has them, so that an index
// has them together. byTenant says that an index has the rows of a tenant in the order of the
// instant.
var sources = []struct {
	kind, tenant, namespace, instant, reason, message, from string
	byTenant                                                bool
}{
	{"Created", "a.tenant_id", "a.namespace", "a.created_at", "''", "''", "allocations a", true},
	{"Scheduled", "a.tenant_id", "a.namespace", "a.scheduled_at", "''", "''", "allocations a", false},
	{"Started", "a.tenant_id", "a.namespace", "a.started_at", "''", "''", "allocations a", false},
	{"Ended", "a.tenant_id", "a.namespace", "a.completed_at", "a.reason", "a.message", "allocations a", false},
	{"Signaled", "g.tenant_id", "g.namespace", "g.signaled_at", "''", "''", "grants g JOIN allocations a ON a.allocation_id = g.allocation_id AND g.reverted = 0", false},
	{"Waiting", "w.tenant_id", "w.namespace", "w.since_at", "w.reason", "w.message", "queue_history w JOIN allocations a ON a.allocation_id = w.allocation_id AND w.reverted = 0", true},
	{"Preempted", "p.preempted_tenant", "a.namespace", "p.initiated_at", "p.outcome", "p.reason", "preemption_events p JOIN allocations a ON a.allocation_id = p.preempted_job_id AND p.reverted = 0", true},
}

// Events is a page of events of allocations within the scope, the newest first.
// Query.Name is the allocation's, State the type of the event.
func (h *History) Events(ctx context.Context, q Query) ([]Event, string, error) {
	limit := q.Limit
	if limit == 0 {
		limit = DefaultLimit
	}
	var parts []string
	var args []any
	for _, s := range sources {
		id := "'" + s.kind + " ' || a.allocation_id"
		tenant := s.tenant
		if !h.postgres && !s.byTenant {
			tenant = "+" + tenant // SQLite would sort all rows of the tenant, not read the newest
		}
		c, err := h.of(q, s.instant, id, tenant, s.namespace)
		if err != nil {
			return nil, "", err
		}
		c.text("a.allocation_name", q.Name)
		if q.State != "" {
			c.add("'"+s.kind+"' = ?", q.State)
		}
		part := fmt.Sprintf(`SELECT * FROM (SELECT %s AS at, '%s' AS kind, %s AS reason, %s AS message, a.tenant_id, a.namespace, a.allocation_name, %s AS id
			FROM %s WHERE a.reverted = 0 AND %s ORDER BY at DESC, id DESC LIMIT %d) AS %s`, s.instant, s.kind, s.reason, s.message, id, s.from, c.where(), limit+1, strings.ToLower(s.kind))
		parts = append(parts, shifted(part, len(args)))
		args = append(args, c.args...)
	}
	query := "SELECT at, kind, reason, message, tenant_id, namespace, allocation_name, id FROM (" + strings.Join(parts, " UNION ALL ") + ") AS events ORDER BY at DESC, id DESC"
	all, next, err := page(ctx, h, q, query, args, func(scan func(...any) error) (Event, place, error) {
		var e Event
		var id string
		err := scan(stamp{&e.At}, &e.Type, &e.Reason, &e.Message, &e.Tenant, &e.Namespace, &e.Object, &id)
		return e, place{e.At.UnixMilli(), id}, err
	})
	if err != nil {
		return nil, "", fmt.Errorf("past events: %w", err)
	}
	return all, next, nil
}

// shifted is a query whose parameters stand behind others.
func shifted(query string, by int) string {
	return parameters.ReplaceAllStringFunc(query, func(p string) string {
		n, _ := strconv.Atoi(p[1:])
		return fmt.Sprintf("$%d", n+by)
	})
}
