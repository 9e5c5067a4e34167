package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/musterd/muster/sdk"
)

// watchFlags are the flags of get that follow changes.
type watchFlags struct {
	watch, only, events bool
	// awaited: an object that is named and not there is awaited, and no error.
	awaited bool
}

func (f watchFlags) on() bool { return f.watch || f.only }

// check refuses what a watch cannot do.
func (f watchFlags) check(groups []group, list sdk.ListOptions, sorted bool) error {
	switch {
	case !f.on() && f.events:
		return usagef("--output-watch-events is for --watch")
	case !f.on():
		return nil
	case len(groups) > 1 || len(groups[0].names) > 1:
		return usagef("--watch takes one kind, and at most one name")
	case list.Limit != 0:
		return usagef("--watch and --limit exclude each other")
	case sorted:
		return usagef("--watch and --sort-by exclude each other: changes come in their order")
	}
	return nil
}

// watch shows the objects of a kind, then each change, until it is interrupted.
func (a *app) watch(ctx context.Context, g group, list sdk.ListOptions, f watchFlags) error {
	namespace := a.listNamespace()
	o := sdk.WatchOptions{LabelSelector: list.LabelSelector, FieldSelector: list.FieldSelector}
	if len(g.names) == 1 {
		namespace = a.namespace
		o.FieldSelector = "metadata.name=" + g.names[0]
		if !f.awaited {
			if err := a.isThere(ctx, g.kind, g.names[0]); err != nil {
				return err
			}
		}
	}
	if len(g.names) == 0 && !f.only && (a.isTable() || g.kind == eventKind) {
		return a.watchListed(ctx, g.kind, namespace, o, f)
	}
	return a.follow(ctx, g.kind, namespace, o, f)
}

// isThere returns the error of a get of one object.
func (a *app) isThere(ctx context.Context, k kind, name string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := a.fetch(ctx, k, a.namespace, name, sdk.GetOptions{})
	return err
}

// watchListed shows the objects that are there in the order of a get and in columns of one
// width, and goes on behind them.
func (a *app) watchListed(ctx context.Context, k kind, namespace string, o sdk.WatchOptions, f watchFlags) error {
	l, err := a.list(ctx, k, sdk.ListOptions{LabelSelector: o.LabelSelector, FieldSelector: o.FieldSelector})
	if err != nil {
		return err
	}
	var printer watchPrinter
	present := make([]sdk.Event, len(l.objects))
	for i, shown := range l.objects {
		present[i] = sdk.Event{Type: "ADDED", Object: shown.Object, Present: true}
		printer.fit(a, present[i], f.events)
	}
	for _, e := range present {
		if err := printer.show(a, e, f.events); err != nil {
			return err
		}
	}
	o.After = l.meta.ResourceVersion
	return a.followWith(ctx, &printer, k, namespace, o, f)
}

// follow shows the objects of a kind, then each change.
func (a *app) follow(ctx context.Context, k kind, namespace string, o sdk.WatchOptions, f watchFlags) error {
	return a.followWith(ctx, new(watchPrinter), k, namespace, o, f)
}

// followWith is follow behind lines that are printed already.
func (a *app) followWith(ctx context.Context, printer *watchPrinter, k kind, namespace string, o sdk.WatchOptions, f watchFlags) error {
	for e, err := range a.at(k, namespace).Watch(ctx, o) {
		switch {
		case err != nil && ctx.Err() != nil:
			return nil // interrupted, which is how a watch ends
		case err != nil:
			return err
		case e.Present && f.only:
			continue
		}
		if err := printer.show(a, e, f.events); err != nil {
			return err
		}
		if _, broken := unwritten(a.Stdout); broken {
			return nil
		}
	}
	return nil
}

// watchPrinter prints one change after the other. Columns grow with the widest
// cell up to now.
type watchPrinter struct {
	widths []int
	begun  bool
}

func (p *watchPrinter) show(a *app, e sdk.Event, events bool) error {
	o := object{Object: e.Object}
	if !a.isTable() {
		if a.output == "yaml" && p.begun {
			a.printf("---\n")
		}
		p.begun = true
		var document any = o.document()
		if events && a.output != "name" {
			document = watchDocument{e.Type, document}
		}
		return a.print([]object{o}, document)
	}
	t := p.tableOf(a, e, events)
	p.begun = true
	p.widths = t.writeWide(a.Stdout, "", p.widths)
	return nil
}

// fit widens the columns for the row of an event that is shown later.
func (p *watchPrinter) fit(a *app, e sdk.Event, events bool) {
	if a.isTable() {
		p.widths = p.tableOf(a, e, events).widths(p.widths)
	}
}

// tableOf is the row of an event, with the heads of the columns before the first one.
func (p *watchPrinter) tableOf(a *app, e sdk.Event, events bool) *table {
	o := object{Object: e.Object}
	i := slices.IndexFunc(entries(), func(entry entry) bool { return entry.kind == o.kind() })
	t := a.tableOf(entries()[i], []object{o})
	if p.begun && !a.noHeaders {
		t.rows = t.rows[1:]
		paint := t.paint
		t.paint = nil
		if paint != nil {
			t.paint = func(_, column int, cell string) string { return paint(1, column, cell) }
		}
	}
	if events {
		paint := t.paint
		if paint != nil {
			t.paint = func(row, column int, cell string) string {
				if column == 0 {
					return cell
				}
				return paint(row, column-1, cell)
			}
		}
		for i, row := range t.rows {
			first := e.Type
			if i == 0 && len(t.rows) > 1 {
				first = "EVENT"
			}
			t.rows[i] = append([]string{first}, row...)
		}
	}
	return t
}

// watchDocument is an event as --output-watch-events shows it.
type watchDocument struct {
	Type   string `json:"type"`
	Object any    `json:"object"`
}

// watchedKinds are the plurals of the kinds that can be watched.
func watchedKinds() string {
	var words []string
	for _, k := range allKinds() {
		words = append(words, k.plural())
	}
	return cmp.Or(strings.Join(words, ", "), "none")
}
