package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/inspect"
	"github.com/musterd/muster/cmd/buildinfo"
	"github.com/musterd/muster/cmd/manual"
	"github.com/musterd/muster/fit"
)

// usageError is a mistake of the caller of the program.
type usageError struct{ error }

// Unwrap returns the mistake.
func (e usageError) Unwrap() error { return e.error }

func exitCode(err error, stderr io.Writer) int {
	if err == nil {
		return exitDone
	}
	fmt.Fprintf(stderr, "muster-agent: %v\n", err)
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no arguments, got %q", cmd.CommandPath(), args)}
	}
	return nil
}

func newRoot(stdout, stderr io.Writer) *cobra.Command {
	var f flags
	root := &cobra.Command{
		Use:   "muster-agent --config FILE",
		Short: "The agent of one host: it owns the host's GPUs, CPUs and memory and hands them out",
		Long: `muster-agent discovers the host's NUMA nodes and GPUs, registers with the
cluster's coordinators and hands out what the leader reserves. Its journal
remembers every grant over restarts; nothing that runs is touched by one.`,
		Version: buildinfo.Version(),
		Args:    noArguments, SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := f.settings(cmd.Flags())
			if err != nil {
				return err
			}
			return serve(cmd.Context(), s, f.newJournal, stderr)
		},
	}
	root.SetVersionTemplate(buildinfo.Template)
	f.add(root.Flags())
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newInspect(), newAttach(), newDone(), manual.Command(buildinfo.Version()), buildinfo.Command(func(err error) error { return usageError{err} }))
	return root
}

// longestInspection is the greatest --timeout.
const longestInspection = 50 * time.Second

func newInspect() *cobra.Command {
	var o agent.DiscoverOptions
	var format string
	cmd := &cobra.Command{
		Use: "inspect", Short: "Print what is found on this host: processors, memory, GPUs and how they are connected", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "json" && format != "text" {
				return usageError{fmt.Errorf("--output: %q: want text or json", format)}
			}
			if o.Limit < 100*time.Millisecond || o.Limit > longestInspection {
				return usageError{fmt.Errorf("--timeout: %s is outside 100ms..%s", o.Limit, longestInspection)}
			}
			d, err := agent.Discover(cmd.Context(), o)
			if err != nil {
				return err
			}
			report := inspect.New(d.Host, d.Topology, d.Inventory, slices.Concat(d.Warnings, d.OverLimits(fit.Reserved{}))).With(d.Unknown, d.Hung)
			if format == "json" {
				return report.JSON(cmd.OutOrStdout())
			}
			return report.Text(cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "text", "text or json")
	cmd.Flags().StringVar(&o.SysfsRoot, "sysfs-root", "/", "a folder that holds sys/ (and proc/)")
	cmd.Flags().DurationVar(&o.Limit, "timeout", agent.DiscoveryLimit, "time for all calls into the driver together; GPUs that have not answered by then are unknown")
	cmd.Flags().StringVar(&o.NVMLLibrary, "nvml-library", "", "the NVML library to open instead of what the loader finds")
	return cmd
}
