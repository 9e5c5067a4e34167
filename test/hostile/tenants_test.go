package hostile

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/cluster"
	"github.com/musterd/muster/test/hostile/evil"
	"github.com/musterd/muster/test/programs"
)

// tenants are the tokens of a cluster's tenants: the honest client is an editor of the
// tenant default, and the attacker an editor of the tenant hostile.
type tenants struct {
	honest, attacker string
	bad              map[string]string // evil.Spec.Tokens
	victim           evil.Victim
}

// ceiling is the priority ceiling of the attacker's token.
const ceiling = int32(1000)

// admitTenants makes the tokens of a cluster, and the object of the honest tenant that
// the attacker tries to reach.
func admitTenants(c *cluster.Cluster) (*tenants, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	admin, err := sdk.NewClient(sdk.Config{Endpoint: "https://" + c.Coordinators[0].Address(cluster.RESTPort), Token: c.AdminToken(), CAFile: c.CAFile()})
	if err != nil {
		return nil, err
	}
	made := func(s api.AccessTokenSpec) (id, token string) {
		if err != nil {
			return "", ""
		}
		var t *api.AccessToken
		if t, err = admin.Tokens().Create(ctx, s); err != nil {
			return "", ""
		}
		return t.Metadata.Name, t.Status.Token
	}
	t := &tenants{bad: map[string]string{}}
	most := ceiling
	_, t.honest = made(api.AccessTokenSpec{User: "honest", Role: api.RoleEditor, Tenant: "default"})
	id, attacker := made(api.AccessTokenSpec{User: "mallory", Role: api.RoleEditor, Tenant: evil.TenantNamespace, PriorityCeiling: &most})
	t.attacker = attacker
	_, t.bad["viewer"] = made(api.AccessTokenSpec{User: "a-viewer", Role: api.RoleViewer, Tenant: evil.TenantNamespace})
	_, t.bad["editor of another tenant"] = made(api.AccessTokenSpec{User: "stranger", Role: api.RoleEditor, Tenant: "strangers"})
	_, t.bad["expired"] = made(api.AccessTokenSpec{User: "late", Role: api.RoleEditor, Tenant: evil.TenantNamespace, TTL: "1s"})
	revoked, token := made(api.AccessTokenSpec{User: "gone", Role: api.RoleEditor, Tenant: evil.TenantNamespace})
	if err != nil {
		return nil, fmt.Errorf("the tokens of the tenants: %w", err)
	}
	if _, err := admin.Tokens().Revoke(ctx, revoked); err != nil {
		return nil, err
	}
	t.bad["revoked"] = token
	t.bad["forged"] = "muster." + id + "." + strings.Repeat("0", 40)
	t.bad["of a token that was never made"] = "muster.at-0000000000." + strings.Repeat("0", 40)
	boot, err := admin.Identity().CreateToken(ctx, api.BootstrapTokenSpec{Nodes: "later"})
	if err != nil {
		return nil, err
	}
	t.bad["of a host"] = boot.Status.Token
	const name, key = "payroll-2026", "payroll-key"
	asleep := small(name)
	asleep.Metadata.Labels = map[string]string{"team": "payroll"}
	yes := true
	asleep.Spec.Suspend = &yes
	object, err := c.ClientOf(t.honest).CreateAllocation(ctx, "default", asleep, sdk.CreateOptions{IdempotencyKey: key})
	if err != nil {
		return nil, err
	}
	t.victim = evil.Victim{Namespace: "default", Name: name, UID: object.Metadata.UID, Key: key}
	// The token with an end is over when the attacks begin.
	late := c.ClientOf(t.bad["expired"])
	return t, programs.Poll(patience, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if _, err := late.GetAllocation(ctx, "default", name, sdk.GetOptions{}); !isStatus(err, http.StatusUnauthorized) {
			return fmt.Errorf("the token with an end of 1 s is still answered with %v", err)
		}
		return nil
	})
}

// victimIsUntouched checks that the object of the honest tenant is as it was.
func victimIsUntouched(s *scene) error {
	ctx, cancel := context.WithTimeout(s.ctx, 20*time.Second)
	defer cancel()
	v := s.tenants.victim
	got, err := s.c.ClientOf(s.tenants.honest).GetAllocation(ctx, v.Namespace, v.Name, sdk.GetOptions{})
	if err != nil {
		return err
	}
	if got.Metadata.UID != v.UID || len(got.Metadata.Labels) != 1 || got.Metadata.DeletionTimestamp != "" {
		return fmt.Errorf("%s is %+v", v.Name, got.Metadata)
	}
	return nil
}

// nothingWasMade checks that the refused documents of an attack made no object.
func nothingWasMade(s *scene) error {
	ctx, cancel := context.WithTimeout(s.ctx, 20*time.Second)
	defer cancel()
	for _, name := range []string{"a", "b", "p", "q"} {
		if got, err := s.c.Client.GetAllocation(ctx, evil.TenantNamespace, name, sdk.GetOptions{}); err == nil {
			return fmt.Errorf("there is an allocation %s: %+v", name, got.Spec)
		} else if !cluster.NotFound(err) {
			return err
		}
	}
	return nil
}

// attackerIsWhole checks that the attacker's tenant is served once the attack is over:
// all that its requests held was given back.
func attackerIsWhole(s *scene) error {
	c := s.c.ClientOf(s.tenants.attacker)
	return s.poll(30*time.Second, func() error {
		ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
		defer cancel()
		name := s.node + "-after"
		if _, err := c.CreateAllocation(ctx, evil.TenantNamespace, small(name), sdk.CreateOptions{Wait: time.Second}); err != nil {
			return err
		}
		_, err := c.DeleteAllocation(ctx, evil.TenantNamespace, name, 0)
		return err
	})
}

// isStatus reports whether an error is a refusal with a code.
func isStatus(err error, code int) bool {
	var refused *api.Status
	return errors.As(err, &refused) && refused.Code == code
}
