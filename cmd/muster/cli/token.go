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
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke bootstrap tokens, with which hosts join the cluster",
		Args:  arguments(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.tokenCreateCommand(), a.tokenListCommand(), a.tokenRevokeCommand())
	return cmd
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
	cmd := &cobra.Command{
		Use:   "create --node PATTERN",
		Short: "Make a bootstrap token",
		Long: "create prints a token that hosts whose node id matches PATTERN join with. It is shown once:\n" +
			"put it into the file that the agents' bootstrapTokenFile names, with mode 0600.",
		Example: "  muster token create --node 'gpu-*' --ttl 1h --uses 10\n  muster token create --node gpu-17 --replace\n" +
			"  muster token create --node 'gpu-*' --uses 10 --label zone=a --label rack=r1",
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if spec.Nodes == "" {
				return usagef("--node: not set; want a node id, or a pattern such as 'gpu-*'")
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
	f.StringVar(&spec.Nodes, "node", "", "node ids that it lets in: '*' stands for any characters, '?' for one")
	f.DurationVar(&ttl, "ttl", 0, "how long it is good for (default 1h, at most 720h)")
	f.IntVar(&spec.Uses, "uses", 0, "how many hosts it lets in, 1 to 100000 (default 1)")
	f.StringArrayVar(&labels, "label", nil, "label KEY=VALUE of the nodes that it lets in, as muster label sets it; may be repeated")
	f.BoolVar(&spec.Replace, "replace", false, "let a host take the place of a node that exists, whose certificate ends")
	return cmd
}

func (a *app) tokenListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List bootstrap tokens, without their secrets",
		Args:  arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.connect(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
			defer cancel()
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
}

func (a *app) tokenRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID…",
		Short: "End bootstrap tokens; nodes that they have let in stay",
		Args:  arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, ids []string) error {
			if err := a.connect(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
			defer cancel()
			for _, id := range ids {
				if _, err := a.client.Identity().RevokeToken(ctx, id); err != nil {
					return err
				}
				a.printf("token %q revoked\n", id)
			}
			return nil
		},
	}
}
