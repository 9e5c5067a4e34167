package cli

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
)

func (a *app) whoAmICommand() *cobra.Command {
	return &cobra.Command{
		Use:     "whoami",
		Short:   "Show the caller: user, tenant, groups, roles, and the proof of the name",
		Long:    "whoami shows the caller as the cluster knows the caller. Each token may ask, one without a role too.",
		Example: "  muster whoami\n  muster whoami -o json",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.connect(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
			defer cancel()
			me, err := a.client.WhoAmI(ctx)
			switch {
			case err != nil:
				return err
			case a.output == "name":
				a.printf("%s\n", me.User)
				return nil
			case !a.isTable():
				return a.encode(me)
			}
			a.showCaller(me)
			return nil
		},
	}
}

// proofs are the proofs of callers for people.
var proofs = map[string]string{
	api.ProofAdminToken: "the token file of the administrator", api.ProofAccessToken: "access token", api.ProofOIDC: "identity provider (muster login)",
	api.ProofCertificate: "client certificate",
}

func (a *app) showCaller(me *api.WhoAmI) {
	proof, ceiling := cmp.Or(proofs[me.Proof], me.Proof), ""
	if me.Token != "" {
		proof += " " + me.Token
	}
	if me.PriorityCeiling != nil {
		ceiling = strconv.Itoa(int(*me.PriorityCeiling))
	}
	roles := make([]string, len(me.Roles))
	for i, r := range me.Roles {
		roles[i] = givenRole(r)
	}
	a.facts(
		"User", me.User, "Proof", proof, "Tenant", me.Tenant, "Groups", strings.Join(me.Groups, ", "),
		"Roles", cmp.Or(strings.Join(roles, "; "), "none"), "Priority ceiling", ceiling, "Expires", cmp.Or(me.Expires, "never"),
	)
}

// givenRole is "editor of tenant vision, in vision-dev".
func givenRole(r api.GivenRole) string {
	switch {
	case r.Tenant == "":
		return r.Role
	case len(r.Namespaces) == 0:
		return r.Role + " of tenant " + r.Tenant
	}
	return r.Role + " of tenant " + r.Tenant + ", in " + strings.Join(r.Namespaces, ", ")
}
