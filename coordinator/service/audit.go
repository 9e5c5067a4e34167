package service

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// Audits are the changes that persons have made, and the requests that this coordinator
// has refused.
type Audits interface {
	// ListAudit returns a page of the entries that the caller of the context may see, the
	// newest first. A page may have fewer entries than asked for, or none, and go on.
	ListAudit(ctx context.Context, q AuditQuery) (*api.AuditEntryList, error)
	// Refused notes a refused request. It does not block.
	Refused(a record.Audit, status *api.Status)
}

// NoAudits has no entry.
type NoAudits struct{}

// ListAudit implements Audits.
func (NoAudits) ListAudit(context.Context, AuditQuery) (*api.AuditEntryList, error) {
	return &api.AuditEntryList{Kind: api.KindAuditEntry + "List", Items: []api.AuditEntry{}}, nil
}

// Refused implements Audits.
func (NoAudits) Refused(record.Audit, *api.Status) {}

// KindAudit are the entries of the audit.
const KindAudit Kind = "audit"

// changes are the verbs that change something, and those that let a person into the
// work of a tenant.
var changes = []Verb{
	VerbCreate, VerbUpdate, VerbPatch, VerbDelete, VerbCancel, VerbBoost, VerbApprove, VerbDrain, VerbFence, VerbReconcile, VerbReclaim, VerbRotate, VerbLogs, VerbExec,
}

// Begin notes the verb, the kind and the object of a request in the context of the request.
// namespace and name are "" where the request does not name them. The codec calls Begin
// before any other function has the context.
func Begin(ctx context.Context, verb Verb, kind Kind, namespace, name string) {
	if c, found := ctx.Value(callerKey{}).(*Caller); found {
		c.verb, c.kind, c.began = verb, kind, time.Now()
		c.setObject(namespace, name)
		c.id = newAuditID(c.began)
	}
}

// Names notes the object of a request whose document alone names it.
func Names(ctx context.Context, namespace, name string) {
	if c, found := ctx.Value(callerKey{}).(*Caller); found {
		c.setObject(namespace, name)
	}
}

// setObject sets the object of the request. A namespace, and its binding, is in itself.
func (c *Caller) setObject(namespace, name string) {
	if c.kind == KindNamespaces || c.kind == KindQuotaBindings {
		name = cmp.Or(name, namespace)
		namespace = name
	}
	c.namespace, c.name = namespace, name
}

// newAuditID draws the id of an entry: ids sort by time.
func newAuditID(at time.Time) string {
	return fmt.Sprintf("%013d-%s", at.UnixMilli(), strings.ToLower(rand.Text()[:12]))
}

// ChangeOf is the change that the request of a context asks for; nil for a question,
// and where no person has been authenticated.
func ChangeOf(ctx context.Context) *record.Audit {
	c, found := ctx.Value(callerKey{}).(*Caller)
	if !found || c.id == "" || !slices.Contains(changes, c.verb) {
		return nil
	}
	a := c.audit()
	a.Apart = c.isApart()
	return &a
}

// audit is the request of a caller as an entry has it.
func (c *Caller) audit() record.Audit {
	tenant := ""
	if !c.Everywhere(Tenants) {
		tenant = string(c.Tenant)
		if all := c.Tenants(Tenants); tenant == "" && len(all) == 1 {
			tenant = all[0]
		}
	}
	return record.Audit{
		Actor:    record.Actor{ID: c.id, Person: c.Name, Token: c.Token, Tenant: tenant, RequestID: c.RequestID, Address: c.Address, Via: c.Via},
		AtMillis: c.began.UnixMilli(), Verb: string(c.verb), Kind: string(c.kind), Namespace: c.namespace, Name: c.name,
	}
}

// isApart reports whether a caller is an administrator, an operator or a host, and not of
// the people of tenants.
func (c *Caller) isApart() bool {
	return c.Everywhere(Roles(Admin|Operator|Node)) || c.has(Roles(Node), nil) || c.Name == "" && c.Tenant == ""
}

// RefusedRequest is the entry of a request that was refused before Begin: of a caller
// who is not known, or may not do it.
func RefusedRequest(c Caller, verb Verb, kind Kind, namespace, name string) record.Audit {
	c.verb, c.kind, c.began = verb, kind, time.Now()
	c.setObject(Clip(namespace), Clip(name))
	c.id = newAuditID(c.began)
	return c.audit()
}

