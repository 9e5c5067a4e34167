package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/coordinator/history/slots"
	"github.com/musterd/muster/coordinator/history/warehouse"
)

// The steps of an import, as --step takes them.
var importSteps = []string{"dual-write", "validate", "cut-over", "rollback", "remove"}

func (a *app) importSlotsCommand() *cobra.Command {
	var source slots.Source
	var step, dsnFile string
	cmd := &cobra.Command{
		Use:   "import-slots",
		Short: "Bring a table with amounts of resources as JSON into rows that SQL can add up",
		Long: "import-slots works on a table beside the history, in the same database. The steps are dual-write\n" +
			"(make and fill TABLE_slots; triggers keep it in step with the JSON), validate (list differences),\n" +
			"cut-over (the slots are the truth, and triggers keep the JSON in step), rollback (one step back)\n" +
			"and remove (drop the JSON columns; this cannot be undone). Slots that the registry does not know\n" +
			"are registered as count, with rank 0. Programs that write the table go on as they are.",
		Example: "  muster history import-slots --dsn-file /etc/muster/history.dsn --table kernels --id id --json occupied_slots,requested_slots --step dual-write\n" +
			"  muster history import-slots --dsn-file /etc/muster/history.dsn --table kernels --id id --json occupied_slots,requested_slots --step validate",
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case source.Table == "":
				return usagef("--table: want the name of a table")
			case source.ID == "":
				return usagef("--id: want the name of the column that names the entity")
			case len(source.Columns) == 0:
				return usagef("--json: want the names of JSON columns")
			case !slices.Contains(importSteps, step):
				return usagef("--step: %q: want one of %s", step, strings.Join(importSteps, ", "))
			case dsnFile == "":
				return usagef("--dsn-file: want the file with the DSN of the history")
			}
			if err := source.Check(); err != nil {
				return usagef("--table, --id, --json: %v", err)
			}
			return a.importSlots(cmd.Context(), source, step, dsnFile)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&source.Table, "table", "", "the table")
	flags.StringVar(&source.ID, "id", "", "the column that names the entity")
	flags.StringSliceVar(&source.Columns, "json", nil, "the JSON columns, with commas in between")
	flags.StringVar(&step, "step", "validate", "the step: "+strings.Join(importSteps, ", "))
	_ = cmd.RegisterFlagCompletionFunc("step", cobra.FixedCompletions(importSteps, cobra.ShellCompDirectiveNoFileComp))
	flags.StringVar(&dsnFile, "dsn-file", "", "the file with the DSN of the history, as in history.dsn of the coordinators")
	return cmd
}

// mostDSN bounds the file of a DSN, in bytes.
const mostDSN = 4096

func (a *app) importSlots(ctx context.Context, source slots.Source, step, dsnFile string) error {
	info, err := os.Stat(dsnFile)
	if err != nil {
		return usagef("--dsn-file: %v", err)
	}
	if info.Size() > mostDSN {
		return fmt.Errorf("--dsn-file %s: %d bytes, more than %d", dsnFile, info.Size(), mostDSN)
	}
	dsn, err := os.ReadFile(dsnFile)
	if err != nil {
		return fmt.Errorf("--dsn-file: %w", err)
	}
	w, err := warehouse.Open(ctx, strings.TrimSpace(string(dsn)))
	if err != nil {
		return err
	}
	return errors.Join(a.importStep(ctx, w, source, step), w.Close())
}

func (a *app) importStep(ctx context.Context, w *warehouse.Warehouse, source slots.Source, step string) error {
	i, err := slots.Of(w, source)
	if err != nil {
		return err
	}
	switch step {
	case "dual-write":
		err = i.DualWrite(ctx)
	case "cut-over":
		err = i.CutOver(ctx)
	case "rollback":
		err = i.Rollback(ctx)
	case "remove":
		err = i.Remove(ctx)
	case "validate":
		return a.validateSlots(ctx, i)
	}
	if err != nil {
		return err
	}
	p, err := i.Phase(ctx)
	if err != nil {
		return err
	}
	a.printf("%s is at the phase %s\n", source.Table, p)
	return nil
}

func (a *app) validateSlots(ctx context.Context, i *slots.Import) error {
	r, err := i.Validate(ctx)
	if err != nil {
		return err
	}
	if len(r.Differences) > 0 {
		t := newTable("ENTITY", "COLUMN", "SLOT", "JSON", "SLOTS")
		for _, d := range r.Differences {
			t.add(d.Entity, d.Column, d.Slot, d.JSON, d.Slots)
		}
		t.write(a.Stdout, "")
	}
	a.printf("%d entities, %d rows of slots, %d differences, at the phase %s\n", r.Entities, r.Rows, r.Total, r.Phase)
	if r.Total > 0 {
		return exitError{1}
	}
	return nil
}
