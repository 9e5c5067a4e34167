package access_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/access"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/resource"
)

// office is a store, a coordinator that follows it at once, and the changes of its
// tokens and bindings.
type office struct {
	t     testing.TB
	store store.Store
	table *access.Table
	*access.Keeper
	door access.Authenticator
}

func newOffice(t testing.TB) *office {
	o := &office{t: t, store: mem.Open(mem.Options{}), table: access.NewTable(nil)}
	t.Cleanup(func() { _ = o.store.Close() })
	o.Keeper = &access.Keeper{Store: o.store, Table: o.table, Logger: slog.New(slog.DiscardHandler), Settle: func(context.Context, resource.Revision) []string {
		o.follow()
		return nil
	}}
	o.door = access.Authenticator{Table: o.table, Other: service.StaticToken("file")}
	return o
}

// follow brings the table to the store.
func (o *office) follow() {
	kvs, _, err := o.store.Range(o.t.Context(), record.Root, store.RangeOptions{})
	if err != nil {
		o.t.Fatal(err)
	}
	o.table.Reset()
	for _, kv := range kvs {
		o.table.Note(kv.Key, &kv)
	}
	o.table.Publish()
}

// as is the context of a request of a caller.
func (o *office) as(p service.Principal) context.Context {
	return service.WithCaller(o.t.Context(), service.Caller{Principal: p, RequestID: "r-1"})
}

var (
	admin = service.Principal{Name: "root", Admin: true}
	chief = service.Principal{Name: "carla", Grants: []service.Grant{{Role: service.TenantAdmin, Tenant: "vision"}}}
)

func spec(user, role, tenant string, namespaces ...string) *api.AccessToken {
	return &api.AccessToken{Spec: api.AccessTokenSpec{User: user, Role: role, Tenant: tenant, Namespaces: namespaces}}
}

// made makes a token as the administrator.
func (o *office) made(t *api.AccessToken, ttl time.Duration) *api.AccessToken {
	o.t.Helper()
	got, err := o.CreateToken(o.as(admin), t, ttl)
	if err != nil {
		o.t.Fatal(err)
	}
	return got
}

// enters reports who the bearer of a token is, or the refusal.
func (o *office) enters(token string) (service.Principal, error) {
	return o.door.Authenticate(o.t.Context(), token)
}

func code(err error) int {
	var status *api.Status
	if errors.As(err, &status) {
		return status.Code
	}
	return 0
}

