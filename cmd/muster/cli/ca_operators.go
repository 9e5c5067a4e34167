package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
)

func (a *app) caOperatorsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "operators",
		Short: "List the operators' certificates that have not expired",
		Args:  arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.connect(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
			defer cancel()
			list, err := a.client.Identity().Operators(ctx)
			if err != nil {
				return err
			}
			return a.operators(list)
		},
	}
}

// operators prints a list of operators' certificates.
func (a *app) operators(list *api.OperatorCertificateList) error {
	if a.output == "json" || a.output == "yaml" {
		return a.encode(list)
	}
	t := newTable("OPERATOR", "CERTIFIED", "EXPIRES", "BY", "REVOKED")
	for _, o := range list.Items {
		if a.output == "name" {
			a.printf("operator/%s\n", o.Metadata.Name)
			continue
		}
		t.add(o.Metadata.Name, o.Metadata.CreationTimestamp, o.Status.Expires, o.Status.Creator, o.Status.Revoked)
	}
	if a.isTable() {
		t.write(a.Stdout, "")
	}
	return nil
}

func (a *app) caRevokeOperatorCommand() *cobra.Command {
	var require api.Preconditions
	cmd := &cobra.Command{
		Use:   "revoke-operator NAME",
		Short: "End all certificates of an operator now",
		Long: "revoke-operator ends the certificates of an operator. Agents refuse them and close their connections\n" +
			"within seconds; one that hears no coordinator does so when it hears one again, or when the\n" +
			"certificate expires. With --resource-version or --uid the certificate that was\n" +
			"changed last has to have that value.",
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.connect(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
			defer cancel()
			ended, err := a.client.Identity().RevokeOperatorIf(ctx, args[0], require)
			if err != nil {
				return err
			}
			if !a.isTable() {
				return a.operators(ended)
			}
			a.printf("operator %q: %d certificate(s) revoked\n", args[0], len(ended.Items))
			return nil
		},
	}
	requireFlags(cmd, &require, "revoke the certificates", "the certificate that was changed last")
	return cmd
}
