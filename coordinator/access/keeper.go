package access

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// Bounds of the tokens and the bindings that are kept.
const (
	MaxTokens       = 20_000
	MaxTenantTokens = 2_000
	MaxBindings     = 5_000
	// MaxTenantBindings bounds the bindings that give roles in one tenant, so that no
	// tenant-admin takes the room of all.
	MaxTenantBindings = 500
)

// expiredKept is how long a token that has expired is still listed.
const expiredKept = 24 * time.Hour

// attempts bounds how often a change is repeated that lost to another.
const attempts = 5

// Keeper changes tokens and bindings. It implements service.Credentials. Its methods
// may be called by many goroutines, and block no longer than the store and settleFor.
type Keeper struct {
	Store store.KVStore
	Table *Table
	// Settle waits until each live coordinator goes by a revision, and returns the
	// names of the coordinators that did not confirm it in time.
	Settle func(ctx context.Context, at resource.Revision) (missing []string)
	Logger *slog.Logger
	// Issuer certifies client certificates; nil where the cluster runs without TLS.
	Issuer Issuer
	// Reserved begins the names of users and groups of the identity provider, which no
	// token has; "" for none.
	Reserved string
}

var _ service.Credentials = (*Keeper)(nil)

// CreateToken implements service.Credentials.
func (k *Keeper) CreateToken(ctx context.Context, t *api.AccessToken, ttl time.Duration) (*api.AccessToken, error) {
	by, s := service.CallerOf(ctx), t.Spec
	s.User = t.Spec.Owner()
	if status := service.MayGrant(by.Principal, service.GrantOf(s.Role, s.Tenant, s.Namespaces)); status != nil {
		return nil, status
	}
	if own := by.Ceiling; own != nil && (s.PriorityCeiling == nil || *s.PriorityCeiling > *own) {
		return nil, api.Errorf(http.StatusForbidden, "spec.priorityCeiling: nobody gives more than they have: want %d or less, the ceiling of %q", *own, by.Name)
	}
	if status := cmp.Or(k.checkUser(s.User), k.hasRoom(s.Tenant)); status != nil {
		return nil, status
	}
	if !by.Everywhere(service.Admins) {
		if status := k.checkElsewhere(s.User, s.Tenant); status != nil {
			return nil, status
		}
		s.User = nameOf(s.User, s.Tenant)
	}
	now := time.Now()
	rec := record.AccessToken{
		ID: newID(), User: s.User, Role: s.Role, Tenant: s.Tenant, Namespaces: s.Namespaces, Ceiling: s.PriorityCeiling, Description: s.Description,
		Creator: by.Name, Created: stamp(now),
	}
	if ttl > 0 {
		rec.Expires = stamp(now.Add(ttl))
	}
	given, err := k.prove(&rec, s.Request, now, ttl)
	if err != nil {
		return nil, err
	}
	key := record.AccessTokenKey(rec.ID)
	result, err := k.Store.Txn(ctx, record.Txn{If: []record.Compare{record.Absent(key)}, Then: []record.Op{record.Put(key, record.MustEncode(rec))}})
	switch {
	case err != nil:
		return nil, unanswered(err)
	case !result.Succeeded:
		return nil, api.Errorf(http.StatusConflict, "the id %s is taken by chance: ask again", rec.ID)
	}
	k.Logger.Info("access_token_made", "token", rec.ID, "user", rec.User, "role", rec.Role, "tenant", rec.Tenant, "expires", rec.Expires, "by", by.Name, "request_id", by.RequestID)
	made := k.changed(ctx, rec, given.Token, result.Revision)
	made.Status.Chain, made.Status.Authorities = given.Chain, given.Authorities
	return made, nil
}

// checkUser refuses the names of users of another origin. Records, the audit and
// quotas have the name of a user alone, so no token has such a name, whoever asks.
func (k *Keeper) checkUser(user string) *api.Status {
	switch {
	case strings.HasPrefix(user, service.HostPrefix):
		return api.Errorf(http.StatusUnprocessableEntity, "spec.user: %q: names that begin with %s are those of hosts", service.Clip(user), service.HostPrefix)
	case k.Reserved != "" && strings.HasPrefix(user, k.Reserved):
		return api.Errorf(http.StatusUnprocessableEntity, "spec.user: %q: names that begin with %s are those of the identity provider, which alone proves them (muster login): choose another name", service.Clip(user), k.Reserved)
	}
	return nil
}

