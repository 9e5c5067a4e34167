package cli

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/pki"
)

func (a *app) tokenCommand() *cobra.Command {
	return parent(&cobra.Command{
		Use:   "token",
		Short: "Make, list, rotate and revoke tokens of people and programs, and tokens with which hosts join",
		Long: "An access token lets a person or a program use the API, with a role. A bootstrap token lets hosts join the\n" +
			"cluster: create --node makes one, and list --bootstrap lists them. Ids of access tokens begin with at-.",
	}, a.tokenCreateCommand(), a.tokenListCommand(), a.tokenRotateCommand(), a.tokenRevokeCommand())
}

// The ranges of a bootstrap token, as package enroll has them. They are judged
// here too, because the document leaves a zero out and would get the default.
const (
	maxTokenUses = 100_000
	minTokenTTL  = time.Second
	maxTokenTTL  = 720 * time.Hour
)

func (a *app) tokenCreateCommand() *cobra.Command {
	var spec api.BootstrapTokenSpec
	var ttl time.Duration
	var labels []string
	var access accessFlags
	cmd := &cobra.Command{
		Use:   "create --user NAME --role ROLE | --node PATTERN",
		Short: "Make an access token, or a bootstrap token",
		Long: "create --user prints an access token: the person or the program NAME uses the API with it. create --node prints a\n" +
			"bootstrap token, with which hosts join whose node id matches PATTERN: put it into the file that the agents'\n" +
			"bootstrapTokenFile names, with mode 0600. Each token is shown once. With --dir the person gets a client certificate\n" +
			"in place of a secret. Its key is made here and stays here, and the user is cert:NAME.",
		Example: "  muster token create --user ada@example.org --role editor --tenant vision --ttl 720h\n" +
			"  muster token create --user ci --role editor --tenant vision --in vision-dev --ceiling 100\n" +
			"  muster token create --user ada@example.org --dir ~/muster-ada --ttl 720h\n" +
			"  muster token create --node 'gpu-*' --ttl 1h --uses 10\n  muster token create --node gpu-17 --replace\n" +
			"  muster token create --node 'gpu-*' --uses 10 --label zone=a --label rack=r1",
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if flag := access.used(cmd); flag != "" {
				for _, other := range []string{"node", "uses", "label", "replace"} {
					if cmd.Flags().Changed(other) {
						return usagef("--%s is of an access token and --%s of a bootstrap token: make one at a time", flag, other)
					}
				}
				return a.createAccess(cmd, &access, ttl)
			}
			if spec.Nodes == "" {
				return usagef("--node: not set; want a node id or a pattern such as 'gpu-*' for a bootstrap token, or --user for an access token")
			}
			if err := pki.CheckPattern(spec.Nodes); err != nil {
				return usagef("--node: %w", err)
			}
			if cmd.Flags().Changed("uses") && (spec.Uses < 1 || spec.Uses > maxTokenUses) {
				return usagef("--uses: %d is outside 1..%d", spec.Uses, maxTokenUses)
			}
			if cmd.Flags().Changed("ttl") {
				if ttl < minTokenTTL || ttl > maxTokenTTL {
					return usagef("--ttl: %s is outside %s..%s", ttl, minTokenTTL, maxTokenTTL)
				}
				spec.TTL = ttl.String()
			}
			for _, pair := range labels {
				key, value, both := strings.Cut(pair, "=")
				if !both {
					return usagef("--label %q: want KEY=VALUE", pair)
				}
				if spec.Labels == nil {
					spec.Labels = map[string]string{}
				}
				spec.Labels[key] = value
			}
			if status := api.CheckNodeLabels("--label", spec.Labels); status != nil {
				return usageError{status}
			}
			if err := a.connect(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
			defer cancel()
			made, err := a.client.Identity().CreateToken(ctx, spec)
			if err != nil {
				return err
			}
			if !a.isTable() && a.output != "name" {
				return a.encode(made)
			}
			a.printf("%s\n", made.Status.Token)
			a.notef("good for %d host(s) named %s until %s\n", made.Status.Uses, made.Spec.Nodes, made.Status.Expires)
			return nil
		},
	}
	f := cmd.Flags()
	access.add(cmd)
	f.StringVar(&spec.Nodes, "node", "", "make a bootstrap token for these node ids: '*' stands for any characters, '?' for one")
	f.DurationVar(&ttl, "ttl", 0, "how long the token is good for (a bootstrap token: default 1h, at most 720h; an access token: default until it is revoked)")
	f.IntVar(&spec.Uses, "uses", 0, "how many hosts a bootstrap token lets in, 1 to 100000 (default 1)")
	f.StringArrayVar(&labels, "label", nil, "label KEY=VALUE of the nodes that a bootstrap token lets in, as muster label sets it; may be repeated")
	f.BoolVar(&spec.Replace, "replace", false, "a bootstrap token lets a host take the place of a node that exists, whose certificate ends")
	return cmd
}

func (a *app) tokenListCommand() *cobra.Command {
	var bootstrap bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List access tokens, or bootstrap tokens, without their secrets",
		Args:  arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.connect(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
			defer cancel()
			if !bootstrap {
				return a.listAccess(ctx)
			}
			got, err := a.client.Identity().ListTokens(ctx)
			if err != nil {
				return err
			}
			if a.output == "json" || a.output == "yaml" {
				return a.encode(got)
			}
			t := newTable("ID", "NODES", "USES LEFT", "EXPIRES", "REPLACES", "CREATOR")
			for _, token := range got.Items {
				if a.output == "name" {
					a.printf("token/%s\n", token.Metadata.Name)
					continue
				}
				expires := token.Status.Expires
				if token.Status.Expired {
					expires += " (over)"
				}
				t.add(token.Metadata.Name, token.Spec.Nodes, strconv.Itoa(token.Status.Uses), expires, strconv.FormatBool(token.Spec.Replace), token.Status.Creator)
			}
			if a.isTable() {
				t.write(a.Stdout, "")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&bootstrap, "bootstrap", false, "list the tokens with which hosts join")
	return cmd
}

func (a *app) tokenRevokeCommand() *cobra.Command {
	var require api.Preconditions
	cmd := &cobra.Command{
		Use:   "revoke ID…",
		Short: "End access tokens or bootstrap tokens",
		Long: "revoke ends tokens. The answer comes once each live coordinator refuses an access token, or after 5 s; open watches of\n" +
			"its bearers end. Nodes that a bootstrap token has let in stay.",
		Args: arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, ids []string) error {
			if flag := flagFor(require); flag != "" && len(ids) > 1 {
				return usagef("%s is for one token, %d are named", flag, len(ids))
			}
			if err := a.connect(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
			defer cancel()
			for _, id := range ids {
				if strings.HasPrefix(id, accessIDPrefix) {
					if err := a.revokeAccess(ctx, id, require); err != nil {
						return err
					}
					continue
				}
				if _, err := a.client.Identity().RevokeTokenIf(ctx, id, require); err != nil {
					return err
				}
				a.printf("token %q revoked\n", id)
			}
			return nil
		},
	}
	requireFlags(cmd, &require, "revoke the token", "the token")
	return cmd
}
