package cli

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/coordinator/decisions"
	"github.com/musterd/muster/coordinator/decisions/logfile"
)

func (a *app) decisionsCommand() *cobra.Command {
	return parent(&cobra.Command{
		Use:   "decisions",
		Short: "Read the leaders' account of what they decided",
		Long: "A coordinator that leads writes down each placement with its position in the order, and why\n" +
			"whoever stood ahead was passed over, in the folder decisions of its dataDir. These commands read\n" +
			"such files and talk to no server.",
	}, a.decisionsCheckCommand(), a.decisionsShowCommand())
}

func (a *app) decisionsCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check DIR|FILE…",
		Short: "Verify that nobody was overtaken without a reason",
		Long: "check replays an account and verifies that whoever stood ahead of a unit that was placed had a\n" +
			"reason that still held, that nothing was placed or committed twice, and that a preemption's\n" +
			"victims were of lower priority. It prints the counts, what cannot be verified because records\n" +
			"are missing, and each violation with its file and line. Files of one coordinator are read in the\n" +
			"order of their names; coordinators keep accounts of their own.",
		Example: "  muster decisions check /var/lib/muster-coordinator/decisions\n  muster decisions check *.jsonl -o json",
		Args:    arguments(cobra.MinimumNArgs(1)),
		RunE:    func(_ *cobra.Command, args []string) error { return a.checkDecisions(args) },
	}
}

func (a *app) checkDecisions(paths []string) error {
	c := decisions.NewChecker()
	failures := logfile.Replay(c, paths...)
	r := c.Report()
	if r.Files == 0 {
		return failures
	}
	if !r.OK() {
		failures = errors.Join(failures, fmt.Errorf("%d violations in %d records", len(r.Violations), r.Records))
	}
	if !a.isTable() {
		return errors.Join(failures, a.encode(r))
	}
	for _, v := range r.Violations {
		a.printf("%s\n", v)
	}
	for _, n := range r.Notes {
		a.printf("%s:%d: not verifiable: %s\n", n.File, n.Line, n.Detail)
	}
	a.printf("files %d, terms %d, records %d, lost %d\n", r.Files, r.Terms, r.Records, r.Lost)
	a.printf("placements %d, verified %d, preemptions %d, claims %d\n", r.Placements, r.Verified, r.Preemptions, r.Claims)
	a.printf("commits %d, aborts %d, ends %d\n", r.Commits, r.Aborts, r.Ends)
	a.printf("passed over: %s; at most %d at once\n", r.PassedOver, r.LongestRow)
	a.printf("violations %d\n", len(r.Violations))
	return failures
}

func (a *app) decisionsShowCommand() *cobra.Command {
	var unit string
	cmd := &cobra.Command{
		Use:   "show DIR|FILE… --unit NAME",
		Short: "Show what an account says about one unit",
		Long: "show prints what happened to a unit in the order: when it came, why it was passed over, when it\n" +
			"was placed, committed and ended. NAME is a unit's path (ml/alloc/train/0) or NAMESPACE/NAME.",
		Example: "  muster decisions show /var/lib/muster-coordinator/decisions --unit ml/train",
		Args:    arguments(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			if unit == "" {
				return usagef("--unit: not set; it is NAMESPACE/NAME or a unit's path")
			}
			return a.showDecisions(args, unit)
		},
	}
	cmd.Flags().StringVar(&unit, "unit", "", "NAMESPACE/NAME, or a unit's path")
	return cmd
}

func (a *app) showDecisions(paths []string, unit string) error {
	c := decisions.NewChecker()
	history := c.Follow(unit)
	if err := logfile.Replay(c, paths...); err != nil {
		return err
	}
	if !history.Found() {
		return fmt.Errorf("nothing is said about %q; the files begin with the account of what waited then, so an older file may know it", unit)
	}
	if !a.isTable() {
		return a.encode(history.Moments)
	}
	for _, e := range history.Moments {
		when := "-"
		if e.At > 0 {
			when = time.UnixMilli(e.At).UTC().Format("2006-01-02 15:04:05.000")
		}
		position := "-"
		if e.Position > 0 {
			position = fmt.Sprint(e.Position)
		}
		a.printf("%s  %s  position %s  %s\n", when, cmp.Or(e.Unit, "every unit"), position, e.What)
	}
	return nil
}
