package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterd/muster/api"
)

// isBulk reports whether a deletion is one request: of allocations, by a selector.
// Other kinds are listed first and deleted one by one.
func (d deletion) isBulk(args []string) bool {
	groups, err := parseGroups(args)
	return err == nil && d.selector != "" && !d.dryRun.client() && len(groups) == 1 && groups[0].kind == allocationKind
}

// checkServerDryRun refuses --dry-run=server where the server has none.
func (d deletion) checkServerDryRun(args []string) error {
	if d.dryRun.server() && !d.isBulk(args) {
		return usagef("--dry-run=server is for allocations by -l: want none or client")
	}
	return nil
}

// deleteSelected deletes the allocations that the selector selects, by one request.
// A member of a job does not end alone: that is a failure.
func (a *app) deleteSelected(ctx context.Context, d deletion) error {
	deadline := time.Now().Add(d.timeout)
	call, cancel := context.WithTimeout(ctx, callTimeout)
	got, err := a.client.Allocations(a.namespace).Release(call, api.BulkReleaseOptions{
		LabelSelector: d.selector, GracePeriodSeconds: d.options.GracePeriodSeconds, DryRun: d.dryRun.server(),
	})
	cancel()
	if err != nil {
		return fmt.Errorf("delete allocations -l %s: %w", d.selector, err)
	}
	failures := []error{a.printRelease(got)}
	for _, f := range got.Failures {
		failures = append(failures, fmt.Errorf("delete allocation %s/%s: %s", a.namespace, f.Name, f.Message))
	}
	if more := got.Failed - len(got.Failures); more > 0 {
		failures = append(failures, fmt.Errorf("%d more allocations were not deleted", more))
	}
	for _, name := range got.Allocations {
		if d.wait && !got.DryRun {
			failures = append(failures, a.awaitGone(ctx, target{allocationKind, a.namespace, name}, deadline))
		}
	}
	return errors.Join(failures...)
}

func (a *app) printRelease(r *api.BulkRelease) error {
	switch a.output {
	case "json", "yaml":
		return a.encode(r)
	case "name":
		for _, name := range r.Allocations {
			a.printf("allocation/%s\n", name)
		}
		return nil
	}
	dry := map[bool]string{true: " (server dry run)"}[r.DryRun]
	for _, name := range r.Allocations {
		a.printf("allocation %q deleted%s\n", name, dry)
	}
	if more := r.Released - len(r.Allocations); more > 0 {
		a.printf("%d more allocations deleted%s\n", more, dry)
	}
	switch {
	case r.Released == 0 && r.Failed == 0:
		a.notef("no allocations found in namespace %s\n", a.namespace)
	case len(r.TotalResourcesFreed) > 0:
		a.notef("%d allocations, which hold %s\n", r.Released, amounts(r.TotalResourcesFreed))
	}
	return nil
}
