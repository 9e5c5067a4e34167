package cli

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
)

func (a *app) caCommand() *cobra.Command {
	return parent(&cobra.Command{
		Use:   "ca",
		Short: "Show and rotate the cluster's certificate authorities, certify and revoke operators",
	}, a.caShowCommand(), a.caRotateCommand(), a.caRetireCommand(), a.caOperatorCommand(), a.caOperatorsCommand(), a.caRevokeOperatorCommand())
}

// authorities prints a list of them.
func (a *app) authorities(list *api.AuthorityList) error {
	switch a.output {
	case "json", "yaml":
		return a.encode(list)
	case "name":
		for _, authority := range list.Items {
			a.printf("authority/%s\n", authority.Metadata.Name)
		}
		return nil
	}
	t := newTable("ID", "SIGNS", "NODES", "CREATED", "EXPIRES")
	for _, authority := range list.Items {
		t.add(authority.Metadata.Name, strconv.FormatBool(authority.Status.Signs), strconv.Itoa(authority.Status.Nodes),
			authority.Metadata.CreationTimestamp, authority.Status.Expires)
	}
	t.write(a.Stdout, "")
	return nil
}

func (a *app) caShowCommand() *cobra.Command {
	pem := false
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show the authorities that are trusted, and how many nodes have certificates by each",
		Args:  arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.connect(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
			defer cancel()
			list, err := a.client.Identity().Authorities(ctx)
			switch {
			case err != nil:
				return err
			case !pem:
				return a.authorities(list)
			}
			for _, authority := range list.Items {
				a.printf("%s", authority.Status.Certificate)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&pem, "pem", false, "print their certificates in PEM, for --ca-file")
	return cmd
}

func (a *app) caRotateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rotate",
		Short: "Make a new authority, which signs from now on",
		Long: "rotate makes a new authority beside the one there is. Both are trusted; coordinators and agents\n" +
			"replace their certificates by themselves, without interruption, agents within seconds of their\n" +
			"next heartbeat. Once ca show counts no nodes for the old one, end it with ca retire.",
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.connect(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
			defer cancel()
			made, err := a.client.Identity().RotateAuthority(ctx)
			if err != nil {
				return err
			}
			if !a.isTable() {
				return a.encode(made)
			}
			a.printf("authority %q signs from now on\n", made.Metadata.Name)
			return nil
		},
	}
}

func (a *app) caRetireCommand() *cobra.Command {
	force := false
	var require api.Preconditions
	cmd := &cobra.Command{
		Use:   "retire ID",
		Short: "End the trust in an authority that no longer signs",
		Long: "retire is refused while nodes have certificates by the authority. With --force those have to\n" +
			"enroll again, with tokens of token create --replace.",
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.connect(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
			defer cancel()
			left, err := a.client.Identity().RetireAuthorityIf(ctx, args[0], force, require)
			if err != nil {
				return err
			}
			if !a.isTable() {
				return a.authorities(left)
			}
			a.printf("authority %q is no longer trusted\n", args[0])
			return nil
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "although nodes have certificates by it")
	requireFlags(cmd, &require, "retire the authority", "the authority")
	return cmd
}

// The range of an operator's certificate, as package enroll has it. The range is
// judged here too, before a key is made.
const (
	minOperatorTTL = time.Minute
	maxOperatorTTL = 720 * time.Hour
)

func (a *app) caOperatorCommand() *cobra.Command {
	dir := ""
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:   "operator NAME --dir FOLDER",
		Short: "Get a certificate for an operator, to ask agents over gRPC what they tell of themselves",
		Args:  arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir == "" {
				return usagef("--dir: not set; want a folder for the key and the certificate")
			}
			if cmd.Flags().Changed("ttl") && (ttl < minOperatorTTL || ttl > maxOperatorTTL) {
				return usagef("--ttl: %s is outside %s..%s", ttl, minOperatorTTL, maxOperatorTTL)
			}
			if err := a.connect(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
			defer cancel()
			return a.certify(ctx, args[0], dir, ttl)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "folder of mode 0700 to write party.pem and ca.pem into")
	cmd.Flags().DurationVar(&ttl, "ttl", 0, "how long the certificate is good for (default 12h, 1m to 720h)")
	return cmd
}

// certify keeps the private key here: only the request travels.
func (a *app) certify(ctx context.Context, name, dir string, ttl time.Duration) error {
	f, key, request, err := newRequest(dir)
	if err != nil {
		return err
	}
	made, err := a.client.Identity().CertifyOperator(ctx, name, request, ttl)
	if err != nil {
		return err
	}
	if err := save(f, key, made.Status.Chain, made.Status.Authorities); err != nil {
		return err
	}
	a.printf("%s\n%s\n", f.PartyPath(), f.RootsPath())
	return nil
}
