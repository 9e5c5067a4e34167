package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
)

// nodeCommand holds the verbs that are about nodes alone.
func (a *app) nodeCommand() *cobra.Command {
	return parent(&cobra.Command{
		Use:   "node",
		Short: "Decide which hosts take part, and with how much",
	}, a.nodeCreateCommand(), a.nodeLimitCommand(), a.nodeBanCommand(), a.nodeUnbanCommand(), a.nodeBansCommand(), a.approveCommand(), a.nodeEvictionsCommand())
}

func (a *app) nodeBanCommand() *cobra.Command {
	reason := ""
	cmd := &cobra.Command{
		Use:   "ban NODE",
		Short: "Keep a host out: end its certificate and its connections now",
		Long: "ban ends the certificate of a node. Within a second no coordinator takes a call of it or calls it,\n" +
			"its connections are closed, it takes no new work, and it can neither enroll nor renew, whatever\n" +
			"token it has. The gossip key is replaced, so that it can neither read nor write the rings. The ban\n" +
			"survives a failover, and a restore of the store from an older backup.\n\n" +
			"What runs there counts as running, as on a silent node. Switch the machine off, then say\n" +
			"muster fence NODE --confirm-dead.",
		Example: "  muster node ban gpu-07 --reason \"its root account was stolen\"\n  muster fence gpu-07 --confirm-dead",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.decideBan(cmd, args, func(ctx context.Context, node string) (*api.NodeBan, error) {
				return a.client.Identity().BanNode(ctx, node, reason)
			})
		},
		ValidArgsFunction: a.completeNames(nodeKind),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for others to see")
	return cmd
}

func (a *app) nodeUnbanCommand() *cobra.Command {
	var require api.Preconditions
	cmd := &cobra.Command{
		Use:   "unban NODE",
		Short: "Let a banned node enroll again, by a new token",
		Long: "unban ends a ban. The certificate that the ban ended stays ended: let the host enroll with the token\n" +
			"of muster token create --node NODE --replace.",
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.decideBan(cmd, args, func(ctx context.Context, node string) (*api.NodeBan, error) {
				return a.client.Identity().UnbanNodeIf(ctx, node, require)
			})
		},
		ValidArgsFunction: a.completeNames(nodeKind),
	}
	requireFlags(cmd, &require, "end the ban", "the ban")
	return cmd
}

// decideBan asks for a ban or its end, and prints it.
func (a *app) decideBan(cmd *cobra.Command, args []string, ask func(context.Context, string) (*api.NodeBan, error)) error {
	names, err := a.named(nodeKind, args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
	defer cancel()
	ban, err := ask(ctx, names[0])
	switch {
	case err != nil:
		return fmt.Errorf("%s node %s: %w", cmd.Name(), names[0], err)
	case a.output == "name":
		a.printf("nodeban/%s\n", ban.Metadata.Name)
	case !a.isTable():
		return a.encode(ban)
	case !ban.Status.Banned:
		a.printf("node %q is no longer banned\n", names[0])
		a.notef("its certificate stays ended; let it enroll with the token of: muster token create --node %s --replace\n", names[0])
	default:
		a.printf("node %q banned\n", names[0])
		if !ban.Status.Enrolled {
			a.notef("it had no certificate: is the name right? (muster node unban %s)\n", names[0])
		}
	}
	return nil
}

func (a *app) nodeBansCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "bans",
		Short: "List the nodes that are banned",
		Args:  arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.connect(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
			defer cancel()
			list, err := a.client.Identity().Bans(ctx)
			if err != nil {
				return err
			}
			if a.output == "json" || a.output == "yaml" {
				return a.encode(list)
			}
			t := newTable("NODE", "SINCE", "BY", "REASON")
			for _, b := range list.Items {
				if a.output == "name" {
					a.printf("nodeban/%s\n", b.Metadata.Name)
					continue
				}
				t.add(b.Metadata.Name, b.Metadata.CreationTimestamp, b.Status.By, b.Spec.Reason)
			}
			if a.isTable() {
				t.write(a.Stdout, "")
			}
			return nil
		},
	}
}
