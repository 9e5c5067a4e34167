package cli

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
)

// historyCommand is the history as operators see it.
func (a *app) historyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Show and check the history that the cluster keeps in a database",
		Long: "history shows what happened, also to work whose objects are gone: allocations, preemptions and\n" +
			"events, of one's own tenant. status, verify and rebuild are about the database itself, and need the\n" +
			"role operator. The coordinator that is asked answers.",
	}
	cmd.AddCommand(a.pastCommands()...)
	cmd.AddCommand(a.importSlotsCommand())
	return parent(cmd,
		&cobra.Command{
			Use: "status", Short: "Show how far the history is, its spool and its gaps", Args: arguments(cobra.NoArgs),
			Example: "  muster history status\n  muster history status -o json",
			RunE:    func(cmd *cobra.Command, _ []string) error { return a.historyStatus(cmd.Context()) },
		},
		&cobra.Command{
			Use: "verify", Short: "Compare the history with the store, and list the differences", Args: arguments(cobra.NoArgs),
			Long:    "verify compares nodes with their conditions, jobs, allocations, grants, waits, quotas, preemptions and\nthe audit of the store with their rows in the history, and the slices of use of the last 6 hours, at\none revision, and changes nothing. With differences the exit code is 1.",
			Example: "  muster history verify",
			RunE: func(cmd *cobra.Command, _ []string) error {
				return a.historyReport(cmd.Context(), false)
			},
		},
		&cobra.Command{
			Use: "rebuild", Short: "Write the rows of the history anew that differ from the store", Args: arguments(cobra.NoArgs),
			Long:    "rebuild compares as verify does, and writes the rows that differ anew. Rows of work that the store\nhas no more stay as they are; those of them without an end get one.",
			Example: "  muster history rebuild",
			RunE: func(cmd *cobra.Command, _ []string) error {
				return a.historyReport(cmd.Context(), true)
			},
		},
		a.pruneCommand(),
	)
}

// pruneCommand removes old rows.
func (a *app) pruneCommand() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use: "prune", Short: "Remove the rows that are older than their kinds are kept", Args: arguments(cobra.NoArgs),
		Long: "prune removes the rows of the history that are older than the periods of history.retention, as the\n" +
			"coordinator that writes the history does every 6 hours. In PostgreSQL months leave their tables as a\n" +
			"whole and stay for 30 days as tables of their own. --dry-run shows what would go.",
		Example: "  muster history prune --dry-run",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.connect(); err != nil {
				return err
			}
			r, err := a.client.History().Prune(cmd.Context(), dryRun)
			if err != nil {
				return err
			}
			if a.output == "json" || a.output == "yaml" {
				return a.encode(r)
			}
			a.printRetention(r)
			return nil
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "remove nothing, and show what would go")
	return cmd
}

func (a *app) printRetention(r *api.HistoryRetention) {
	t := newTable("KIND", "TABLE", "BEFORE", "ROWS", "MONTHS OUT", "MONTHS DROPPED")
	for _, x := range r.Tables {
		t.add(x.Object, x.Table, x.Before, strconv.FormatInt(x.Rows, 10), cmp.Or(strings.Join(x.Detached, ","), "-"), cmp.Or(strings.Join(x.Dropped, ","), "-"))
	}
	t.write(a.Stdout, "")
}

func (a *app) historyStatus(ctx context.Context) error {
	if err := a.connect(); err != nil {
		return err
	}
	s, err := a.client.History().Status(ctx)
	if err != nil {
		return err
	}
	if a.output == "json" || a.output == "yaml" {
		return a.encode(s)
	}
	t := &table{}
	t.add("coordinator", s.Coordinator)
	t.add("projector", s.Projector+reasonOf(s.Reason))
	t.add("database", cmp.Or(s.Database, "not reached yet")+reasonOf(s.DatabaseFault))
	t.add("revision", fmt.Sprintf("%d of %d", s.Revision, s.StoreRevision))
	t.add("durable", strconv.FormatInt(s.DurableRevision, 10)+reasonOf(ownerOf(s)))
	t.add("spool", fmt.Sprintf("%d bytes in %d batches", s.SpoolBytes, s.SpoolBatches))
	t.add("gaps", strconv.Itoa(len(s.Gaps)))
	for _, g := range s.Gaps {
		t.add("gap", fmt.Sprintf("%d to %d, at %s: %s", g.From, g.To, cmp.Or(g.Time, "an unknown time"), g.Reason))
	}
	t.write(a.Stdout, "")
	return nil
}

// historyReport prints the differences between history and store.
func (a *app) historyReport(ctx context.Context, rebuild bool) error {
	if err := a.connect(); err != nil {
		return err
	}
	ask := a.client.History().Verify
	if rebuild {
		ask = a.client.History().Rebuild
	}
	r, err := ask(ctx)
	if err != nil {
		return err
	}
	if a.output == "json" || a.output == "yaml" {
		if err := a.encode(r); err != nil {
			return err
		}
	} else {
		a.printReport(r, rebuild)
	}
	if r.Total > 0 && !rebuild {
		return exitError{1}
	}
	return nil
}

func (a *app) printReport(r *api.HistoryReport, rebuild bool) {
	if len(r.Differences) > 0 {
		t := newTable("OBJECT", "KEY", "FIELD", "HISTORY", "STORE")
		for _, d := range r.Differences {
			t.add(d.Object, d.Key, cmp.Or(d.Field, "-"), cmp.Or(d.History, "-"), cmp.Or(d.Store, "-"))
		}
		t.write(a.Stdout, "")
	}
	outcome := "differ"
	if rebuild {
		outcome = "differed and were written anew"
	}
	a.printf("%d rows at revision %d: %d %s\n", r.Rows, r.Revision, r.Total, outcome)
}

func ownerOf(s *api.HistoryStatus) string {
	if s.SpoolOwner == "" {
		return ""
	}
	return "the last part is in the spool of " + s.SpoolOwner
}

func reasonOf(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}