// Hidden notes that the request of a context is answered by a 404 because the object is
// not the caller's: the refusal has an entry.
func Hidden(ctx context.Context) {
	if c, found := ctx.Value(callerKey{}).(*Caller); found {
		c.fate.hidden.Store(true)
	}
}

// NoteRefused gives the refusal of the request of a context to the audit, as a: where the
// caller is not known or may not do it, and beyond a limit. Each request has one entry at
// most. The 404 of an object that there is not has none.
func NoteRefused(ctx context.Context, to Audits, a record.Audit, status *api.Status) {
	c, known := ctx.Value(callerKey{}).(*Caller)
	switch {
	case status.Code == http.StatusNotFound && !(known && c.fate.hidden.Load()):
		return
	case !slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusNotFound}, status.Code):
		return
	case known && c.fate.noted.Swap(true):
		return
	}
	to.Refused(a, status)
}

// NoteRefusedLate is NoteRefused of a request that Begin has noted.
func NoteRefusedLate(ctx context.Context, to Audits, status *api.Status) {
	c := CallerOf(ctx)
	NoteRefused(ctx, to, RefusedRequest(c, c.verb, c.kind, c.namespace, c.name), status)
}

// AuditQuery selects entries. Zero fields select all.
type AuditQuery struct {
	Person, Verb, Resource, Namespace, Name, Result string
	Since, Until                                    time.Time
	// Before is the id that the page begins before, "" for the newest entry.
	Before string
	Limit  int
}

// Bounds of a page of entries.
const (
	DefaultAuditLimit = 100
	MostAuditLimit    = 1000
)

// fields are the text fields of a query, by the name of their parameter.
func (q *AuditQuery) fields() map[string]*string {
	return map[string]*string{
		"person": &q.Person, "verb": &q.Verb, "resource": &q.Resource, "namespace": &q.Namespace, "name": &q.Name, "result": &q.Result, "continue": &q.Before,
	}
}

// AuditParameters are the names of the parameters of a query.
var AuditParameters = []string{"continue", "limit", "name", "namespace", "person", "resource", "result", "since", "until", "verb"}

// Set takes a parameter of a query.
func (q *AuditQuery) Set(name, value string) error {
	switch to := q.fields()[name]; {
	case to != nil && len(value) > mostAuditText:
		return fmt.Errorf("want %d characters or less", mostAuditText)
	case name == "result" && value != api.AuditDone && value != api.AuditRefused:
		return fmt.Errorf("want %s or %s", api.AuditDone, api.AuditRefused)
	case to != nil:
		*to = value
	case name == "limit":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > MostAuditLimit {
			return fmt.Errorf("want a number from 1 to %d", MostAuditLimit)
		}
		q.Limit = n
	case name == "since", name == "until":
		at, err := time.Parse(time.RFC3339, value)
		if err != nil {
			return errors.New("want a time such as 2026-03-01T12:00:00Z")
		}
		*map[string]*time.Time{"since": &q.Since, "until": &q.Until}[name] = at
	}
	return nil
}

// mostAuditText bounds a text of a query, in bytes.
const mostAuditText = 256

// Matches reports whether a query selects an entry.
func (q *AuditQuery) Matches(e *api.AuditEntry) bool {
	is := func(want, has string) bool { return want == "" || want == has }
	if !is(q.Person, e.Person) || !is(q.Verb, e.Verb) || !is(q.Resource, e.Resource) || !is(q.Namespace, e.Namespace) || !is(q.Name, e.Name) || !is(q.Result, e.Result) {
		return false
	}
	if q.Since.IsZero() && q.Until.IsZero() {
		return true
	}
	at, err := time.Parse(time.RFC3339, e.Time)
	return err == nil && !at.Before(q.Since) && (q.Until.IsZero() || at.Before(q.Until))
}

// SeesAudit reports whether a caller may see an entry: an admin sees all; a tenant-admin
// sees the requests of the people of the own tenant, and every change in the namespaces in
// which the role counts.
func SeesAudit(p Principal, e *api.AuditEntry, tenantOf func(namespace string) resource.TenantID) bool {
	return p.has(TenantAdmins, func(g *Grant) bool {
		switch {
		case g.everywhere():
			return true
		case e.Tenant != "" && e.Tenant == string(g.Tenant) && len(g.Namespaces) == 0:
			return true
		}
		return e.Namespace != "" && e.Result == api.AuditDone && g.covers(e.Namespace, tenantOf(e.Namespace))
	})
}
