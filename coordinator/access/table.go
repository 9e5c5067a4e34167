package access

import (
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// Table is the tokens and the bindings as this coordinator has followed the store.
// One goroutine at a time changes it (Reset, Note, Publish); any number of goroutines
// read the rules, without a lock.
type Table struct {
	log *slog.Logger
	now atomic.Pointer[rules]

	// The parts below belong to the goroutine that changes the table.
	tokens   map[string]*token
	bindings map[string]*api.RoleBinding
	dirty    bool
}

// rules are the tokens and the bindings at one revision. The value is immutable.
type rules struct {
	tokens   map[string]*token
	bindings map[string]*api.RoleBinding
	users    map[string]*subject // by the name of the user
	groups   map[string]*subject // by the name of the group
	bound    map[string]*subject // by the id of the token
	// over is closed when other rules are in force.
	over chan struct{}
	// holders are the roles of callers under these rules; a pointer, for it is filled
	// later.
	holders *holders
}

// token is one access token. The value is immutable.
type token struct {
	record    record.AccessToken
	principal service.Principal // without the grants of bindings
	secrets   [record.MostSecrets]secret

	certificate certificate
}

// secret is the digest of one secret and the time when it ends; the zero value
// proves nothing.
type secret struct {
	digest  [sha256.Size]byte
	expires time.Time // zero: with the token
	valid   bool
}

// NewTable returns a table without tokens and bindings. A nil logger discards.
func NewTable(log *slog.Logger) *Table {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	t := &Table{log: log, tokens: map[string]*token{}, bindings: map[string]*api.RoleBinding{}}
	t.now.Store(&rules{over: make(chan struct{}), holders: new(holders)})
	return t
}

// Reset begins with an empty table; the rules in force stay until Publish.
func (t *Table) Reset() {
	t.tokens, t.bindings, t.dirty = map[string]*token{}, map[string]*api.RoleBinding{}, true
}

// Note takes a key of the store that has changed; kv is nil for a key that was
// deleted. A token or a binding that cannot be read gives no right.
func (t *Table) Note(key string, kv *record.KV) {
	if !strings.HasPrefix(key, record.AuthPrefix) {
		return
	}
	t.dirty = true
	if id, err := record.ParseAccessTokenKey(key); err == nil {
		delete(t.tokens, id)
		if kv == nil {
			return
		}
		rec, err := record.Decode[record.AccessToken](key, kv.Value)
		if err != nil {
			t.log.Error("access_token_unreadable", "key", key, "error", err)
			return
		}
		t.tokens[id] = newToken(rec)
		return
	}
	name, err := record.ParseRoleBindingKey(key)
	if err != nil {
		return
	}
	delete(t.bindings, name)
	if kv == nil {
		return
	}
	b, err := shown.RoleBinding(*kv)
	if err != nil {
		t.log.Error("role_binding_unreadable", "key", key, "error", err)
		return
	}
	t.bindings[name] = b
}

// Publish puts the noted changes in force.
func (t *Table) Publish() {
	if !t.dirty {
		return
	}
	t.dirty = false
	next := &rules{tokens: maps.Clone(t.tokens), bindings: maps.Clone(t.bindings), users: map[string]*subject{}, groups: map[string]*subject{}, bound: map[string]*subject{}, over: make(chan struct{}), holders: new(holders)}
	for _, name := range slices.Sorted(maps.Keys(t.bindings)) {
		b := t.bindings[name]
		g := service.GrantOf(b.Spec.Role, b.Spec.Tenant, b.Spec.Namespaces)
		for _, s := range b.Spec.Subjects {
			to := next.users
			switch s.Kind {
			case api.SubjectToken:
				to = next.bound
			case api.SubjectGroup:
				to = next.groups
			}
			if to[s.Name] == nil {
				to[s.Name] = new(subject)
			}
			to[s.Name].grants = append(to[s.Name].grants, g)
		}
	}
	for _, subjects := range []map[string]*subject{next.users, next.groups, next.bound} {
		for _, s := range subjects {
			if len(s.grants) >= manyRoles {
				s.shared = service.ListOf(slices.Clone(s.grants))
			}
		}
	}
	close(t.now.Swap(next).over)
}

// Changed is closed when other rules than those of the call are in force.
func (t *Table) Changed() <-chan struct{} { return t.now.Load().over }

// Judge has every open request judged again, as after a change of the rules: the proofs of
// callers have changed, such as the keys of the identity provider. Any goroutine may call
// it.
func (t *Table) Judge() {
	for {
		before := t.now.Load()
		again := *before
		again.over = make(chan struct{})
		if t.now.CompareAndSwap(before, &again) {
			close(before.over)
			return
		}
	}
}

// GrantsOf are the roles that bindings give to a user.
func (t *Table) GrantsOf(user string) []service.Grant {
	if s := t.now.Load().users[user]; s != nil {
		return s.grants
	}
	return nil
}

// newToken makes the token of a record that was decoded.
func newToken(rec record.AccessToken) *token {
	t := &token{record: rec, principal: service.Principal{
		Name: rec.User, Proof: api.ProofAccessToken, Token: rec.ID, Tenant: resource.TenantID(rec.Tenant), Ceiling: rec.Ceiling, Expires: instant(rec.Expires),
		Grants: []service.Grant{},
	}}
	if rec.Role != "" {
		t.principal.Grants = append(t.principal.Grants, service.GrantOf(rec.Role, rec.Tenant, rec.Namespaces))
	}
	if t.certificate = certificateOf(rec.Certificate); t.certificate.valid {
		t.principal.Proof = api.ProofCertificate
	}
	for i, s := range rec.Secrets {
		sum, err := hex.DecodeString(s.SHA256)
		if err == nil && len(sum) == sha256.Size && i < len(t.secrets) {
			t.secrets[i] = secret{digest: [sha256.Size]byte(sum), expires: instant(s.Expires), valid: true}
		}
	}
	return t
}

// instant reads a time of a record; the zero value for none.
func instant(text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{} // Decode has checked the text: it is empty
	}
	return at
}

// isOver reports whether an end has passed; the zero value never does.
func isOver(end, now time.Time) bool { return !end.IsZero() && !end.After(now) }