// checkElsewhere refuses the name of a user with rights outside of a tenant: readers of
// records, the audit and the history would take the bearer for the user.
func (k *Keeper) checkElsewhere(user, tenant string) *api.Status {
	now := k.Table.now.Load()
	elsewhere := now.users[user] != nil && slices.ContainsFunc(now.users[user].grants, func(g service.Grant) bool { return string(g.Tenant) != tenant })
	for _, t := range now.tokens {
		elsewhere = elsewhere || t.record.User == user && t.record.Role != "" && t.record.Tenant != tenant
	}
	if !elsewhere {
		return nil
	}
	return api.Errorf(http.StatusUnprocessableEntity, "spec.user: %q has rights outside of tenant %s: choose another name, or ask an administrator for the token", service.Clip(user), tenant)
}

// nameOf is the name of a user by the word of a tenant: TENANT/USER, which is the name of no
// user of another tenant, and of no administrator.
func nameOf(user, tenant string) string {
	name, certified := strings.CutPrefix(user, api.CertificatePrefix)
	if !strings.HasPrefix(name, tenant+"/") {
		name = tenant + "/" + name
	}
	if certified {
		return api.CertificatePrefix + name
	}
	return name
}

// prove draws the secret of a new token, or makes its client certificate. The status has
// the parts of the answer that no other answer has.
func (k *Keeper) prove(rec *record.AccessToken, request string, now time.Time, ttl time.Duration) (api.AccessTokenStatus, error) {
	if request != "" {
		return k.certify(rec, request, ttl)
	}
	drawn := newSecret(rec.ID)
	rec.Secrets = []record.TokenSecret{secretOf(drawn, now)}
	return api.AccessTokenStatus{Token: drawn.text()}, nil
}

// hasRoom refuses a token beyond the bounds.
func (k *Keeper) hasRoom(tenant string) *api.Status {
	now := k.Table.now.Load()
	if len(now.tokens) >= MaxTokens {
		return api.Errorf(http.StatusTooManyRequests, "%d access tokens are kept, which is the limit: revoke some first", MaxTokens).Because(api.TooManyObjects)
	}
	own := 0
	for _, t := range now.tokens {
		if tenant != "" && t.record.Tenant == tenant {
			own++
		}
	}
	if own >= MaxTenantTokens {
		return api.Errorf(http.StatusTooManyRequests, "tenant %s has %d access tokens, which is the limit of a tenant: revoke some first", tenant, MaxTenantTokens).Because(api.TooManyObjects)
	}
	return nil
}

// GetToken implements service.Credentials.
func (k *Keeper) GetToken(ctx context.Context, id string) (*api.AccessToken, error) {
	rec, kv, err := k.read(ctx, id)
	if err != nil {
		return nil, err
	}
	return shown.AccessToken(&rec, kv.ModRev, time.Now()), nil
}

// ListTokens implements service.Credentials. Tokens that expired a day ago are
// forgotten.
func (k *Keeper) ListTokens(ctx context.Context) (*api.AccessTokenList, error) {
	by, now := service.CallerOf(ctx), time.Now()
	all, revision, err := k.Store.Range(ctx, record.AccessTokensPrefix, store.RangeOptions{})
	if err != nil {
		return nil, unanswered(err)
	}
	list := &api.AccessTokenList{Kind: api.KindAccessToken + "List", Items: []api.AccessToken{}}
	list.Metadata.ResourceVersion = strconv.FormatInt(int64(revision), 10)
	for _, kv := range all {
		rec, err := record.Decode[record.AccessToken](kv.Key, kv.Value)
		switch {
		case err != nil:
			return nil, err
		case isOver(instant(rec.Expires), now.Add(-expiredKept)):
			// The next list tries again where the store does not answer.
			_, _ = k.Store.Txn(ctx, record.Txn{If: []record.Compare{record.ModRevIs(kv.Key, kv.ModRev)}, Then: []record.Op{record.Delete(kv.Key)}})
		case maySee(by.Principal, rec):
			list.Items = append(list.Items, *shown.AccessToken(&rec, kv.ModRev, now))
		}
	}
	return list, nil
}

// RotateToken implements service.Credentials. At most two secrets are valid at once:
// a second rotation within the overlap ends the oldest secret.
func (k *Keeper) RotateToken(ctx context.Context, id string, overlap time.Duration) (*api.AccessToken, error) {
	by := service.CallerOf(ctx)
	for range attempts {
		rec, kv, err := k.read(ctx, id)
		if err != nil {
			return nil, err
		}
		if rec.Certificate != nil {
			return nil, api.Errorf(http.StatusConflict, "the token %s is a client certificate, which has no secret: make another certificate for %s, and revoke this one later", id, rec.User).Because(api.FailedPrecondition)
		}
		now := time.Now()
		if isOver(instant(rec.Expires), now) {
			return nil, api.Errorf(http.StatusConflict, "the token %s expired at %s: make another one", id, rec.Expires).Because(api.FailedPrecondition)
		}
		drawn, before := newSecret(id), rec.Secrets[0]
		rec.Secrets = []record.TokenSecret{secretOf(drawn, now)}
		if overlap > 0 && !isOver(instant(before.Expires), now) {
			before.Expires = stamp(now.Add(overlap))
			rec.Secrets = append(rec.Secrets, before)
		}
		revision, err := k.write(ctx, kv, record.Put(kv.Key, record.MustEncode(rec)))
		switch {
		case err != nil:
			return nil, err
		case revision != 0:
			k.Logger.Info("access_token_rotated", "token", id, "overlap", overlap, "by", by.Name, "request_id", by.RequestID)
			return k.changed(ctx, rec, drawn.text(), revision), nil
		}
	}
	return nil, busy("token " + id)
}