func TestATokenLetsItsBearerInWithItsRole(t *testing.T) {
	o := newOffice(t)
	made := o.made(spec("ada", "editor", "vision", "vision-dev"), 0)
	p, err := o.enters(made.Status.Token)
	if err != nil || p.Name != "ada" || p.Tenant != "vision" || p.Token != made.Metadata.Name || p.Roles() != "editor of tenant vision, in vision-dev" {
		t.Errorf("the bearer is %+v, %v", p, err)
	}
	if admin, err := o.enters("file"); err != nil || !admin.Admin {
		t.Errorf("the token file lets in %+v, %v", admin, err)
	}
	kvs, _, err := o.store.Range(t.Context(), record.Root, store.RangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, secret, _ := strings.Cut(strings.TrimPrefix(made.Status.Token, "muster."), ".")
	for _, kv := range kvs {
		if strings.Contains(string(kv.Value), secret) {
			t.Errorf("the store has the secret in %s", kv.Key)
		}
	}
	got, err := o.GetToken(o.as(admin), made.Metadata.Name)
	if err != nil || got.Status.Token != "" || got.Status.Secrets != 1 || got.Status.Creator != "root" {
		t.Errorf("shown as %+v, %v", got, err)
	}
}

// A token that is unknown, a wrong secret, and a text that is no token at all have one
// answer, which says nothing of the reason.
func TestRefusedTokensAreAllAlike(t *testing.T) {
	o := newOffice(t)
	made := o.made(spec("ada", "viewer", ""), 0)
	good := made.Status.Token
	revoked := o.made(spec("bob", "viewer", ""), 0)
	if _, err := o.RevokeToken(o.as(admin), revoked.Metadata.Name, api.Preconditions{}); err != nil {
		t.Fatal(err)
	}
	want := ""
	for name, text := range map[string]string{
		"a wrong secret":      good[:len(good)-1] + flip(good[len(good)-1]),
		"an unknown id":       strings.Replace(good, made.Metadata.Name, "at-0000000000", 1),
		"a revoked token":     revoked.Status.Token,
		"a secret cut short":  good[:len(good)-2],
		"a secret too long":   good + "00",
		"upper case":          strings.ToUpper(good),
		"no token":            "x",
		"the prefix alone":    "muster.",
		"another's secret":    "muster." + made.Metadata.Name + "." + revoked.Status.Token[len(revoked.Status.Token)-40:],
		"the id of an object": "muster.at-../x",
	} {
		_, err := o.enters(text)
		if err == nil {
			t.Errorf("%s was let in", name)
			continue
		}
		if want == "" {
			want = err.Error()
		}
		if err.Error() != want || code(err) != 0 {
			t.Errorf("%s: %q, another one %q", name, err, want)
		}
	}
}

func flip(c byte) string {
	if c == '0' {
		return "1"
	}
	return "0"
}

func TestTokensExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		made := o.made(spec("ada", "viewer", ""), time.Hour)
		if p, err := o.enters(made.Status.Token); err != nil || p.Expires.Format(time.RFC3339) != made.Status.Expires {
			t.Errorf("before: %+v, %v", p, err)
		}
		time.Sleep(time.Hour)
		if _, err := o.enters(made.Status.Token); code(err) != 401 || !strings.Contains(err.Error(), "expired at "+made.Status.Expires) {
			t.Errorf("after: %v", err)
		}
		if _, err := o.RotateToken(o.as(admin), made.Metadata.Name, 0); code(err) != 409 {
			t.Errorf("rotated after its end: %v", err)
		}
		list, err := o.ListTokens(o.as(admin))
		if err != nil || len(list.Items) != 1 || !list.Items[0].Status.Expired {
			t.Errorf("listed as %+v, %v", list, err)
		}
		time.Sleep(25 * time.Hour)
		if list, err := o.ListTokens(o.as(admin)); err != nil || len(list.Items) != 0 {
			t.Errorf("a day later: %+v, %v", list, err)
		}
	})
}

func TestARotationKeepsTheSecretBeforeForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		first := o.made(spec("ci", "editor", "vision"), 0)
		id := first.Metadata.Name
		rotate := func(overlap time.Duration) string {
			got, err := o.RotateToken(o.as(admin), id, overlap)
			if err != nil {
				t.Fatal(err)
			}
			return got.Status.Token
		}
		valid := func(step string, want bool, tokens ...string) {
			for i, text := range tokens {
				if _, err := o.enters(text); (err == nil) != want {
					t.Errorf("%s: secret %d: %v, want it valid: %v", step, i, err, want)
				}
			}
		}
		time.Sleep(time.Second)
		second := rotate(time.Hour)
		valid("within the overlap", true, first.Status.Token, second)
		for text, want := range map[string]time.Time{first.Status.Token: time.Now().Add(time.Hour), second: {}} { // a watch ends then
			if p, err := o.enters(text); err != nil || !p.Expires.Equal(want) {
				t.Errorf("within the overlap: the bearer comes in until %s, %v, want %s", p.Expires, err, want)
			}
		}
		got, err := o.GetToken(o.as(admin), id)
		if err != nil || got.Status.Secrets != 2 || got.Status.OverlapEnds == "" || got.Status.Rotated == "" {
			t.Errorf("shown as %+v, %v", got, err)
		}
		third := rotate(time.Hour)
		valid("after a second rotation", true, second, third)
		valid("after a second rotation", false, first.Status.Token)
		time.Sleep(time.Hour)
		valid("after the overlap", true, third)
		valid("after the overlap", false, second)
		if _, err := o.enters(second); code(err) != 401 || !strings.Contains(err.Error(), "was rotated") {
			t.Errorf("an old secret is refused by %v", err)
		}
		last := rotate(0)
		valid("without an overlap", false, third)
		valid("without an overlap", true, last)
	})
}

