package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
)

// This file has the access tokens of people and programs. Bootstrap tokens, with which
// hosts join, are in token.go.

// accessIDPrefix begins the id of an access token; that of a bootstrap token has no '-'.
const accessIDPrefix = "at-"

// accessFlags are the flags of token create for an access token.
type accessFlags struct {
	spec    api.AccessTokenSpec
	ceiling int32
	dir     string // of the key and the certificate, "" for a token with a secret
}

func (f *accessFlags) add(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringVar(&f.spec.User, "user", "", "the person or the program that uses the access token")
	set.StringVar(&f.spec.Role, "role", "", "its role: viewer, editor, tenant-admin, operator or admin; without one the role bindings of the user count")
	set.StringVar(&f.spec.Tenant, "tenant", "", "the tenant in whose namespaces the role counts; without one it counts in the whole cluster")
	set.StringSliceVar(&f.spec.Namespaces, "in", nil, "count in these namespaces of the tenant alone, separated by commas")
	set.Int32Var(&f.ceiling, "ceiling", 0, "the greatest priority of work that the token submits (default: any)")
	set.StringVar(&f.spec.Description, "description", "", "a line for people")
	set.StringVar(&f.dir, "dir", "", "make a client certificate in place of a secret: folder of mode 0700 for its key and for the certificate")
}

// used are the flags that were given and that an access token alone has.
func (f *accessFlags) used(cmd *cobra.Command) string {
	for _, name := range []string{"user", "role", "tenant", "in", "ceiling", "description", "dir"} {
		if cmd.Flags().Changed(name) {
			return name
		}
	}
	return ""
}

// flagOf names the flag of a field of an access token.
var flagOf = strings.NewReplacer("spec.priorityCeiling", "--ceiling", "spec.namespaces", "--in", "spec.", "--")

