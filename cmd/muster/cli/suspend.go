package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
)

// suspendCommand keeps work from running.
func (a *app) suspendCommand() *cobra.Command {
	return a.workSpecCommand(specChange{
		verb: "suspend", done: "suspended", spec: map[string]any{"suspend": true},
		short: "Keep allocations and jobs from running; what runs is given notice and waits again",
		long: "suspend keeps allocations and jobs from running until `muster resume`. Work that waits keeps its name and its\n" +
			"place in the order and is not tried. Work that runs is given notice with grace, as in an eviction, and waits again\n" +
			"once it has stopped; its charge ends then. It is the same as a PATCH of spec.suspend.",
	})
}

// resumeCommand lets suspended work run again.
func (a *app) resumeCommand() *cobra.Command {
	return a.workSpecCommand(specChange{
		verb: "resume", done: "resumed", spec: map[string]any{"suspend": false},
		short: "Let suspended allocations and jobs run again, by the order of their arrival",
		long:  "resume ends `muster suspend`. The work waits for room at the place in the order that it had.",
	})
}

// specChange is a change of the specification of allocations or jobs.
type specChange struct {
	verb, done  string // "suspend", "suspended"
	short, long string
	spec        map[string]any
}

func (a *app) workSpecCommand(c specChange) *cobra.Command {
	return &cobra.Command{
		Use:     c.verb + " KIND NAME… | KIND/NAME…",
		Short:   c.short,
		Long:    c.long,
		Example: "  muster " + c.verb + " job train\n  muster " + c.verb + " allocation/web",
		Args:    arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			of, names, err := parseTargets(args)
			switch {
			case err != nil:
				return err
			case of != allocationKind && of != jobKind:
				return usagef("%s: only allocations and jobs can be %s", of, c.done)
			case a.allNamespaces:
				return usagef("-A: work is changed in one namespace")
			case len(names) == 0:
				return usagef("name the %ss", of)
			}
			if err := a.connect(); err != nil {
				return err
			}
			return a.changeSpecs(cmd.Context(), of, names, c)
		},
		ValidArgsFunction: a.completeTargets,
	}
}

// changeSpecs changes the objects one by one; a failure at one does not stop the
// others.
func (a *app) changeSpecs(ctx context.Context, of kind, names []string, c specChange) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"spec": c.spec})
	if err != nil {
		return fmt.Errorf("encode the patch: %w", err)
	}
	at := a.at(of, a.namespace)
	var failures []error
	var changed []object
	for _, name := range names {
		got, err := at.Patch(ctx, name, patch)
		if err != nil {
			failures = append(failures, fmt.Errorf("%s %s %s/%s: %w", c.verb, of, a.namespace, name, err))
			continue
		}
		changed = append(changed, object{Object: got})
		if a.isTable() {
			a.printf("%s %q %s%s\n", of, name, c.done, leavingOf(changed[len(changed)-1], c.spec["suspend"] == true))
		}
	}
	if !a.isTable() && len(changed) > 0 {
		failures = append(failures, a.print(changed, listOf(changed)))
	}
	return errors.Join(failures...)
}

// leavingOf says that suspended work is running still, "" where it does not.
func leavingOf(o object, suspends bool) string {
	runs := false
	if w := as[api.Allocation](o); w != nil {
		runs = w.Status.Phase == api.Running || w.Status.Phase == api.Terminating
	}
	if j := as[api.Job](o); j != nil {
		runs = j.Status.Active > 0
	}
	if runs && suspends {
		return "; it is running and has notice to stop within its grace"
	}
	return ""
}