// Whoever waits for a change of the rules is woken by each: open watches end by it.
func TestEachChangeWakes(t *testing.T) {
	o := newOffice(t)
	made := o.made(spec("ada", "viewer", ""), 0)
	changed := o.door.Changed()
	if _, err := o.RevokeToken(o.as(admin), made.Metadata.Name, api.Preconditions{}); err != nil {
		t.Fatal(err)
	}
	o.woken(changed)
	if _, err := o.enters(made.Status.Token); err == nil {
		t.Error("the bearer of the revoked token comes in")
	}
}

// woken fails the test where a change of the rules has woken nobody.
func (o *office) woken(changed <-chan struct{}) {
	o.t.Helper()
	select {
	case <-changed:
	default:
		o.t.Error("the change woke nobody")
	}
}

func TestATenantAdminKeepsWithinTheTenant(t *testing.T) {
	o := newOffice(t)
	foreign := o.made(spec("eve", "editor", "speech"), 0).Metadata.Name
	own := o.made(spec("ada", "editor", "vision"), 0).Metadata.Name
	ctx := o.as(chief)
	_, another := o.CreateToken(ctx, spec("x", "viewer", "speech"), 0)
	_, everywhere := o.CreateToken(ctx, spec("x", "viewer", ""), 0)
	_, above := o.CreateToken(ctx, spec("x", "operator", ""), 0)
	_, byUser := o.CreateToken(ctx, spec("root", "", ""), 0)
	_, mine := o.CreateToken(ctx, spec("x", "tenant-admin", "vision"), 0)
	_, read := o.GetToken(ctx, foreign)
	_, missing := o.GetToken(ctx, "at-0000000000")
	_, rotated := o.RotateToken(ctx, foreign, 0)
	_, revoked := o.RevokeToken(ctx, foreign, api.Preconditions{})
	_, readOwn := o.GetToken(ctx, own)
	for name, c := range map[string]struct {
		err  error
		code int
	}{
		"a token of another tenant":           {another, 403},
		"a token of the whole cluster":        {everywhere, 403},
		"a role above the own":                {above, 403},
		"a token with the rights of its user": {byUser, 403},
		"a token of the own tenant":           {mine, 0},
		"another tenant's token, read":        {read, 404},
		"a token that does not exist":         {missing, 404},
		"another tenant's token, rotated":     {rotated, 404},
		"another tenant's token, revoked":     {revoked, 404},
		"a token of the own tenant, read":     {readOwn, 0},
	} {
		if code(c.err) != c.code {
			t.Errorf("%s: %v, want %d", name, c.err, c.code)
		}
	}
	if want := strings.Replace(missing.Error(), "at-0000000000", foreign, 1); read.Error() != want {
		t.Errorf("another tenant's token is refused by %q, one that does not exist by %q", read, want)
	}
	list, err := o.ListTokens(ctx)
	if err != nil || len(list.Items) != 2 || slices.ContainsFunc(list.Items, func(a api.AccessToken) bool { return a.Spec.Tenant != "vision" }) {
		t.Errorf("the list has %+v, %v", list, err)
	}
}

// The user of a token is no host: records tell people and hosts apart by their names.
func TestNoTokenIsOfAHost(t *testing.T) {
	o := newOffice(t)
	if _, err := o.CreateToken(o.as(admin), spec("node:gpu-1", "viewer", ""), 0); code(err) != 422 || !strings.Contains(err.Error(), `"node:gpu-1"`) {
		t.Errorf("a token of the user node:gpu-1: %v", err)
	}
}