// createAccess makes an access token.
func (a *app) createAccess(cmd *cobra.Command, f *accessFlags, ttl time.Duration) error {
	spec := f.spec
	if cmd.Flags().Changed("ceiling") {
		spec.PriorityCeiling = &f.ceiling
	}
	if cmd.Flags().Changed("ttl") {
		if ttl < time.Second || ttl > api.MaxTokenTTL {
			return usagef("--ttl: %s is outside %s..%s", ttl, time.Second, api.MaxTokenTTL)
		}
		spec.TTL = ttl.String()
	}
	if f.dir != "" {
		return a.createCertificate(cmd, spec, f.dir)
	}
	if status := spec.Validate(); status != nil {
		return usagef("%s", flagOf.Replace(status.Message))
	}
	if err := a.connect(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
	defer cancel()
	made, err := a.client.Tokens().Create(ctx, spec)
	if err != nil {
		return err
	}
	a.warnOfTenant(ctx, spec.Tenant)
	return a.showSecret(made)
}

// warnOfTenant prints what strangeTenant says.
func (a *app) warnOfTenant(ctx context.Context, tenant string) {
	if w := a.strangeTenant(ctx, tenant); w != "" {
		a.notef("warning: %s\n", w)
	}
}

// strangeTenant says that a tenant in which somebody gets a role is in no object yet; ""
// where it is in one, or where the caller may not know.
func (a *app) strangeTenant(ctx context.Context, tenant string) string {
	if tenant == "" {
		return ""
	}
	if _, err := a.client.Tenants().Get(ctx, tenant); !isNotFound(err) {
		return ""
	}
	if _, err := a.client.Namespaces().Get(ctx, tenant); !isNotFound(err) {
		return ""
	}
	return fmt.Sprintf("there is no Tenant and no Namespace %s yet: the role counts in a namespace of that name alone (muster get tenants)", tenant)
}

// showSecret prints the answer that alone has the token, and for people what it is.
func (a *app) showSecret(made *api.AccessToken) error {
	if !a.isTable() && a.output != "name" {
		return a.encode(made)
	}
	a.printf("%s\n", made.Status.Token)
	a.notef("token %s of %s: %s, good until %s; it is shown once\n", made.Metadata.Name, made.Spec.User, rightsOf(made), cmp.Or(made.Status.Expires, "it is revoked"))
	if end := made.Status.OverlapEnds; end != "" {
		a.notef("the secret before is good until %s\n", end)
	}
	return nil
}

// rightsOf is "editor of vision, in vision-dev".
func rightsOf(t *api.AccessToken) string {
	s := t.Spec
	switch {
	case s.Role == "":
		return "the roles of its user's bindings"
	case s.Tenant == "":
		return s.Role
	case len(s.Namespaces) == 0:
		return s.Role + " of tenant " + s.Tenant
	}
	return s.Role + " of tenant " + s.Tenant + ", in " + strings.Join(s.Namespaces, ", ")
}

// listAccess prints the access tokens, oldest first.
func (a *app) listAccess(ctx context.Context) error {
	got, err := a.client.Tokens().List(ctx)
	if err != nil {
		return err
	}
	slices.SortStableFunc(got.Items, func(a, b api.AccessToken) int {
		return cmp.Compare(a.Metadata.CreationTimestamp, b.Metadata.CreationTimestamp)
	})
	if a.output == "json" || a.output == "yaml" {
		return a.encode(got)
	}
	t := newTable("ID", "USER", "ROLE", "TENANT", "NAMESPACES", "CEILING", "SECRETS", "EXPIRES", "CREATOR")
	for i := range got.Items {
		token := &got.Items[i]
		if a.output == "name" {
			a.printf("token/%s\n", token.Metadata.Name)
			continue
		}
		ceiling, expires := "", cmp.Or(token.Status.Expires, "never")
		if c := token.Spec.PriorityCeiling; c != nil {
			ceiling = strconv.Itoa(int(*c))
		}
		if token.Status.Expired {
			expires += " (over)"
		}
		t.add(token.Metadata.Name, token.Spec.User, token.Spec.Role, token.Spec.Tenant, strings.Join(token.Spec.Namespaces, ","), ceiling,
			secretsOf(token), expires, token.Status.Creator)
	}
	if a.isTable() {
		t.write(a.Stdout, "")
	}
	return nil
}

// secretsOf is the number of secrets of a token; a client certificate has none.
func secretsOf(t *api.AccessToken) string {
	if t.Status.Serial != "" {
		return "certificate"
	}
	return strconv.Itoa(t.Status.Secrets)
}

func (a *app) tokenRotateCommand() *cobra.Command {
	var overlap time.Duration
	cmd := &cobra.Command{
		Use:   "rotate ID",
		Short: "Give an access token a new secret",
		Long: "rotate prints the access token with a new secret, once. The secret before goes on to be good for the time of\n" +
			"--overlap, so that programs change over without an interruption. A second rotation in that time ends the oldest secret.",
		Example: "  muster token rotate at-5d1f09c2ab --overlap 1h",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, ids []string) error {
			if overlap < 0 || overlap > api.MaxOverlap {
				return usagef("--overlap: %s is outside 0s..%s", overlap, api.MaxOverlap)
			}
			if err := a.connect(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
			defer cancel()
			made, err := a.client.Tokens().Rotate(ctx, ids[0], overlap.String())
			if err != nil {
				return err
			}
			return a.showSecret(made)
		},
	}
	cmd.Flags().DurationVar(&overlap, "overlap", api.DefaultOverlap, "how long the secret before is good for")
	return cmd
}

// revokeAccess ends one access token.
func (a *app) revokeAccess(ctx context.Context, id string, require api.Preconditions) error {
	gone, err := a.client.Tokens().RevokeIf(ctx, id, require)
	if err != nil {
		return err
	}
	a.printf("token %q revoked\n", id)
	if late := gone.Status.NotFollowedBy; len(late) > 0 {
		a.notef("not confirmed within 5 s by %s: the token may work there until that coordinator reaches the store\n", strings.Join(late, ", "))
	}
	return nil
}

func roleBindingRow(b *api.RoleBinding, now time.Time) (cells, wide []string) {
	var who []string
	for _, s := range b.Spec.Subjects {
		who = append(who, strings.ToLower(s.Kind)+" "+s.Name)
	}
	cells = []string{b.Metadata.Name, b.Spec.Role, b.Spec.Tenant, strings.Join(b.Spec.Namespaces, ","), strconv.Itoa(len(who)), age(b.Metadata.CreationTimestamp, now)}
	return cells, []string{strings.Join(who, ", ")}
}

func (a *app) describeRoleBinding(b *api.RoleBinding) {
	_, who := roleBindingRow(b, time.Now())
	a.facts(append(metaFacts(&b.Metadata), "Role", b.Spec.Role, "Tenant", cmp.Or(b.Spec.Tenant, "none: the whole cluster"),
		"Namespaces", cmp.Or(strings.Join(b.Spec.Namespaces, ", "), "all of the tenant"), "Subjects", who[0])...)
}
