package cli

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/cmd/muster/doctor"
	"github.com/musterd/muster/cmd/muster/internal/clicontext"
	"github.com/musterd/muster/sdk"
)

// doctorFlags are the flags of muster doctor.
type doctorFlags struct {
	config, serfRPC, serfTokenFile string
	patience                       time.Duration
}

func (a *app) doctorCommand() *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong with the cluster or with this host's configuration",
		Long: "doctor asks each coordinator, the store's lists of nodes and quotas, and with --serf-rpc the gossip\n" +
			"ring, and names what is wrong: how much it matters, what it is, and the command that mends it.\n" +
			"It changes nothing. With --config it looks at the configuration file of an agent or a coordinator\n" +
			"on this host, and at the files, ports and peers that the file names.\n\n" +
			"Exit code 0: nothing is wrong; 1: something is; 2: it could not look.",
		Example: "  muster doctor\n  muster doctor --serf-rpc 127.0.0.1:7373 --serf-token-file /etc/muster/token\n" +
			"  muster doctor --config /etc/muster/agent.yaml -o json",
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context(), f) },
	}
	cmd.Flags().StringVar(&f.config, "config", "", "look at this configuration file of an agent or a coordinator on this host")
	cmd.Flags().StringVar(&f.serfRPC, "serf-rpc", "", "address of a serf RPC port, e.g. 127.0.0.1:7373: compare the gossip ring with the nodes")
	cmd.Flags().StringVar(&f.serfTokenFile, "serf-token-file", "", "file with the token of the serf RPC port")
	cmd.Flags().DurationVar(&f.patience, "patience", 5*time.Second, "how long to wait for each answer, 100ms to 1m")
	return cmd
}

func (a *app) doctor(ctx context.Context, f doctorFlags) error {
	if f.patience < 100*time.Millisecond || f.patience > time.Minute {
		return usagef("--patience %s is outside 100ms..1m", f.patience)
	}
	if host, port, err := net.SplitHostPort(f.serfRPC); f.serfRPC != "" && (err != nil || host == "" || !isPort(port)) {
		return usagef("--serf-rpc: %q: want HOST:PORT", f.serfRPC)
	}
	options := doctor.Options{Version: a.Version, Patience: f.patience, SerfRPC: f.serfRPC, Progress: a.Stderr}
	if f.serfTokenFile != "" {
		token, err := os.ReadFile(f.serfTokenFile)
		if err != nil {
			return usagef("--serf-token-file: %w", err)
		}
		options.SerfToken = strings.TrimSpace(string(token))
	}
	var findings []doctor.Finding
	err := a.endpointsToLookAt(&options, &findings)
	if err != nil && f.config == "" {
		return usageError{err}
	}
	var report doctor.Report
	switch {
	case f.config == "":
		report = doctor.Look(ctx, options).Judge(time.Now(), "cluster at "+strings.Join(options.Endpoints, ", "))
	case err != nil: // a host's file can be looked at without a cluster
		report, err = doctor.LookAtHost(ctx, f.config, nil, options)
	default:
		report, err = doctor.Look(ctx, options).JudgeHost(ctx, f.config, options)
	}
	if err != nil {
		return usagef("--config: %w", err)
	}
	report.Findings = append(report.Findings, findings...)
	if a.isTable() {
		err = report.WriteText(a.Stdout)
	} else {
		err = a.encode(report)
	}
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if n := report.Faults(); n > 0 {
		return fmt.Errorf("doctor has found %d faults (errors and warnings)", n)
	}
	return nil
}

// isPort reports whether a text is the number of a port that can be reached.
func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// endpointsToLookAt resolves addresses, token and trust as connect does, and
// judges the file of contexts.
func (a *app) endpointsToLookAt(o *doctor.Options, findings *[]doctor.Finding) error {
	addr, token, caFile, own := a.addr, a.token, a.caFile, a.certificate()
	if a.contextName == "" {
		addr, token, caFile = cmp.Or(addr, a.Env("MUSTER_ADDR")), cmp.Or(token, a.Env("MUSTER_TOKEN")), cmp.Or(caFile, a.Env("MUSTER_CA_FILE"))
	}
	if a.contextName != "" || addr == "" || token == "" {
		c, found, err := a.selected()
		switch {
		case err != nil && addr == "":
			return err
		case !found && addr == "":
			return a.noServer()
		}
		addr = cmp.Or(addr, c.Addr)
		if token == "" && among(addr, c.Addr) {
			token = c.Token
		}
		if among(addr, c.Addr) {
			own = cmp.Or(own, sdk.Certificate{CertFile: c.ClientCertificate, KeyFile: c.ClientKey})
		}
		caFile = cmp.Or(caFile, c.CertificateAuthority)
	}
	if path, err := clicontext.Path(a.Env); err == nil {
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
			*findings = append(*findings, doctor.Finding{
				Severity: doctor.Error, Check: "context", Subject: path, Message: fmt.Sprintf("its mode is %#o: others can read the tokens in it", info.Mode().Perm()), Remedy: "chmod 0600 " + path,
			})
		}
	}
	trust, err := sdk.Trust(caFile)
	if err == nil {
		trust, err = own.AddTo(trust)
	}
	if err != nil {
		return err
	}
	o.Endpoints, o.Token, o.Trust = endpoints(addr), token, trust
	return nil
}
