package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// namesWork reports whether the arguments of a change name allocations or jobs.
func namesWork(args []string) bool {
	of, _, err := parseTargets(args[:1])
	return err == nil && (of == allocationKind || of == jobKind)
}

// workEdit is a change of labels or annotations of allocations or jobs.
type workEdit struct {
	verb, done string // "label", "labeled"
	field      string // of metadata
	wish       pairs
	overwrite  bool
}

// of are the pairs of an object that the change is about.
func (e workEdit) of(m *api.ObjectMeta) map[string]string {
	if e.field == "labels" {
		return m.Labels
	}
	return m.Annotations
}

// changeWork reads "KIND NAME… CHANGE…" and changes the objects one by one; a
// failure at one does not stop the others.
func (a *app) changeWork(ctx context.Context, args []string, s nodeSelection, e workEdit) error {
	of, names, changes, err := s.parseWork(args, a.allNamespaces)
	if err != nil {
		return err
	}
	if e.wish, err = parsePairs(e.wish.what, changes); err != nil {
		return err
	}
	if err := a.connect(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var failures []error
	var shown []object
	for _, name := range names {
		o, done, err := a.changeOneWork(ctx, of, name, e)
		if err != nil {
			failures = append(failures, fmt.Errorf("%s %s %s/%s: %w", e.verb, of, a.namespace, name, err))
			continue
		}
		shown = append(shown, o)
		if a.isTable() {
			a.printf("%s %q %s\n", of, name, done)
		}
	}
	if !a.isTable() && len(shown) > 0 {
		failures = append(failures, a.print(shown, listOf(shown)))
	}
	return errors.Join(failures...)
}

// parseWork splits names and changes of allocations or jobs.
func (s nodeSelection) parseWork(args []string, allNamespaces bool) (of kind, names, changes []string, err error) {
	at := 0
	for at < len(args) && !isChange(args[at]) {
		at++
	}
	of, names, err = parseTargets(args[:at])
	changes = args[at:]
	switch {
	case err != nil:
	case allNamespaces:
		err = usagef("-A: work is changed in one namespace")
	case s.all || s.selector != "":
		err = usagef("--all and -l select nodes alone: name the %ss", of)
	case len(names) == 0:
		err = usagef("name the %ss", of)
	case len(changes) == 0:
		err = usagef("nothing to change: want changes behind the names")
	}
	for _, c := range changes {
		if err == nil && !isChange(c) {
			err = usagef("%q: names stand before the changes", c)
		}
	}
	return of, names, changes, err
}

// changeOneWork changes an object as it is seen, and looks again where the object
// has changed since.
func (a *app) changeOneWork(ctx context.Context, of kind, name string, e workEdit) (object, string, error) {
	at := a.at(of, a.namespace)
	for attempt := 1; ; attempt++ {
		seen, err := at.Get(ctx, name, sdk.GetOptions{})
		if err != nil {
			return object{}, "", err
		}
		has := maps.Clone(e.of(seen.Meta()))
		set, prefix, err := e.wish.change(has, has, e.overwrite)
		if err != nil {
			return object{}, "", err
		}
		if set == nil {
			return object{Object: seen}, "not changed", nil
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": seen.Meta().ResourceVersion, e.field: set}})
		if err != nil {
			return object{}, "", fmt.Errorf("encode the patch: %w", err)
		}
		got, err := at.Patch(ctx, name, patch)
		if isConflict(err) && attempt < editAttempts && seenAgain(ctx, at, name, seen) {
			continue
		}
		return object{Object: got}, prefix + e.done, err
	}
}

// seenAgain reports whether an object has another version than before: a conflict
// that is none of versions comes again.
func seenAgain(ctx context.Context, at sdk.Resource, name string, before sdk.Object) bool {
	now, err := at.Get(ctx, name, sdk.GetOptions{})
	return err == nil && now.Meta().ResourceVersion != before.Meta().ResourceVersion
}