// RevokeToken implements service.Credentials.
func (k *Keeper) RevokeToken(ctx context.Context, id string, require api.Preconditions) (*api.AccessToken, error) {
	by := service.CallerOf(ctx)
	for range attempts {
		rec, kv, err := k.read(ctx, id)
		if err != nil {
			return nil, err
		}
		if status := require.Check("token "+id, shown.AccessToken(&rec, kv.ModRev, time.Now()).Metadata); status != nil {
			return nil, status
		}
		revision, err := k.write(ctx, kv, record.Delete(kv.Key))
		switch {
		case err != nil:
			return nil, err
		case revision != 0:
			k.Logger.Info("access_token_revoked", "token", id, "user", rec.User, "by", by.Name, "request_id", by.RequestID)
			return k.changed(ctx, rec, "", revision), nil
		}
	}
	return nil, busy("token " + id)
}

// read reads a token that the caller may see; 404 for each other one.
func (k *Keeper) read(ctx context.Context, id string) (record.AccessToken, record.KV, error) {
	by, key := service.CallerOf(ctx), record.AccessTokenKey(id)
	kv, found, _, err := k.Store.Get(ctx, key)
	if err != nil {
		return record.AccessToken{}, kv, unanswered(err)
	}
	if found {
		rec, err := record.Decode[record.AccessToken](key, kv.Value)
		if err != nil {
			return rec, kv, err
		}
		if maySee(by.Principal, rec) {
			return rec, kv, nil
		}
		service.Hidden(ctx)
	}
	return record.AccessToken{}, kv, api.Errorf(http.StatusNotFound, "access token %s not found", service.Clip(id))
}

// maySee reports whether a caller sees and changes a token.
func maySee(by service.Principal, rec record.AccessToken) bool {
	return service.MayGrant(by, service.GrantOf(rec.Role, rec.Tenant, rec.Namespaces)) == nil
}

// write does one change of a key that was read; revision 0 means that the key has
// changed since.
func (k *Keeper) write(ctx context.Context, kv record.KV, op record.Op) (resource.Revision, error) {
	result, err := k.Store.Txn(ctx, record.Txn{If: []record.Compare{record.ModRevIs(kv.Key, kv.ModRev)}, Then: []record.Op{op}})
	switch {
	case err != nil:
		return 0, unanswered(err)
	case !result.Succeeded:
		return 0, nil
	}
	return result.Revision, nil
}

// changed is the answer to a change that the store has, once the coordinators have
// followed.
func (k *Keeper) changed(ctx context.Context, rec record.AccessToken, text string, at resource.Revision) *api.AccessToken {
	t := shown.AccessToken(&rec, at, time.Now())
	t.Status.Token = text
	t.Status.NotFollowedBy = k.settle(ctx, at)
	return t
}

// settle waits for the coordinators, and warns of those that did not confirm.
func (k *Keeper) settle(ctx context.Context, at resource.Revision) []string {
	missing := k.Settle(ctx, at)
	for _, name := range missing {
		service.Warn(ctx, "coordinator "+name+" did not confirm the change within "+settleFor.String()+"; it follows when it reaches the store")
		k.Logger.Warn("access_change_not_confirmed", "coordinator", name, "revision", int64(at))
	}
	return missing
}

func secretOf(drawn secretText, now time.Time) record.TokenSecret {
	sum := drawn.digest()
	return record.TokenSecret{SHA256: hex.EncodeToString(sum[:]), Created: stamp(now)}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// busy is the refusal of a change that lost to other changes each time.
func busy(what string) *api.Status {
	status := api.Errorf(http.StatusServiceUnavailable, "%s kept changing: ask again", what)
	status.RetryAfterSeconds = 1
	return status
}

// unanswered words an error of the store for clients.
func unanswered(err error) error {
	if errors.Is(err, record.ErrUnknownOutcome) || errors.Is(err, context.DeadlineExceeded) {
		return api.Errorf(http.StatusServiceUnavailable, "the store does not answer; the change may have been done: list, then ask again: %v", err)
	}
	return err
}
