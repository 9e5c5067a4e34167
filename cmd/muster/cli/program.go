// Package cli is the muster command line: the verbs with which tenants submit,
// watch and end work and operators see and cordon nodes. It decides how objects
// are asked for and shown; the server decides the rest.
//
// A run of the program is a value (Program), so that tests start the real one.
// Errors are one line on standard error: the failure, and the next step. A refused
// document has a further line for each further fault.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/cmd/buildinfo"
)

// The exit codes.
const (
	ExitDone    = 0 // the request is done
	ExitFailed  = 1 // refused, or failed
	ExitMisused = 2 // wrong usage: nothing was attempted
)

// Program is one run of muster.
type Program struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Env            func(string) string // looks an environment variable up
	Args           []string            // without the program's name
	Version        string
}

// usageError marks a mistake in the command itself.
type usageError struct{ err error }

func (u usageError) Error() string { return u.err.Error() }
func (u usageError) Unwrap() error { return u.err }

// Usage marks an error as wrong usage, exit code 2.
func Usage(err error) error { return usageError{err} }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// parent makes cmd the parent of commands: alone cmd shows the help, and an unknown command is
// wrong usage, with the commands of like names. cobra by itself ends with 0 there.
func parent(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return unknownVerb(cmd, args[0])
	}
	cmd.RunE, cmd.SuggestionsMinimumDistance = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }, 2
	cmd.AddCommand(commands...)
	return cmd
}

// arguments makes a validator's refusals usage errors that name the wanted arguments.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		_, want, _ := strings.Cut(cmd.Use, " ")
		switch {
		case err == nil:
			return nil
		case want == "":
			return usagef("want no arguments, got %q", args)
		case len(args) == 0:
			return usagef("want %s", want)
		}
		return usagef("want %s, got %q", want, args)
	}
}

// Run executes the program and returns its exit code. It ends early, with
// ExitFailed, when ctx does.
func (p Program) Run(ctx context.Context, extra ...*cobra.Command) int {
	p.Stdout, p.Stderr = newVisible(p.Stdout), newVisible(p.Stderr)
	a := &app{Program: p}
	root := a.root(extra)
	cmd, err := root.ExecuteContextC(ctx)
	var misuse usageError
	var ended exitError
	broken, silent := unwritten(p.Stdout)
	switch {
	case err == nil && broken == nil:
		return ExitDone
	case err == nil && silent:
		return ExitFailed
	case err == nil:
		_, _ = fmt.Fprintf(p.Stderr, "muster: %s\n", oneLine(broken.Error()))
		return ExitFailed
	case errors.As(err, &ended):
		return ended.code
	case errors.As(err, &misuse):
		_, _ = fmt.Fprintf(p.Stderr, "muster: %s; see %s --help\n", oneLine(err.Error()), cmd.CommandPath())
		return ExitMisused
	}
	_, _ = fmt.Fprintf(p.Stderr, "muster: %s\n", oneLine(a.advise(ctx, err)))
	for _, fault := range furtherFaults(err) {
		_, _ = fmt.Fprintf(p.Stderr, "  %s\n", oneLine(fault))
	}
	return ExitFailed
}

// New builds the command tree; extra verbs stand beside the client's.
func New(p Program, extra ...*cobra.Command) *cobra.Command {
	return (&app{Program: p}).root(extra)
}

