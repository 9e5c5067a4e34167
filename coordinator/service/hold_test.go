package service_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// door is an Authenticator whose rules the test changes: it lets in p, or refuses.
type door struct {
	mu      sync.Mutex
	p       service.Principal
	refused *api.Status
	changed chan struct{}
}

func (d *door) Authenticate(context.Context, string) (service.Principal, error) {
	p, status := d.judge(nil)
	if status != nil {
		return p, status
	}
	return p, nil
}

func (d *door) judge(context.Context) (service.Principal, *api.Status) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.p.Expires.IsZero() && !d.p.Expires.After(time.Now()) {
		return service.Principal{}, api.Errorf(http.StatusUnauthorized, "the token has expired")
	}
	return d.p, d.refused
}

func (d *door) Changed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

// change puts other rules in force.
func (d *door) change(refused *api.Status) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refused = refused
	close(d.changed)
	d.changed = make(chan struct{})
}

// An open request ends when its token is revoked and when its token expires, at once and
// with the refusal; other changes of the rules, and the end of the client, leave no
// refusal.
func TestAnOpenRequestEndsWithItsToken(t *testing.T) {
	revoked := api.Errorf(http.StatusUnauthorized, "the token is not valid here")
	for name, c := range map[string]struct {
		expires time.Duration // 0 = never
		during  func(d *door, stop func())
		within  time.Duration // of the end; 0 = the request goes on
		want    string        // the refusal; "" = none
	}{
		"nothing happens":                        {during: func(*door, func()) {}},
		"the rules of others change":             {during: func(d *door, _ func()) { d.change(nil) }},
		"the token is revoked":                   {during: func(d *door, _ func()) { d.change(revoked) }, within: time.Nanosecond, want: "the token is not valid here"},
		"the token is revoked after other rules": {during: func(d *door, _ func()) { d.change(nil); synctest.Wait(); d.change(revoked) }, within: time.Nanosecond, want: "the token is not valid here"},
		"the token expires":                      {expires: time.Hour, during: func(*door, func()) {}, within: time.Hour, want: "the token has expired"},
		"the client goes away":                   {during: func(_ *door, stop func()) { stop() }, within: time.Nanosecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &door{p: service.Principal{Name: "ada"}, changed: make(chan struct{})}
				if c.expires > 0 {
					d.p.Expires = time.Now().Add(c.expires)
				}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				began := time.Now()
				held, end := service.Hold(ctx, d, d.judge)
				defer end()
				synctest.Wait()
				c.during(d, stop)
				synctest.Wait()
				if c.within > 0 {
					select {
					case <-held.Done():
					case <-time.After(2 * time.Hour): // of the test's own time
						t.Fatal("the request goes on")
					}
					if took := time.Since(began); took > c.within {
						t.Errorf("the request ended after %s, want %s", took, c.within)
					}
				} else if held.Err() != nil {
					t.Fatalf("the request ended: %v", context.Cause(held))
				}
				switch got := service.Refused(held); {
				case c.want == "" && got != nil:
					t.Errorf("the refusal is %v, want none", got)
				case c.want != "" && (got == nil || got.Message != c.want || got.Code != http.StatusUnauthorized):
					t.Errorf("the refusal is %v, want %q", got, c.want)
				}
			})
		})
	}
}

// A request whose Authenticator never changes its rules is not watched over.
func TestARequestUnderFixedRulesGoesOn(t *testing.T) {
	held, end := service.Hold(t.Context(), service.StaticToken("secret"), func(context.Context) (service.Principal, *api.Status) {
		t.Error("the caller was judged again")
		return service.Principal{}, nil
	})
	end()
	if held.Err() != nil {
		t.Error(held.Err())
	}
}

// A watch ends when the roles of its caller have changed: it shows its objects by the
// roles at its beginning.
func TestAWatchEndsWhenItsCallersRolesChange(t *testing.T) {
	viewer := service.Principal{Name: "ada", Grants: []service.Grant{{Role: service.Viewer, Tenant: "ml"}}}
	more := service.Principal{Name: "ada", Grants: []service.Grant{{Role: service.Viewer, Tenant: "ml"}, {Role: service.Editor, Tenant: "ml"}}}
	if status := service.SameRoles(viewer, viewer); status != nil {
		t.Error(status)
	}
	for _, status := range []*api.Status{service.SameRoles(viewer, more), service.SameRoles(more, viewer)} {
		if status == nil || status.Code != http.StatusForbidden {
			t.Errorf("other roles: %v, want a 403", status)
		}
	}
}