func TestNobodyRaisesTheirCeiling(t *testing.T) {
	o := newOffice(t)
	ceiling, higher := int32(100), int32(101)
	low := chief
	low.Ceiling = &ceiling
	for name, c := range map[string]struct {
		ceiling *int32
		code    int
	}{"none": {nil, 403}, "a higher one": {&higher, 403}, "the own": {&ceiling, 0}} {
		wish := spec("x", "editor", "vision")
		wish.Spec.PriorityCeiling = c.ceiling
		if _, err := o.CreateToken(o.as(low), wish, 0); code(err) != c.code {
			t.Errorf("%s: %v, want %d", name, err, c.code)
		}
	}
}

// A table that was told of changes one by one has the rules of a table that has read
// the store anew, and a key that cannot be read gives no right.
func TestTheTableIsThatOfTheStore(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		kvs := map[string]record.KV{}
		told := access.NewTable(nil)
		door := access.Authenticator{Table: told, Other: service.StaticToken("")}
		for range rapid.IntRange(1, 20).Draw(rt, "changes") {
			name := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "name")
			key := record.RoleBindingKey(name)
			switch rapid.IntRange(0, 2).Draw(rt, "change") {
			case 0:
				delete(kvs, key)
				told.Note(key, nil)
			case 1:
				kv := record.KV{Key: key, Value: []byte("{"), ModRev: 1}
				kvs[key] = kv
				told.Note(key, &kv)
			default:
				role := rapid.SampledFrom([]string{"viewer", "editor"}).Draw(rt, "role")
				doc := fmt.Sprintf(`{"kind":"RoleBinding","metadata":{"name":%q},"spec":{"role":%q,"subjects":[{"kind":"User","name":"ada"}]}}`, name, role)
				kv := record.KV{Key: key, ModRev: 1, Value: record.MustEncode(record.Object{UID: "u", Name: name, Document: []byte(doc)})}
				kvs[key] = kv
				told.Note(key, &kv)
			}
			told.Publish()
		}
		anew := access.NewTable(nil)
		for key, kv := range kvs {
			anew.Note(key, &kv)
		}
		anew.Publish()
		sorted := func(t *access.Table) []string {
			var all []string
			for _, g := range t.GrantsOf("ada") {
				all = append(all, g.String())
			}
			slices.Sort(all)
			return all
		}
		if got, want := sorted(told), sorted(anew); !slices.Equal(got, want) {
			rt.Errorf("told: %v, read anew: %v", got, want)
		}
		if _, err := door.Authenticate(context.Background(), ""); err == nil {
			rt.Error("no token was let in")
		}
	})
}

// A coordinator follows a revocation as the deletion of one key.
func TestADeletedKeyGivesNoRight(t *testing.T) {
	o := newOffice(t)
	made, other := o.made(spec("ada", "viewer", ""), 0), o.made(spec("bob", "viewer", ""), 0)
	o.table.Note(record.AccessTokenKey(made.Metadata.Name), nil)
	if _, err := o.enters(made.Status.Token); err != nil {
		t.Errorf("before the rules are published: %v", err)
	}
	o.table.Publish()
	if _, err := o.enters(made.Status.Token); err == nil {
		t.Error("the bearer of the revoked token comes in")
	}
	if _, err := o.enters(other.Status.Token); err != nil {
		t.Errorf("the bearer of another token: %v", err)
	}
}

func FuzzAuthenticate(f *testing.F) {
	o := newOffice(f)
	made := o.made(spec("ada", "viewer", ""), 0)
	f.Add("muster.at-0123456789.0123456789012345678901234567890123456789")
	f.Add("muster..")
	f.Add("file")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := o.door.Authenticate(context.Background(), text)
		if err == nil && text != "file" && text != made.Status.Token {
			t.Errorf("%q was let in as %+v", text, p)
		}
	})
}