// oneLine joins the lines of an error, such as those of errors.Join.
func oneLine(s string) string {
	var lines []string
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

// asKubectl takes the names of flags that users know from kubectl for those of this program.
func asKubectl(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == "grace-period" {
		name = "grace"
	}
	return pflag.NormalizedName(name)
}

// unknownVerb refuses an argument in the place of a command of a parent.
func unknownVerb(parent *cobra.Command, verb string) error {
	if near := parent.SuggestionsFor(verb); len(near) > 0 {
		return usagef("unknown command %q, did you mean %s?", verb, strings.Join(near, " or "))
	}
	return usagef("unknown command %q", verb)
}

func (a *app) root(extra []*cobra.Command) *cobra.Command {
	root := parent(&cobra.Command{
		Use:   "muster",
		Short: "Allocate GPUs, CPUs and NUMA memory over a cluster of hosts",
		Long: "muster submits work to a Muster cluster and shows what runs where.\n\n" +
			"The server's address and token come from --addr and --token, else from the context of --context,\n" +
			"else from MUSTER_ADDR and MUSTER_TOKEN, else from the current context. muster dev adds the\n" +
			"context dev; muster config shows, chooses and changes contexts.",
		Version:           a.Version,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(*cobra.Command, []string) error { return a.checkOutput() },
	})
	root.SetVersionTemplate(buildinfo.Template)
	root.SetArgs(a.Args)
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if cmd == root && len(a.Args) > 0 && !strings.HasPrefix(a.Args[0], "-") {
			return unknownVerb(root, a.Args[0]) // the flag is that of a misspelt verb
		}
		return usageError{err}
	})

	flags := root.PersistentFlags()
	flags.StringVar(&a.addr, "addr", "", "server address, or several with commas in between, e.g. http://127.0.0.1:8470 (MUSTER_ADDR)")
	flags.StringVar(&a.own.CertFile, "client-certificate", "", "PEM file of the client certificate that proves who you are, in place of the token of the context (MUSTER_CLIENT_CERTIFICATE)")
	flags.StringVar(&a.own.KeyFile, "client-key", "", "PEM file of the key of the client certificate, if it is in a file of its own (MUSTER_CLIENT_KEY)")
	flags.StringVar(&a.caFile, "ca-file", "", "PEM file of the authorities that the server is trusted by (MUSTER_CA_FILE; default: the system's)")
	flags.StringVar(&a.contextName, "context", "", "use this context instead of the current one")
	_ = root.RegisterFlagCompletionFunc("context", a.completeContexts)
	flags.StringVar(&a.token, "token", "", "bearer token; MUSTER_TOKEN keeps it out of the process list")
	flags.StringVarP(&a.namespace, "namespace", "n", "", `namespace (default: the context's, else "default")`)
	flags.BoolVarP(&a.allNamespaces, "all-namespaces", "A", false, "all namespaces")
	flags.StringVarP(&a.output, "output", "o", "table", "output format: "+strings.Join(outputs, ", ")+", jsonpath=TEMPLATE, custom-columns=HEAD:.path,…")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(slices.Concat(outputs, templates), cobra.ShellCompDirectiveNoFileComp))

	root.AddCommand(a.runCommand(), a.logsCommand(), a.execCommand(), a.attachCommand(), a.submitCommand(), a.applyCommand(), a.getCommand(), a.describeCommand(), a.eventsCommand(), a.auditCommand(), a.historyCommand(), a.deleteCommand(), a.cancelCommand(), a.boostCommand(), a.suspendCommand(), a.resumeCommand(),
		a.whyCommand(), a.decisionsCommand(), a.quotaCommand(), a.cordonCommand(true), a.cordonCommand(false), a.labelCommand(), a.annotateCommand(), a.taintCommand(), a.nodeCommand(), a.kubeletCommand(), a.preemptCommand(), a.drainCommand(), a.fenceCommand(), a.reconcileCommand(), a.statusCommand(), clusterCommand(a), a.metricsCommand(), a.topCommand(), a.usageCommand(),
		a.tokenCommand(), a.caCommand(), a.configCommand(), a.apiResourcesCommand(), a.versionCommand(), a.doctorCommand(), a.simulateCommand(), a.snapshotCommand(), a.loginCommand(), a.logoutCommand(), a.whoAmICommand())
	root.AddCommand(a.referenceCommands()...)
	root.SetGlobalNormalizationFunc(asKubectl)
	for _, cmd := range extra {
		if cmd.HasSubCommands() {
			parent(cmd)
		} else if cmd.Args != nil {
			cmd.Args = arguments(cmd.Args)
		}
		root.AddCommand(cmd)
	}
	return root
}

// furtherFaults are the faults of a refused document beside the first one, which the
// error itself names.
func furtherFaults(err error) []string {
	var status *api.Status
	if !errors.As(err, &status) || len(status.Causes) < 2 {
		return nil
	}
	var lines []string
	for _, c := range status.Causes[1:] {
		if c.Field == "" {
			lines = append(lines, c.Message)
		} else {
			lines = append(lines, c.Field+": "+c.Message)
		}
	}
	return lines
}
