package cli

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// auditBook is an audit of three entries, of which the third comes between the first two
// questions of a watch. The token is revoked before the third question.
type auditBook struct {
	service.NoAudits
	mu    sync.Mutex
	again int // questions of a watch after its first
}

var auditEntries = []api.AuditEntry{ // the newest first
	{ID: "1772366402000-c", Time: "2026-03-01T12:00:02.000Z", Person: "ada@example.org", Token: "at-5d1f09c2ab", Tenant: "vision", Verb: "cancel", Resource: "jobs", Namespace: "vision", Name: "train", RequestID: "r-3", Address: "10.0.0.17:40213", Via: "coordinator-2", Coordinator: "coordinator-1", Result: api.AuditDone},
	{ID: "1772366401500-b", Time: "2026-03-01T12:00:01.500Z", Person: "eve@example.org", Token: "at-77c0ffee01", Tenant: "speech", Verb: "drain", Resource: "nodes", Name: "gpu-1", RequestID: "r-2", Address: "10.0.0.66:50000", Coordinator: "coordinator-1", Result: api.AuditRefused, Code: http.StatusForbidden, Reason: "want the role operator"},
	{ID: "1772366400125-a", Time: "2026-03-01T12:00:00.125Z", Person: "ada@example.org", Token: "at-5d1f09c2ab", Tenant: "vision", Verb: "create", Resource: "jobs", Namespace: "vision", Name: "train", RequestID: "r-1", Address: "10.0.0.17:40212", Coordinator: "coordinator-1", Result: api.AuditDone},
}

// ListAudit implements service.Audits.
func (b *auditBook) ListAudit(_ context.Context, q service.AuditQuery) (*api.AuditEntryList, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	have := auditEntries[1:]
	if !q.Since.IsZero() {
		b.again++
		have = auditEntries
	}
	if b.again > 1 {
		b.again = 0 // of the next watch
		return nil, api.Errorf(http.StatusUnauthorized, "the token is not valid here: it was revoked, or it is of another cluster")
	}
	l := &api.AuditEntryList{Kind: api.KindAuditEntry + "List", Items: []api.AuditEntry{}}
	for _, e := range have {
		if (q.Person == "" || q.Person == e.Person) && (q.Result == "" || q.Result == e.Result) && (q.Resource == "" || q.Resource == e.Resource) && (q.Name == "" || q.Name == e.Name) {
			e.Kind = api.KindAuditEntry
			l.Items = append(l.Items, e)
		}
	}
	l.Items = slices.Clip(l.Items)
	return l, nil
}
