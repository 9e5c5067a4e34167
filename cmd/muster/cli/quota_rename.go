package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
)

func (a *app) quotaRenameCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rename TREE OLD NEW",
		Short: "Rename a group, or another node, of a quota tree",
		Long: "rename gives a node of a quota tree another name. Work that runs stays charged to the node, and\n" +
			"bindings of namespaces follow. A change of the name by muster quota apply removes the group and\n" +
			"adds another: work that runs is then charged to the root of the tree.",
		Example: "  muster quota rename company vision perception",
		Args:    arguments(cobra.ExactArgs(3)),
		RunE: func(cmd *cobra.Command, args []string) error {
			for i, name := range args {
				if !api.IsTreeName(name) {
					return usagef("%q is not the name of a %s: want 1..63 letters, digits, '-', '_' and '.'", name, [...]string{"quotatree", "node", "node"}[i])
				}
			}
			if err := a.connect(); err != nil {
				return err
			}
			return a.renameQuotaNode(cmd.Context(), args[0], api.QuotaRename{From: args[1], To: args[2]})
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.completeNames(quotaTreeKind)(cmd, args, prefix)
		},
	}
}

func (a *app) renameQuotaNode(ctx context.Context, tree string, r api.QuotaRename) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	got, err := a.client.QuotaTrees().Rename(ctx, tree, r)
	if err != nil {
		return fmt.Errorf("rename %s of quotatree %s: %w", r.From, tree, err)
	}
	switch a.output {
	case "json", "yaml":
		return a.encode(got)
	case "name":
		a.printf("quotatree/%s\n", tree)
	default:
		a.printf("node %s of quotatree %s is %s now\n", r.From, tree, r.To)
	}
	return nil
}
