package identity_test

import (
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/cmd/muster/cli"
	"github.com/musterd/muster/resource"
)

// A bootstrap token, a ban, an authority and an operator's certificates end only where
// they have the required uid and resourceVersion. A change in between, and a later object
// of the same name, are 409 with both values, and nothing changes.
func TestPreconditionsOfIdentities(t *testing.T) {
	o := newOffice(t)
	ctx, c := t.Context(), o.client.Identity()
	if _, err := o.enroll.IssueNodes(ctx, []resource.NodeID{"n3"}); err != nil {
		t.Fatal(err)
	}
	certify := func() {
		t.Helper()
		if out, errs, code := o.muster("ca", "operator", "ann", "--dir", filepath.Join(t.TempDir(), "ann")); code != cli.ExitDone {
			t.Fatalf("code %d: %s%s", code, out, errs)
		}
	}
	token := func() (name string, m api.ObjectMeta) {
		made, err := c.CreateToken(ctx, api.BootstrapTokenSpec{Nodes: "gpu-*", Uses: 3})
		if err != nil {
			t.Fatal(err)
		}
		return made.Metadata.Name, made.Metadata
	}
	for name, k := range map[string]struct {
		make   func() (name string, m api.ObjectMeta) // an object that is there
		remove func(name string, require api.Preconditions) error
		there  func(name string) bool
		verb   []string
	}{
		"a bootstrap token": {token, func(name string, require api.Preconditions) error {
			_, err := c.RevokeTokenIf(ctx, name, require)
			return err
		}, func(name string) bool {
			list, err := c.ListTokens(ctx)
			return err != nil || slices.ContainsFunc(list.Items, func(t api.BootstrapToken) bool { return t.Metadata.Name == name })
		}, []string{"token", "revoke"}},
		"a ban": {func() (string, api.ObjectMeta) {
			first, err := c.BanNode(ctx, "n3", "once")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.UnbanNode(ctx, "n3"); err != nil {
				t.Fatal(err)
			}
			second, err := c.BanNode(ctx, "n3", "twice")
			if err != nil || second.Metadata.UID == first.Metadata.UID || second.Metadata.ResourceVersion == first.Metadata.ResourceVersion {
				t.Fatalf("%+v, then %+v, %v: want another uid and resourceVersion", first, second, err)
			}
			if again, err := c.BanNode(ctx, "n3", "a ban that stands"); err != nil || again.Metadata.UID != second.Metadata.UID {
				t.Fatalf("%+v and %v, want %+v: a ban that stands is answered as it is", again, err, second)
			}
			return "n3", second.Metadata
		}, func(name string, require api.Preconditions) error {
			_, err := c.UnbanNodeIf(ctx, name, require)
			return err
		}, func(name string) bool {
			list, err := c.Bans(ctx)
			return err != nil || slices.ContainsFunc(list.Items, func(b api.NodeBan) bool { return b.Metadata.Name == name })
		}, []string{"node", "unban"}},
		"an authority": {func() (string, api.ObjectMeta) {
			before, err := c.Authorities(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.RotateAuthority(ctx); err != nil {
				t.Fatal(err)
			}
			after, err := c.Authorities(ctx)
			old := before.Items[0].Metadata
			if err != nil || len(after.Items) != 2 || after.Items[0].Metadata.UID != old.UID || after.Items[0].Metadata.ResourceVersion == old.ResourceVersion {
				t.Fatalf("%+v, then %+v, %v: want the same uid and another resourceVersion", old, after, err)
			}
			return old.Name, after.Items[0].Metadata
		}, func(name string, require api.Preconditions) error {
			_, err := c.RetireAuthorityIf(ctx, name, true, require)
			return err
		}, func(name string) bool {
			list, err := c.Authorities(ctx)
			return err != nil || slices.ContainsFunc(list.Items, func(a api.Authority) bool { return a.Metadata.Name == name })
		}, []string{"ca", "retire", "--force"}},
		"an operator's certificates": {func() (string, api.ObjectMeta) {
			certify()
			certify()
			list, err := c.Operators(ctx)
			if err != nil || len(list.Items) != 2 {
				t.Fatalf("%+v, %v", list, err)
			}
			newest := list.Items[0].Metadata
			if other := list.Items[1].Metadata; len(other.ResourceVersion) > len(newest.ResourceVersion) || other.ResourceVersion > newest.ResourceVersion {
				newest = other
			}
			return "ann", newest
		}, func(name string, require api.Preconditions) error {
			_, err := c.RevokeOperatorIf(ctx, name, require)
			return err
		}, func(name string) bool {
			list, err := c.Operators(ctx)
			return err != nil || slices.ContainsFunc(list.Items, func(a api.OperatorCertificate) bool { return a.Status.Revoked == "" })
		}, []string{"ca", "revoke-operator"}},
	} {
		t.Run(name, func(t *testing.T) {
			object, m := k.make()
			if m.UID == "" || m.ResourceVersion == "" {
				t.Fatalf("metadata %+v, want a uid and a resourceVersion", m)
			}
			for wrong, require := range map[string]api.Preconditions{
				"uid": {UID: "zzz", ResourceVersion: m.ResourceVersion}, "resourceVersion": {UID: m.UID, ResourceVersion: "1"},
			} {
				err := k.remove(object, require)
				var status *api.Status
				if !errors.As(err, &status) || status.Code != http.StatusConflict || !strings.Contains(status.Message, wrong) {
					t.Errorf("another %s: %v, want 409", wrong, err)
				}
			}
			for _, flag := range []string{"--uid", "--resource-version"} {
				out, errs, code := o.muster(append(k.verb, object, flag, "zzz")...)
				if code != cli.ExitFailed || !strings.Contains(errs, "zzz") {
					t.Errorf("%s: code %d, want %d and the value:\n%s%s", flag, code, cli.ExitFailed, out, errs)
				}
			}
			if !k.there(object) {
				t.Fatal("the object is gone, although nothing had the required values")
			}
			if out, errs, code := o.muster(append(k.verb, object, "--uid", m.UID, "--resource-version", m.ResourceVersion)...); code != cli.ExitDone {
				t.Fatalf("code %d with the values of the object:\n%s%s", code, out, errs)
			}
			if k.there(object) {
				t.Error("the object is there")
			}
		})
	}
}

// Preconditions are of one object: a command that names several is misused.
func TestPreconditionsAreOfOneToken(t *testing.T) {
	o := newOffice(t)
	if _, errs, code := o.muster("token", "revoke", "a", "b", "--uid", "x"); code != cli.ExitMisused || !strings.Contains(errs, "--uid is for one token, 2 are named") {
		t.Errorf("code %d: %s", code, errs)
	}
}
